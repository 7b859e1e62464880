// The files of a job that reads many, each with its rows by outcome. Other jobs have no such panel.

import * as api from "./api.js";
import { h, setText, show } from "./elements.js";
import { count } from "./format.js";
import { hasEnded, Notice } from "./job.js";

/** @typedef {import("./job.js").JobView} JobView */

const PAGE = 50;
/** While the job runs, the files are asked for at most this often. */
const RELOAD_MS = 3000;
const COLUMNS = ["File", "State", "Rows", "Succeeded", "Failed", "Skipped"];

class JobInputs extends HTMLElement {
  #guid = "";
  #loadedFor = "";
  #loadedAt = 0;
  #loading = 0;
  /** Where the shown page begins, and the ones before it. */
  #after = "";
  /** @type {string[]} */
  #before = [];
  /** @type {string | null} */
  #next = null;
  #count = h("span", { class: "count" });
  #notice = new Notice();
  #body = h("tbody");
  #previous = h("button", { type: "button", text: "Previous", on: { click: () => this.#turn(-1) } });
  #following = h("button", { type: "button", text: "Next", on: { click: () => this.#turn(1) } });
  #pages = h("div", { class: "pages" }, this.#previous, this.#following);

  connectedCallback() {
    this.replaceChildren(h("section", { class: "panel" }, h("h2", {}, "Files ", this.#count), this.#notice,
      h("div", { class: "scroll", role: "region", "aria-label": "Files", tabindex: 0 },
        h("table", {}, h("thead", {}, h("tr", {}, COLUMNS.map((text, at) => h("th", { scope: "col", class: at > 1 ? "number" : "", text })))), this.#body)),
      this.#pages));
    show(this, false);
  }

  /** @param {JobView} job */
  update(job) {
    show(this, job.files != null);
    if (job.files == null) return;
    this.#guid = job.jobGuid;
    setText(this.#count, count(job.files));
    const key = `${job.attempt} ${job.itemProgress} ${job.itemCount} ${job.status}`;
    if (key === this.#loadedFor || (!hasEnded(job) && Date.now() - this.#loadedAt < RELOAD_MS)) return;
    this.#loadedFor = key;
    void this.#load();
  }

  /** @param {1 | -1} step */
  #turn(step) {
    if (step === 1 && this.#next) this.#before.push(this.#after);
    this.#after = step === 1 ? (this.#next ?? this.#after) : (this.#before.pop() ?? "");
    void this.#load();
  }

  async #load() {
    const run = ++this.#loading;
    this.#loadedAt = Date.now();
    try {
      const query = new URLSearchParams({ limit: String(PAGE), ...(this.#after && { after: this.#after }) });
      const { files, next } = await api.get(`/api/jobs/${this.#guid}/files?${query}`);
      if (run !== this.#loading) return;
      this.#next = next;
      this.#notice.say("");
      this.#body.replaceChildren(...files.map(row));
      this.#previous.disabled = this.#after === "";
      this.#following.disabled = next === null;
      show(this.#pages, this.#after !== "" || next !== null);
    } catch (error) {
      if (run === this.#loading) this.#notice.say(api.reason(error));
    }
  }
}

/** @param {any} file */
function row({ name, state, rows, succeeded, failed, skipped, problem }) {
  const what = h("th", { scope: "row" }, name, problem && h("span", { class: "notice warn", text: problem.message }));
  return h("tr", {}, what, h("td", { text: state }), [rows, succeeded, failed, skipped].map((number) => h("td", { class: "number", text: count(number) })));
}

customElements.define("job-inputs", JobInputs);
