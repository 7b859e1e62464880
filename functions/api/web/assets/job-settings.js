// What a job was asked to do, and the button that asks for the same again.

import * as api from "./api.js";
import { h } from "./elements.js";
import { Notice } from "./job.js";

/** @typedef {import("./job.js").JobView} JobView */

/** The settings of a job. They are asked for when somebody wants to see them. */
class JobSettings extends HTMLElement {
  #guid = "";
  /** Repeats of a request whose answer was lost make one job. */
  #key = crypto.randomUUID();
  #notice = new Notice();
  #facts = h("dl", { class: "facts" });
  #again = h("button", { type: "button", text: "Run again", on: { click: () => this.#runAgain() } });
  #details = h("details", { class: "panel", on: { toggle: () => this.#details.open && this.#load() } },
    h("summary", {}, h("h2", { text: "Settings" })), this.#notice, this.#facts,
    h("p", { class: "hint", text: "A new job of the same type, over the same input, with the same params and limits." }), this.#again);

  connectedCallback() {
    this.replaceChildren(this.#details);
  }

  /** @param {JobView} job */
  update(job) {
    this.#guid = job.jobGuid;
  }

  /** The request as text: numbers keep all their digits. */
  async #request() {
    return (await api.call("GET", `/api/jobs/${this.#guid}/request`)).text();
  }

  async #load() {
    try {
      const { params = {}, items, ...others } = JSON.parse(await this.#request());
      const text = (/** @type {any} */ value) => (typeof value === "string" ? value : JSON.stringify(value));
      const value = (/** @type {string} */ name, /** @type {any} */ one) =>
        name === "dataset" ? h("a", { href: `#/datasets/${one}`, text: one }) : text(one);
      const named = [...Object.entries(params), ...Object.entries(others).filter(([name]) => !["jobType", "metadata"].includes(name))];
      if (items) named.push(["items", `${items.length} in the request`]);
      this.#facts.replaceChildren(...named.flatMap(([name, one]) => [h("dt", { text: name }), h("dd", {}, value(name, one))]));
      this.#notice.say("");
    } catch (error) {
      this.#notice.say(api.reason(error));
    }
  }

  async #runAgain() {
    this.#again.disabled = true;
    try {
      const headers = { "content-type": "application/json", "idempotency-key": this.#key };
      const { jobGuid } = await (await api.call("POST", "/api/jobs", { body: await this.#request(), headers })).json();
      this.#key = crypto.randomUUID();
      location.hash = `#/jobs/${jobGuid}`;
    } catch (error) {
      this.#notice.say(api.reason(error));
    } finally {
      this.#again.disabled = false;
    }
  }
}

customElements.define("job-settings", JobSettings);
