// The fields for limits and priority, of a new job and of an active one.

import { field, h, number, select, text } from "./elements.js";

const digits = text({ inputmode: "numeric", pattern: "[0-9]*" });

export class JobLimits extends HTMLElement {
  /** @type {Record<string, HTMLInputElement>} */
  #fields;
  #hints;

  /**
   * @param {string} unnamed what an empty field means
   * @param {Record<string, string>} hints
   */
  constructor(unnamed, hints) {
    super();
    this.#hints = hints;
    this.#fields = {
      count: digits(), percent: text({ inputmode: "decimal", pattern: "[0-9.]*" })(), maxConcurrency: digits(), deadlineSeconds: digits(), startWithinSeconds: digits(), keepSeconds: digits(),
      priority: select([["", unnamed], ["high", "high"], ["normal", "normal"], ["low", "low"]])(),
    };
  }

  connectedCallback() {
    if (this.childElementCount > 0) return;
    const { count, percent, maxConcurrency, deadlineSeconds, startWithinSeconds, keepSeconds, priority } = this.#fields;
    this.replaceChildren(h("div", { class: "grid" },
      field("Failed rows at most", count, "More stop the job"), field("Failed percent at most", percent, "More stop the job"),
      field("Chunks at once", maxConcurrency, this.#hints.maxConcurrency), field("Deadline in seconds", deadlineSeconds, this.#hints.deadlineSeconds),
      ...(this.#hints.startWithinSeconds ? [field("Must start within seconds", startWithinSeconds, this.#hints.startWithinSeconds)] : []),
      ...(this.#hints.keepSeconds ? [field("Keep for seconds", keepSeconds, this.#hints.keepSeconds)] : []),
      field("Priority", priority, "A job of high priority does not wait behind others; one of low priority may wait")));
  }

  get controls() {
    return Object.values(this.#fields);
  }

  /** The limits that are written. */
  request() {
    const { count, percent, maxConcurrency, deadlineSeconds, startWithinSeconds, keepSeconds, priority } = this.#fields;
    /** @type {Record<string, any>} */
    const request = {};
    const tolerance = { count: number(count.value), percent: number(percent.value) };
    if (tolerance.count !== undefined || tolerance.percent !== undefined) request.tolerance = tolerance;
    if (maxConcurrency.value) request.maxConcurrency = number(maxConcurrency.value);
    if (deadlineSeconds.value) request.deadlineSeconds = number(deadlineSeconds.value);
    if (startWithinSeconds.value) request.startWithinSeconds = number(startWithinSeconds.value);
    if (keepSeconds.value) request.keepSeconds = number(keepSeconds.value);
    if (priority.value) request.priority = priority.value;
    return request;
  }
}

customElements.define("job-limits", JobLimits);
