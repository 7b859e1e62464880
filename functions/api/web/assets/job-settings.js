// What a job was asked to do, and the button that asks for the same again.

import * as api from "./api.js";
import { h, show } from "./elements.js";
import { Notice, hasEnded } from "./job.js";

/** @typedef {import("./job.js").JobView} JobView */

/** The settings of a job. They are asked for when somebody wants to see them. */
class JobSettings extends HTMLElement {
  #guid = "";
  /** Repeats of a request whose answer was lost make one job. */
  #key = crypto.randomUUID();
  #notice = new Notice();
  #facts = h("dl", { class: "facts" });
  #again = h("button", { type: "button", text: "Run again", on: { click: () => this.#run(this.#again, "") } });
  #forReal = h("button", { type: "button", class: "primary", text: "Run for real", hidden: true, on: { click: () => this.#run(this.#forReal, "?dryRun=false") } });
  #undo = h("button", { type: "button", class: "danger", text: "Undo", hidden: true, on: { click: () => this.#reverse() } });
  #delete = h("button", { type: "button", class: "danger", text: "Delete", hidden: true, on: { click: () => this.#erase() } });
  #undone = h("a", { text: "The job that undoes this one", hidden: true });
  #details = h("details", { class: "panel", on: { toggle: () => this.#details.open && this.#load() } },
    h("summary", {}, h("h2", { text: "Settings" })), this.#notice, this.#facts,
    h("p", { class: "hint", text: "A new job of the same type, over the same input, with the same params and limits. \"Run for real\" does what a dry run has checked." }),
    h("div", { class: "actions" }, this.#again, this.#forReal, this.#undo, this.#delete, this.#undone));

  connectedCallback() {
    this.replaceChildren(this.#details);
  }

  /** @param {JobView} job */
  update(job) {
    this.#guid = job.jobGuid;
    const { undoneBy } = job;
    show(this.#again, !["delete", "undo"].includes(job.jobType));
    show(this.#delete, hasEnded(job));
    show(this.#undo, ["import", "undo"].includes(job.jobType) && hasEnded(job));
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
      const text = (/** @type {any} */ value) => (typeof value === "string" ? value : JSON.stringify(value));
      const value = (/** @type {string} */ name, /** @type {any} */ one) =>
        name === "dataset" ? h("a", { href: `#/datasets/${one}`, text: one })
          : name === "jobGuid" ? h("a", { href: `#/jobs/${one}`, text: one }) : text(one);
      const named = [...Object.entries(params), ...Object.entries(others).filter(([name]) => !["jobType", "metadata"].includes(name))];
      show(this.#forReal, params.dryRun === true);
      if (params.dryRun === true || params.undo === false) show(this.#undo, false);
      if (items) named.push(["items", `${items.length} in the request`]);
      this.#facts.replaceChildren(...named.flatMap(([name, one]) => [h("dt", { text: name }), h("dd", {}, value(name, one))]));
      this.#notice.say("");
    } catch (error) {
      this.#notice.say(api.reason(error));
    }
  }

  /** Undoes the job. A repeated request is answered with the same undo. */
  async #reverse() {
    if (!confirm("Undo this job? Its records become what they were before, unless another job has changed them since. Its failed rows cannot be redriven any more.")) return;
    this.#undo.disabled = true;
    try {
      const { jobGuid } = await api.post(`/api/jobs/${this.#guid}/undo`);
      location.hash = `#/jobs/${jobGuid}`;
    } catch (error) {
      this.#notice.say(api.reason(error));
    } finally {
      this.#undo.disabled = false;
    }
  }

  async #erase() {
    if (!confirm("Delete this job? Its results, failed rows and settings cannot be read any more. Its file and its records stay.")) return;
    this.#delete.disabled = true;
    try {
      await api.call("DELETE", `/api/jobs/${this.#guid}`);
      location.hash = "#/jobs";
    } catch (error) {
      this.#notice.say(api.reason(error));
    } finally {
      this.#delete.disabled = false;
    }
  }

  /** @param {HTMLButtonElement} button @param {string} query of the request */
  async #run(button, query) {
    button.disabled = true;
    try {
      const headers = { "content-type": "application/json", "idempotency-key": `${this.#key}${query}` };
      const { jobGuid } = await (await api.call("POST", "/api/jobs", { body: await this.#request(query), headers })).json();
      this.#key = crypto.randomUUID();
      location.hash = `#/jobs/${jobGuid}`;
    } catch (error) {
      this.#notice.say(api.reason(error));
    } finally {
      button.disabled = false;
    }
  }
}

customElements.define("job-settings", JobSettings);
