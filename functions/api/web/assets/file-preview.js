// The first rows of a file, as the server reads them.

import * as api from "./api.js";
import { h, setText, show } from "./elements.js";
import { count } from "./format.js";
import { Notice } from "./job.js";

/**
 * @typedef {object} Preview
 * @property {string} format
 * @property {string | null} packing
 * @property {string | null} delimiter
 * @property {string | null} encoding
 * @property {number | null} headerRow
 * @property {{name: string, type: string}[]} columns
 * @property {{row: number, cells?: string[], value?: any, problem?: {code: string, message: string}, output?: string}[]} rows
 * @property {boolean} complete
 * @property {{code: string, message: string}[]} warnings
 * @property {number} [columnCount]
 * @property {{field: string, detail: string} | null} [paramsProblem]
 */

const ROWS = 20;
const DELIMITERS = { ",": "comma", ";": "semicolon", "\t": "tab", "|": "bar" };

export class FilePreview extends HTMLElement {
  /** The upload that is shown. */
  fileGuid = "";
  #asked = 0;
  #title = h("h2", { text: "First rows" });
  #facts = h("p", { class: "hint" });
  #notice = new Notice();
  #warnings = new Notice();
  #table = h("table", { class: "rows" });
  #schema = h("button", { type: "button", text: "Make a schema of the types", on: { click: () => this.#makeSchema() } });
  #undo = h("button", { type: "button", text: "Undo", hidden: true, on: { click: () => this.#undoSchema() } });
  /** The schema that was replaced. */
  #replaced = "";
  /** @type {Preview["columns"]} */
  #columns = [];
  /** Whether the job type tells what it would make of the rows. */
  #hasResults = false;
  #setSchema;
  #suggest;

  /** @param {(schema: string) => string} setSchema writes a schema and returns the one before @param {(columns: string[]) => void} suggest */
  constructor(setSchema, suggest) {
    super();
    this.#setSchema = setSchema;
    this.#suggest = suggest;
  }

  connectedCallback() {
    if (this.childElementCount > 0) return;
    this.hidden = true;
    this.replaceChildren(h("div", { class: "title-line" }, this.#title, h("div", { class: "actions" }, this.#undo, this.#schema)), this.#facts, this.#notice, this.#warnings,
      h("div", { class: "scroll", role: "region", "aria-label": "First rows", tabindex: 0 }, this.#table));
  }

  /**
   * @param {string} fileGuid the upload; empty shows nothing
   * @param {string} name
   * @param {string} jobType
   * @param {object} params
   * @param {boolean} canTakeSchema
   */
  async show(fileGuid, name, jobType, params, canTakeSchema) {
    const asked = ++this.#asked;
    this.fileGuid = fileGuid;
    if (!fileGuid) return show(this, false);
    try {
      const preview = await api.post(`/api/uploads/${fileGuid}/preview`, { jobType, params, rows: ROWS });
      if (asked !== this.#asked) return;
      this.#fill(name, preview, canTakeSchema);
    } catch (error) {
      if (asked !== this.#asked) return;
      this.#table.replaceChildren();
      this.#facts.textContent = "";
      this.#showSchema(false);
      this.#notice.say(`The first rows cannot be shown: ${api.reason(error)}`, "warn");
    }
    show(this, true);
  }

  /** @param {string} name @param {Preview} preview @param {boolean} canTakeSchema */
  #fill(name, preview, canTakeSchema) {
    this.#columns = preview.columns;
    this.#suggest(preview.columns.map((column) => column.name));
    setText(this.#title, `First rows of ${name}`);
    const delimiter = preview.delimiter && `${DELIMITERS[/** @type {keyof typeof DELIMITERS} */ (preview.delimiter)] ?? preview.delimiter}s`;
    const header = preview.headerRow === 0 ? "no header" : "";
    const facts = [preview.format, preview.packing, preview.encoding, delimiter, `${count(preview.columnCount ?? preview.columns.length)} columns`, header,
      preview.complete ? `all ${count(preview.rows.length)} rows` : ""];
    setText(this.#facts, facts.filter(Boolean).join(" · "));
    // A dataset that is not named yet is no news to who is filling in the form.
    const problem = preview.paramsProblem;
    this.#notice.say(problem && problem.field !== "params.dataset" ? problem.detail : "", "warn");
    this.#warnings.say(preview.warnings.map(({ message }) => message).join(" "), "warn");
    this.#showSchema(canTakeSchema && preview.columns.length > 0);
    const columns = preview.columns;
    this.#hasResults = preview.rows.some((row) => isRead(row) && (row.output !== undefined || row.problem));
    const result = this.#hasResults ? [h("th", { scope: "col", class: "cell", text: "Result" })] : [];
    const head = columns.map(({ name: column, type }) => h("th", { scope: "col", class: "cell" }, column, h("span", { class: "hint type", text: type })));
    this.#table.replaceChildren(
      h("thead", {}, h("tr", {}, h("th", { scope: "col", class: "number", text: "Row" }), head, result)),
      h("tbody", {}, preview.rows.map((row) => h("tr", {}, h("th", { scope: "row", class: "number", text: count(row.row) }), this.#cells(row)))));
  }

  /** @param {Preview["rows"][number]} row */
  #cells(row) {
    const { cells, value, problem, output } = row;
    const why = problem ? [h("code", { text: problem.code }), ` ${problem.message}`] : [];
    if (!isRead(row)) return h("td", { class: "bad", colspan: Math.max(this.#columns.length, 1) + Number(this.#hasResults) }, why);
    const texts = cells ?? this.#columns.map(({ name }) => written(value?.[name]));
    const result = problem ? h("td", { class: "bad" }, why) : h("td", { class: "cell", text: output ?? "" });
    return [...texts.map((text) => h("td", { class: "cell", text })), ...(this.#hasResults ? [result] : [])];
  }

  #makeSchema() {
    /** @type {Record<string, object>} */
    const properties = {};
    for (const { name, type } of this.#columns) if (type !== "null") properties[name] = { type };
    const schema = JSON.stringify({ type: "object", properties }, null, 2), before = this.#setSchema(schema);
    if (before !== schema) this.#replaced = before.trim();
    this.#showSchema(true);
  }

  #undoSchema() {
    this.#setSchema(this.#replaced);
    this.#replaced = "";
    this.#showSchema(true);
  }

  /** @param {boolean} possible whether there is a field and something to write into it */
  #showSchema(possible) {
    show(this.#schema, possible);
    show(this.#undo, possible && this.#replaced !== "");
  }
}

/** @param {Preview["rows"][number]} row whether its cells are shown */
function isRead({ cells, value }) {
  return cells !== undefined || value !== undefined;
}

/** @param {any} value */
function written(value) {
  return value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value);
}

customElements.define("file-preview", FilePreview);
