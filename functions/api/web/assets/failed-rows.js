// The failed rows of a job, a page at a time. Once the job has ended they can be corrected in place and run again.

import * as api from "./api.js";
import { announce, field, h, setText, show } from "./elements.js";
import { count } from "./format.js";
import { hasEnded, nameOf, Notice } from "./job.js";
import { cells, correctedFile } from "./records.js";

/** @typedef {import("./job.js").JobView} JobView */
/** @typedef {import("./records.js").ItemTable} ItemTable */
/**
 * @typedef {object} FailedItem
 * @property {number} row
 * @property {string} code
 * @property {string} message
 * @property {string} [column]
 * @property {string} [raw]
 * @property {{name: string, row: number}} [file] its place in its file, if the job reads many
 */

const PAGE = 50;
/** The most requests for a page. */
const REQUESTS = 20;
/** While the job runs, rows are asked for at most this often. */
const RELOAD_MS = 3000;
/** More columns than this are not shown as columns. */
const COLUMNS_MAX = 200;

class FailedRows extends HTMLElement {
  /** @type {JobView | null} */
  #job = null;
  /** @type {any} */
  #page = null;
  /** @type {ItemTable | null} */
  #table = null;
  /** @type {FailedItem[]} */
  #items = [];
  /** Where the shown page begins, and the ones before it. */
  #after = "";
  /** @type {string[]} */
  #before = [];
  /** @type {string | null} */
  #next = null;
  /** The cause whose rows are shown; all if there is none. @type {any} */
  #cause = null;
  #of = h("span", { class: "hint" });
  #all = h("button", { type: "button", text: "Show all", hidden: true, on: { click: () => this.filter(null) } });
  #editing = false;
  /** Whether the rows are those of the ended job. Before, a page that comes late would take away what is written. */
  #final = false;
  /** The corrected rows: their cells. @type {Map<number, string[]>} */
  #corrected = new Map();
  #loadedFor = "";
  #loadedAt = 0;
  #loading = 0;
  #count = h("span", { class: "count" });
  #edit = h("button", { type: "button", text: "Correct rows", on: { click: () => this.#setEditing(true) } });
  #notice = new Notice();
  #head = h("thead");
  #body = h("tbody");
  #previous = h("button", { type: "button", text: "Previous", on: { click: () => this.#turn(-1) } });
  #following = h("button", { type: "button", text: "Next", on: { click: () => this.#turn(1) } });
  #shown = h("span", { class: "hint" });
  #changed = h("span", { role: "status" });
  #run = h("button", { type: "button", class: "primary", text: "Redrive with corrections", on: { click: () => this.#redrive() } });
  /** The columns that can be chosen. A choice outlives a page of rows. */
  #listed = "";
  #column = h("select", { on: { change: () => this.#showChanged() } });
  #value = h("input", { type: "text" });
  #set = h("button", { type: "button", on: { click: () => this.#fillColumn() } });
  #undo = h("button", { type: "button", text: "Undo", hidden: true, on: { click: () => this.#undoFill() } });
  /** What was set last, and where. @type {{value: string, index: number, items: FailedItem[]}} */
  #filled = { value: "", index: 0, items: [] };
  #fill = h("div", { class: "fill" }, field("Set column", this.#column), field("to", this.#value), this.#set, this.#undo);
  #tools = h("div", { class: "tools", hidden: true }, this.#fill,
    h("div", { class: "actions" }, this.#changed,
      h("button", { type: "button", text: "Discard corrections", on: { click: () => this.#setEditing(false) } }), this.#run));
  #panel = h("section", { class: "panel", hidden: true },
    h("div", { class: "title-line" }, h("h2", {}, "Failed rows ", this.#count), this.#of, h("div", { class: "actions" }, this.#all, this.#edit)),
    this.#notice,
    h("div", { class: "scroll", role: "region", "aria-label": "Failed rows", tabindex: 0 }, h("table", { class: "rows" }, this.#head, this.#body)),
    h("div", { class: "pages" }, this.#previous, this.#following, this.#shown), this.#tools);
  connectedCallback() {
    this.replaceChildren(this.#panel);
  }

  /** Whether there are corrections that were not sent. */
  get unsaved() {
    return this.#corrected.size > 0;
  }

  /** Shows the rows of this cause, or of all. @param {any} cause */
  filter(cause) {
    if (this.unsaved && !confirm("Discard the corrections that were not sent?")) return;
    [this.#cause, this.#after, this.#before] = [cause, "", []];
    setText(this.#of, cause ? `only ${nameOf(cause)}` : "");
    show(this.#all, cause !== null);
    this.#setEditing(false);
    this.scrollIntoView();
    void this.#load();
  }

  /** @param {JobView} job @param {any} page the element that can redrive the job */
  update(job, page) {
    [this.#job, this.#page] = [job, page];
    this.#showPanel();
    setText(this.#count, count(job.itemsFailed));
    if (!hasEnded(job)) this.#final = false;
    show(this.#edit, this.#final && !this.#editing);
    if (!hasEnded(job) && this.#editing) this.#setEditing(false);
    // What is written is not taken away by a new page.
    const key = `${job.attempt} ${job.itemsFailed} ${hasEnded(job)}`;
    const due = hasEnded(job) || Date.now() - this.#loadedAt > RELOAD_MS;
    if (key === this.#loadedFor || this.#editing || !due || (job.itemsFailed === 0 && this.#items.length === 0)) return;
    this.#loadedFor = key;
    void this.#load();
  }

  /** A redrive may repair all of them: then there is nothing to show any more. */
  #showPanel() {
    show(this.#panel, this.#items.length > 0 || (this.#job?.itemsFailed ?? 0) > 0);
  }

  async #load() {
    const run = ++this.#loading, final = this.#job !== null && hasEnded(this.#job);
    this.#loadedAt = Date.now();
    try {
      /** @type {FailedItem[]} */
      const items = [];
      let after = this.#after, page;
      // A page may have fewer items than it could, and more may follow all the same. "Next" goes on.
      let asked = 0;
      do {
        const { code, column = "", rule = "" } = this.#cause ?? {};
        const query = new URLSearchParams({ outcome: "failed", limit: String(PAGE - items.length), after, ...(code && { code, column, rule }) });
        page = await api.get(`/api/jobs/${this.#job?.jobGuid}/items?${query}`);
        items.push(...page.items);
        after = page.next ?? "";
      } while (page.next && items.length < PAGE && ++asked < REQUESTS);
      if (run !== this.#loading) return;
      [this.#items, this.#next, this.#table] = [items, page.next, page.table];
      this.#notice.say("");
      this.#final = final;
      show(this.#edit, final && !this.#editing);
      this.#show();
      this.#showPanel();
    } catch (error) {
      if (run !== this.#loading) return;
      this.#notice.say(api.reason(error));
      if (api.isPassing(error)) setTimeout(() => this.isConnected && run === this.#loading && this.#load(), RELOAD_MS);
    }
  }

  /** @param {1 | -1} step */
  #turn(step) {
    if (step === 1 && this.#next) this.#before.push(this.#after);
    this.#after = step === 1 ? (this.#next ?? this.#after) : (this.#before.pop() ?? "");
    void this.#load();
  }

  /** @param {boolean} editing */
  #setEditing(editing) {
    this.#editing = editing;
    this.#corrected.clear();
    this.#filled.items = [];
    show(this.#tools, editing);
    show(this.#edit, !editing && this.#final);
    this.#show();
    if (editing) /** @type {HTMLElement | null} */ (this.#body.querySelector("[aria-invalid]") ?? this.#body.querySelector("input, textarea"))?.focus();
  }

  get #columns() {
    return this.#table?.format === "csv" && this.#table.columns.length <= COLUMNS_MAX ? this.#table.columns : null;
  }

  #show() {
    const columns = this.#columns;
    const names = columns ?? ["Text"];
    const th = (/** @type {string} */ text, kind = "") => h("th", { scope: "col", class: kind, text });
    this.#head.replaceChildren(h("tr", {}, th("Row", "number"), th("What is wrong"), names.map((name) => th(name, columns ? "cell" : ""))));
    this.#body.replaceChildren(...this.#items.map((item) => this.#row(item)));
    const { row: first } = this.#items[0] ?? { row: 0 }, { row: last } = this.#items.at(-1) ?? { row: 0 };
    setText(this.#shown, this.#items.length ? `Rows ${count(first)} to ${count(last)}` : "");
    this.#previous.disabled = this.#after === "";
    this.#following.disabled = this.#next === null;
    show(/** @type {HTMLElement} */ (this.#previous.parentElement), this.#after !== "" || this.#next !== null);
    show(this.#fill, columns !== null);
    if (this.#listed !== String(columns)) {
      this.#listed = String(columns);
      this.#column.replaceChildren(...(columns ?? []).map((name, index) => h("option", { value: index, text: name })));
      const wrong = columns?.indexOf(this.#items.find((item) => item.column)?.column ?? "") ?? -1;
      if (wrong >= 0) this.#column.value = String(wrong);
    }
    this.#showChanged();
  }

  /** @param {FailedItem} item */
  #row(item) {
    const what = h("td", { class: "what" }, h("code", { text: item.code }), " ", item.message);
    const cellsOf = this.#cellsOf(item);
    const row = h("tr", { "data-row": item.row }, h("th", { scope: "row", class: "number" }, count(item.row), item.file && h("span", { class: "hint place", text: `${item.file.name}, row ${count(item.file.row)}` })), what);
    if (!cellsOf) {
      const span = this.#columns?.length ?? 1;
      row.append(h("td", { colspan: span, class: "hint", text: "Its text cannot be shown here. It is in the results, if it is not too long." }));
      return row;
    }
    const names = this.#columns ?? [""];
    const values = this.#corrected.get(item.row) ?? cellsOf;
    names.forEach((name, index) => {
      const bad = name === item.column && name !== "";
      row.append(this.#editing ? this.#input(item, index, name, values[index] ?? "", bad) : this.#cell(values[index], bad, item.column));
    });
    if (this.#columns && cellsOf.length > names.length) {
      what.append(h("span", { class: "hint", text: ` Extra: ${cellsOf.slice(names.length).join(", ")}` }));
    }
    return row;
  }

  /** The cells of an item, or its text as the only one; `null` if the API does not tell it. @param {FailedItem} item */
  #cellsOf(item) {
    if (item.raw === undefined) return null;
    return this.#columns ? cells(item.raw, this.#table?.delimiter ?? ",") : [item.raw];
  }

  /** @param {string | undefined} text @param {boolean} bad @param {string} [column] what is wrong in JSON */
  #cell(text, bad, column) {
    if (!this.#columns && text && column) {
      const [name, at] = [JSON.stringify(column), text.indexOf(JSON.stringify(column))];
      if (at >= 0) return h("td", { class: "text" }, text.slice(0, at), h("mark", { text: name }), text.slice(at + name.length));
    }
    const missing = text === undefined && this.#columns !== null;
    return h("td", { class: `${this.#columns ? "cell" : "text"}${bad ? " bad" : ""}${missing ? " missing" : ""}` },
      bad && h("span", { class: "unseen", text: "Wrong: " }), missing ? "(no cell)" : text);
  }

  /** @param {FailedItem} item @param {number} index @param {string} name @param {string} value @param {boolean} bad */
  #input(item, index, name, value, bad) {
    const label = `${name || "Text"}, row ${item.row}`;
    const props = { "aria-label": label, "aria-invalid": bad ? "true" : null, spellcheck: "false", "data-index": index,
      class: this.#corrected.has(item.row) ? "changed" : "" };
    const input = this.#columns ? h("input", { type: "text", ...props }) : h("textarea", { rows: 2, ...props });
    input.value = value;
    input.addEventListener("input", () => this.#correct(item, index, input.value));
    input.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => this.#move(event, index));
    return h("td", { class: `editable${bad ? " bad" : ""}` }, input);
  }

  /** @param {FailedItem} item @param {number} index @param {string} value */
  #correct(item, index, value) {
    const original = this.#cellsOf(item) ?? [];
    const names = this.#columns ?? [""];
    const row = this.#corrected.get(item.row) ?? names.map((_, at) => original[at] ?? "");
    row[index] = value;
    const same = original.length === row.length && row.every((cell, at) => cell === original[at]);
    if (same) this.#corrected.delete(item.row);
    else this.#corrected.set(item.row, row);
    for (const input of this.#body.querySelectorAll(`[data-row="${item.row}"] [data-index]`)) input.classList.toggle("changed", !same);
    this.#showChanged();
  }

  /** Enter and the arrows go to the same column of the next row or the one before, as in a spreadsheet. @param {KeyboardEvent} event @param {number} index */
  #move(event, index) {
    const step = { Enter: event.shiftKey ? -1 : 1, ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || event.isComposing || (event.target instanceof HTMLTextAreaElement && event.key !== "Enter")) return;
    event.preventDefault();
    let row = /** @type {HTMLElement} */ (event.target).closest("tr");
    do row = /** @type {any} */ (step === 1 ? row?.nextElementSibling : row?.previousElementSibling); while (row && !row.querySelector("[data-index]"));
    const next = /** @type {HTMLInputElement | null | undefined} */ (row?.querySelector(`[data-index="${index}"]`));
    next?.focus();
    next?.select();
  }

  /** The rows shown whose cell of this column is wrong and as it was. @param {number} index */
  #wrongIn(index) {
    return this.#items.filter((item) => {
      const cells = this.#cellsOf(item);
      return cells && item.column === this.#columns?.[index] && (this.#corrected.get(item.row) ?? cells)[index] === cells[index];
    });
  }

  #fillColumn() {
    const index = Number(this.#column.value), { value } = this.#value;
    this.#filled = { value, index, items: this.#wrongIn(index) };
    for (const item of this.#filled.items) this.#correct(item, index, value);
    this.#show();
  }

  /** Takes back what was set last, where nothing else was written since. */
  #undoFill() {
    const { value, index, items } = this.#filled;
    this.#filled.items = [];
    for (const item of items) {
      if (this.#corrected.get(item.row)?.[index] === value) this.#correct(item, index, this.#cellsOf(item)?.[index] ?? "");
    }
    this.#show();
  }

  #showChanged() {
    const rows = this.#corrected.size;
    setText(this.#changed, rows === 0 ? "Nothing is corrected yet." : `${count(rows)} of ${count(this.#job?.itemsFailed ?? 0)} failed rows corrected`);
    this.#run.disabled = rows === 0;
    const wrong = this.#wrongIn(Number(this.#column.value)).length;
    setText(this.#set, `Set ${count(wrong)} failing ${wrong === 1 ? "cell" : "cells"}`);
    this.#set.disabled = wrong === 0;
    show(this.#undo, this.#filled.items.length > 0);
  }

  /** Stores the corrected rows as a file, and starts the next attempt with it. */
  async #redrive() {
    if (!this.#table) return;
    this.#run.disabled = true;
    try {
      const body = correctedFile(this.#table, this.#corrected);
      const answer = await api.call("POST", "/api/uploads?fileName=corrected-rows", { body, headers: { "content-type": "application/octet-stream" } });
      const { fileGuid } = await answer.json();
      const rows = this.#corrected.size;
      if (await this.#page.redrive(fileGuid)) {
        this.#setEditing(false);
        [this.#after, this.#before] = ["", []];
        announce(`The job runs again with ${count(rows)} corrected rows.`);
      }
    } catch (error) {
      this.#notice.say(api.reason(error));
    } finally {
      this.#showChanged();
    }
  }
}

customElements.define("failed-rows", FailedRows);
