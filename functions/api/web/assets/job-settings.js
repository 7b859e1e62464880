// What a job was asked to do, and the button that asks for the same again.

import * as api from "./api.js";
import { h, show } from "./elements.js";
import { Notice, hasEnded } from "./job.js";

/** @typedef {import("./job.js").JobView} JobView */

const UNDO = "Undo this job? Its records become what they were before, unless another job has changed them since. Its failed rows cannot be redriven any more.";
const DELETE = "Delete this job? Its results, failed rows and settings cannot be read any more. Its file and its records stay.";

/** The settings of a job. They are asked for when somebody wants to see them. */
class JobSettings extends HTMLElement {
  #guid = "";
  /** The import whose missing records this dry run has counted. */
  #pruned = "";
  /** Repeats of a request whose answer was lost make one job. */
  #key = crypto.randomUUID();
  #notice = new Notice();
  #facts = h("dl", { class: "facts" });
  #again = h("button", { type: "button", text: "Run again", on: { click: () => this.#act(this.#again, () => this.#repeat("")) } });
  #forReal = h("button", { type: "button", class: "primary", text: "Run for real", hidden: true, on: { click: () => this.#act(this.#forReal, () => this.#carryOut()) } });
  #undo = h("button", { type: "button", class: "danger", text: "Undo", hidden: true, on: { click: () => this.#act(this.#undo, () => this.#create("undo"), UNDO) } });
  #prune = h("button", { type: "button", text: "Count missing records", title: "Counts the records that were there before this import and are not in its file", hidden: true, on: { click: () => this.#act(this.#prune, () => this.#create("prune", { dryRun: true })) } });
  #delete = h("button", { type: "button", class: "danger", text: "Delete", hidden: true, on: { click: () => this.#act(this.#delete, () => this.#erase(), DELETE) } });
  #undone = h("a", { text: "The job that undoes this one", hidden: true });
  #details = h("details", { class: "panel", on: { toggle: () => this.#details.open && this.#load() } },
    h("summary", {}, h("h2", { text: "Settings" })), this.#notice, this.#facts,
    h("p", { class: "hint", text: "A new job of the same type, over the same input, with the same params and limits. \"Run for real\" does what a dry run has checked." }),
    h("div", { class: "actions" }, this.#again, this.#forReal, this.#prune, this.#undo, this.#delete, this.#undone));

  connectedCallback() {
    this.replaceChildren(this.#details);
  }

  /** @param {JobView} job */
  update(job) {
    this.#guid = job.jobGuid;
    const { undoneBy } = job;
    show(this.#again, !["delete", "prune", "undo"].includes(job.jobType));
    show(this.#delete, hasEnded(job));
    show(this.#undo, ["import", "prune", "undo"].includes(job.jobType) && hasEnded(job));
    show(this.#prune, job.jobType === "import" && job.outcome === "succeeded" && !undoneBy);
    show(this.#undone, Boolean(undoneBy));
    if (undoneBy) this.#undone.setAttribute("href", `#/jobs/${undoneBy}`);
  }

  /** The request as text: numbers keep all their digits. @param {string} [query] */
  async #request(query = "") {
    return (await api.call("GET", `/api/jobs/${this.#guid}/request${query}`)).text();
  }

  async #load() {
    try {
      const { params = {}, items, ...others } = JSON.parse(await this.#request());
      this.#pruned = others.jobType === "prune" ? params.jobGuid : "";
      const text = (/** @type {any} */ value) => (typeof value === "string" ? value : JSON.stringify(value));
      const value = (/** @type {string} */ name, /** @type {any} */ one) =>
        name === "dataset" ? h("a", { href: `#/datasets/${one}`, text: one })
          : name === "jobGuid" ? h("a", { href: `#/jobs/${one}`, text: one }) : text(one);
      const named = [...Object.entries(params), ...Object.entries(others).filter(([name]) => !["jobType", "metadata"].includes(name))];
      show(this.#forReal, params.dryRun === true);
      if (params.dryRun === true || params.undo === false) show(this.#undo, false);
      if (params.dryRun === true) show(this.#prune, false);
      if (items) named.push(["items", `${items.length} in the request`]);
      this.#facts.replaceChildren(...named.flatMap(([name, one]) => [h("dt", { text: name }), h("dd", {}, value(name, one))]));
      this.#notice.say("");
    } catch (error) {
      this.#notice.say(api.reason(error));
    }
  }

  /** A job that changes what this one has written. @param {string} action @param {object} [body] */
  async #create(action, body) {
    return `#/jobs/${(await api.post(`/api/jobs/${this.#guid}/${action}`, body)).jobGuid}`;
  }

  async #erase() {
    await api.call("DELETE", `/api/jobs/${this.#guid}`);
    return "#/jobs";
  }

  /** What the dry run has checked or counted. */
  async #carryOut() {
    if (!this.#pruned) return this.#repeat("?dryRun=false");
    return `#/jobs/${(await api.post(`/api/jobs/${this.#pruned}/prune`)).jobGuid}`;
  }

  /** @param {string} query of the request */
  async #repeat(query) {
    const headers = { "content-type": "application/json", "idempotency-key": `${this.#key}${query}` };
    const { jobGuid } = await (await api.call("POST", "/api/jobs", { body: await this.#request(query), headers })).json();
    this.#key = crypto.randomUUID();
    return `#/jobs/${jobGuid}`;
  }

  /**
   * Does what a button asks for, and shows the page that comes of it.
   * @param {HTMLButtonElement} button @param {() => Promise<string>} work @param {string} [question]
   */
  async #act(button, work, question) {
    if (question && !confirm(question)) return;
    button.disabled = true;
    try {
      location.hash = await work();
    } catch (error) {
      this.#notice.say(api.reason(error));
    } finally {
      button.disabled = false;
    }
  }
}

customElements.define("job-settings", JobSettings);
