// Who works on a job whose items are left to workers outside of the stack. Other jobs have no such panel.

import * as api from "./api.js";
import { h, setText, show } from "./elements.js";
import { ago, count } from "./format.js";

/** Reasons that only a job with tasks has. */
const REASONS = ["no_worker", "worker_died", "tasks_held", "tasks_offered"];

/** The states of a task, those that are shown first. */
const STATES = ["held", "dead", "offered"];

/** The most tasks that are shown. */
const SHOWN = 20;

/** It is the last of the page, so that nothing moves when it comes, grows or goes. */
class JobTasks extends HTMLElement {
  #summary = h("p", { class: "hint" });
  #body = h("tbody");

  connectedCallback() {
    const columns = ["Worker", "State", "From row", "Done", "Since", "Last beat"];
    this.replaceChildren(h("section", { class: "panel" }, h("h2", { text: "Who works on it" }), this.#summary,
      h("div", { class: "scroll", role: "region", "aria-label": "Tasks", tabindex: 0 },
        h("table", {}, h("thead", {}, h("tr", {}, columns.map((text) => h("th", { scope: "col", text })))), this.#body))));
    show(this, false);
  }

  /** Looks at the tasks of a job, if it has any. @param {string} guid @param {{code: string}[]} reasons */
  async update(guid, reasons) {
    const hasTasks = reasons.some(({ code }) => REASONS.includes(code));
    if (hasTasks) this.#show(await api.get(`/api/jobs/${guid}/tasks`));
    show(this, hasTasks);
  }

  /** @param {{tasks: any[], next: string | null}} page */
  #show({ tasks, next }) {
    const sums = STATES.map((state) => `${count(tasks.filter((task) => task.state === state).length)} ${state}`);
    setText(this.#summary, `${sums.join(", ")}${next ? `, of the first ${count(tasks.length)} tasks` : ""}`);
    const sorted = tasks.sort((one, other) => STATES.indexOf(one.state) - STATES.indexOf(other.state));
    this.#body.replaceChildren(...sorted.slice(0, SHOWN).map((task) => h("tr", {},
      [task.worker ?? "–", task.state, count(task.firstRow), `${count(task.done)} of ${count(task.items)}`, task.since ? ago(task.since) : "–", task.lastBeatAt ? ago(task.lastBeatAt) : "–"]
        .map((text) => h("td", { text })))));
  }
}

customElements.define("job-tasks", JobTasks);
