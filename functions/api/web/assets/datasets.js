// The datasets that imports have written to, and the records of one.

import * as api from "./api.js";
import { field, h, show, text } from "./elements.js";
import { ago, count, date, short, span } from "./format.js";
import { Notice } from "./job.js";

/** The most fields with a column of their own. The others are below "more". */
const COLUMNS = 12;

const jobLink = (/** @type {string} */ guid, /** @type {string} */ label) => h("a", { href: `#/jobs/${guid}`, text: label, title: guid });

const table = (/** @type {string} */ label, /** @type {string[]} */ columns, /** @type {HTMLElement} */ body) =>
  h("div", { class: "scroll", role: "region", "aria-label": label, tabindex: 0 },
    h("table", {}, h("thead", {}, h("tr", {}, columns.map((column) => h("th", { scope: "col", text: column })))), body));

/** The list of datasets. */
class DatasetList extends HTMLElement {
  #body = h("tbody");
  #notice = new Notice();
  #empty = h("div", { class: "empty", hidden: true, text: "No import has written a record yet." });
  #more = h("button", { type: "button", text: "More", hidden: true, on: { click: () => this.#load() } });
  #next = "";

  connectedCallback() {
    document.title = "Datasets – Rowmill";
    this.replaceChildren(h("div", { class: "title-line" }, h("h1", { text: "Datasets" })), this.#notice,
      table("Datasets", ["Dataset", "Last import", "Records kept", "By job"], this.#body), this.#empty, this.#more);
    this.#body.replaceChildren();
    this.#next = "";
    void this.#load();
  }

  async #load() {
    this.#more.disabled = true;
    try {
      const page = await api.get(`/api/datasets?after=${encodeURIComponent(this.#next)}`);
      this.#body.append(...page.datasets.map((/** @type {any} */ { name, lastImport, expiresInSeconds }) => h("tr", {},
        h("td", {}, h("a", { class: "name", href: `#/datasets/${name}`, text: name })),
        h("td", { text: ago(lastImport.createdAt), title: date(lastImport.createdAt) }),
        h("td", { text: expiresInSeconds ? span(expiresInSeconds) : "for ever" }),
        h("td", {}, jobLink(lastImport.jobGuid, short(lastImport.jobGuid))))));
      this.#next = page.next ?? "";
      show(this.#more, this.#next !== "");
      show(this.#empty, this.#body.childElementCount === 0);
      this.#notice.say("");
    } catch (error) {
      this.#notice.say(api.reason(error));
    } finally {
      this.#more.disabled = false;
    }
  }
}

/** The records of a dataset, as they are now. */
class DatasetPage extends HTMLElement {
  #name = "";
  #next = "";
  /** The prefix of the keys that was asked for last. */
  #wanted = "";
  /** @type {any[]} */
  #records = [];
  #notice = new Notice();
  #table = h("div");
  #found = h("p", { class: "hint", role: "status" });
  #more = h("button", { type: "button", text: "More", hidden: true, on: { click: () => this.#load() } });
  #prefix = text({ placeholder: "all" })();
  #delete = h("button", { type: "button", class: "danger", text: "Delete dataset", on: { click: () => this.#erase() } });

  connectedCallback() {
    this.#name = this.getAttribute("name") ?? "";
    document.title = `${this.#name} – Rowmill`;
    const search = (/** @type {Event} */ event) => { event.preventDefault(); this.#begin(); };
    this.replaceChildren(
      h("div", { class: "title-line" }, h("h1", { text: this.#name }),
        h("form", { class: "filters", on: { submit: search } }, field("Keys that begin with", this.#prefix), h("button", { type: "submit", text: "Show" })), this.#delete),
      this.#notice, this.#table, this.#found, this.#more);
    this.#begin();
  }

  /** Creates the job that deletes the records, and shows it. */
  async #erase() {
    if (!confirm("Delete all records of this dataset? This cannot be undone.")) return;
    this.#delete.disabled = true;
    try {
      const { jobGuid } = await (await api.call("DELETE", `/api/datasets/${encodeURIComponent(this.#name)}`)).json();
      location.hash = `#/jobs/${jobGuid}`;
    } catch (error) {
      this.#notice.say(api.reason(error));
    } finally {
      this.#delete.disabled = false;
    }
  }

  #begin() {
    [this.#records, this.#next, this.#wanted] = [[], "", this.#prefix.value];
    void this.#load();
  }

  async #load() {
    this.#more.disabled = true;
    // Another search replaces the list, and what comes for this one is of no use then.
    const [records, prefix, before] = [this.#records, this.#wanted, this.#records.length];
    try {
      // A page may be empty although more records follow.
      do {
        const query = new URLSearchParams({ limit: "50", after: this.#next, prefix });
        const page = await api.get(`/api/datasets/${encodeURIComponent(this.#name)}/records?${query}`);
        if (records !== this.#records || !this.isConnected) return;
        records.push(...page.records);
        this.#next = page.next ?? "";
      } while (this.#next && records.length === before);
      this.#show();
      this.#notice.say("");
    } catch (error) {
      if (records === this.#records) this.#notice.say(api.reason(error));
    } finally {
      if (records === this.#records) this.#more.disabled = false;
    }
  }

  #show() {
    const names = [...new Set(this.#records.flatMap((record) => Object.keys(record.fields)))];
    const [columns, rest] = [names.slice(0, COLUMNS), names.slice(COLUMNS)];
    const cell = (/** @type {any} */ value) => (value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value));
    const others = (/** @type {any} */ fields) => JSON.stringify(Object.fromEntries(rest.filter((name) => Object.hasOwn(fields, name)).map((name) => [name, fields[name]])));
    const row = (/** @type {any} */ { key, fields, writtenBy }) => h("tr", {},
      [key, ...columns.map((name) => cell(Object.hasOwn(fields, name) ? fields[name] : undefined)), ...(rest.length ? [others(fields)] : [])].map((value) => h("td", { text: value })),
      h("td", {}, jobLink(writtenBy.jobGuid, `${short(writtenBy.jobGuid)}, row ${count(writtenBy.row)}`)));
    const heads = ["Key", ...columns, ...(rest.length ? ["more"] : []), "Written by"];
    this.#table.replaceChildren(...(this.#records.length ? [table("Records", heads, h("tbody", {}, this.#records.map(row)))] : []));
    this.#found.textContent = this.#records.length ? `${count(this.#records.length)} records, in no order${this.#next ? "; there are more" : ""}` : "No record found.";
    show(this.#more, this.#next !== "");
  }
}

customElements.define("dataset-list", DatasetList);
customElements.define("dataset-page", DatasetPage);
