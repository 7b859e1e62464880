// What a job type is to do: the form of its params, and the request that follows from it.

import { checkFields, field, h, number, select, show, text } from "./elements.js";
import { JobLimits } from "./job-limits.js";

/** Params of a type in the order of its form. `json` ones are written as JSON, `list` ones with commas. */
const PARAMS = {
  validate: ["schema"],
  import: ["dataset", "key", "expiresInSeconds", "schema"],
  transform: ["mapping", "outputFormat", "columns"],
  export: ["dataset", "format", "columns", "keyColumn", "compress", "filter"],
};
/** What says how a file is read. */
const READING = ["delimiter", "encoding", "headerRow", "skipRows", "sheet", "readAs"];

const list = (/** @type {string} */ text) => {
  const parts = text.split(",").map((part) => part.trim()).filter(Boolean);
  return parts.length ? parts : undefined;
};
const one = (/** @type {string} */ text) => text.trim() || undefined;
const json = (/** @type {string} */ text, /** @type {string} */ label) => {
  if (!text.trim()) return undefined;
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`${label} is not JSON: ${/** @type {Error} */ (error).message}`);
  }
};
const area = (/** @type {string} */ placeholder) => () => h("textarea", { rows: 5, spellcheck: "false", placeholder });

/** @type {Record<string, {label: string, hint?: string, control: () => any, read: (text: string, label: string) => any, name?: string}>} */
const FIELDS = {
  dataset: { label: "Dataset", control: text({ required: true, maxlength: 128, pattern: "[A-Za-z0-9._\\-]+" }), read: one, hint: "Letters, digits, hyphen, underscore and dot" },
  key: { label: "Key", control: text({ list: "columns" }), read: (value) => { const keys = list(value); return keys?.length === 1 ? keys[0] : keys; }, hint: "A column, or several with commas. Empty: the number of the row" },
  expiresInSeconds: { label: "Keep records for seconds", control: text({ inputmode: "numeric", pattern: "[0-9]*" }), read: number, hint: "After the creation of their job. The first import into a dataset decides. Empty: for ever" },
  schema: { label: "Schema", control: area('{"type": "object", "properties": {"age": {"type": "integer"}}}'), read: json, hint: "A JSON Schema for each row. Empty: every well-formed row is good" },
  mapping: { label: "Mapping", control: area('[{"rename": "old", "to": "new"}, {"drop": "column"}]'), read: json, hint: "A list of steps: rename, drop, set" },
  outputFormat: { label: "Output", control: select([["", "as the input"], ["csv", "CSV"], ["jsonl", "JSON lines"]]), read: one },
  columns: { label: "Columns", control: text({ list: "columns" }), read: list, hint: "In this order, with commas. Empty: all" },
  format: { label: "Format", control: select([["jsonl", "JSON lines"], ["csv", "CSV"]]), read: one },
  keyColumn: { label: "Column for the key", control: text(), read: one, hint: "Empty: none" },
  compress: { label: "Compression", control: select([["", "none"], ["gzip", "gzip"]]), read: one },
  filter: { label: "Filter", control: area('{"properties": {"country": {"const": "NL"}}}'), read: json, hint: "A JSON Schema; records that do not match are left out" },
  delimiter: { label: "Delimiter", control: select([["", "detected"], [",", "comma"], [";", "semicolon"], ["\\t", "tab"], ["|", "bar"]]), read: one },
  encoding: { label: "Charset", control: text({ list: "charsets", placeholder: "detected" }), read: one },
  headerRow: { label: "Header row", control: text({ inputmode: "numeric", pattern: "[0-9]*", placeholder: "1" }), read: number, hint: "0: there is none" },
  skipRows: { label: "Rows to skip", control: text({ inputmode: "numeric", pattern: "[0-9]*", placeholder: "0" }), read: number },
  sheet: { label: "Sheet", control: text({ placeholder: "the first" }), read: one },
  readAs: { label: "File format", name: "format", control: select([["", "detected"], ["csv", "CSV"], ["jsonl", "JSON lines"], ["json", "JSON array"], ["xlsx", "workbook"], ["parquet", "Parquet"]]), read: one },
  params: { label: "Params", control: area('{"name": "value"}'), read: json, hint: "A JSON object that the type's target gets" },
};

const WIDE = new Set(["schema", "mapping", "filter", "params"]);

/** The form of a job. Fires `change` when the job would be another one. */
export class JobParams extends HTMLElement {
  /** All fields that were shown so far: what is written into one is there again for each type that has it. @type {Map<string, {element: HTMLElement, control: HTMLInputElement}>} */
  #fields = new Map();
  #type = h("select", { name: "jobType" });
  #params = h("div", { class: "grid" });
  #reading = h("details", { class: "more" });
  #columns = h("datalist", { id: "columns" });
  #dryRun = h("input", { type: "checkbox", id: "dry-run" });
  #limits = new JobLimits("default", { maxConcurrency: "Empty: as many as there are workers", deadlineSeconds: "Empty: 4 hours", startWithinSeconds: "If nothing has begun by then, the job fails. Empty: it may wait until its deadline", keepSeconds: "Then the job and its results are deleted. Empty: as long as the stack keeps jobs" });

  /** @type {string[]} */
  #withoutFile = [];

  /** @param {string[]} types @param {string[]} withoutFile those that read no file */
  configure(types, withoutFile) {
    this.#withoutFile = withoutFile;
    const preferred = types.includes("import") ? "import" : types[0];
    this.#type.replaceChildren(...types.map((value) => h("option", { value, text: value })));
    this.#type.value = preferred;
  }

  connectedCallback() {
    if (this.childElementCount > 0) return;
    const reading = READING.map((name) => this.#field(name).element);
    this.#reading.replaceChildren(h("summary", { text: "How the file is read" }), h("div", { class: "grid" }, reading));
    this.replaceChildren(
      h("div", { class: "grid" }, field("Type", this.#type)), this.#params, this.#columns,
      h("datalist", { id: "charsets" }, ["utf-8", "windows-1252", "windows-1250", "utf-16le", "shift_jis", "gb18030"].map((value) => h("option", { value }))),
      this.#reading,
      h("details", { class: "more" }, h("summary", { text: "Limits and priority" }),
        this.#limits,
        h("p", { class: "check" }, this.#dryRun, h("label", { for: "dry-run", text: "Only check the rows, change nothing" }))),
    );
    this.#type.addEventListener("change", () => this.#showType());
    this.#showType();
  }

  get jobType() {
    return this.#type.value;
  }

  get readsFile() {
    return !this.#withoutFile.includes(this.jobType);
  }

  /** @param {string} name */
  #field(name) {
    const known = this.#fields.get(name);
    if (known) return known;
    const { label, hint, control: make } = FIELDS[name];
    const control = make();
    control.name = name;
    const element = field(label, control, hint);
    if (WIDE.has(name)) element.classList.add("wide");
    this.#fields.set(name, { element, control });
    return { element, control };
  }

  /** The params of the type. */
  get #names() {
    return PARAMS[/** @type {keyof typeof PARAMS} */ (this.jobType)] ?? ["params"];
  }

  #showType() {
    this.#params.replaceChildren(...this.#names.map((name) => this.#field(name).element));
    show(this.#reading, this.readsFile);
    this.dispatchEvent(new Event("change", { bubbles: true }));
  }

  /** What the columns of the file are called. @param {string[]} columns */
  suggest(columns) {
    this.#columns.replaceChildren(...columns.map((value) => h("option", { value })));
  }

  /** Writes a schema, if there is a field for one. @param {string} schema @returns {string} what was there before */
  setSchema(schema) {
    if (!this.hasSchema) return "";
    const { control } = this.#field("schema"), before = control.value;
    control.value = schema;
    control.dispatchEvent(new Event("change", { bubbles: true }));
    return before;
  }

  get hasSchema() {
    return this.#names.includes("schema");
  }

  /** Whether something is written. */
  get filled() {
    const controls = [...[...this.#fields.values()].map(({ control }) => control), ...this.#limits.controls];
    return this.#dryRun.checked || controls.some((control) => control.value !== (control instanceof HTMLSelectElement ? control.options[0].value : ""));
  }

  /** The params. @throws {Error} if one is not what it must be */
  params() {
    /** @type {Record<string, any>} */
    let params = {};
    for (const name of [...this.#names, ...(this.readsFile ? READING : [])]) {
      const { label, read } = FIELDS[name];
      const value = read(this.#field(name).control.value, label);
      if (value === undefined) continue;
      if (name === "params") params = { ...params, ...value };
      else params[FIELDS[name].name ?? name] = value;
    }
    if (this.#dryRun.checked) params.dryRun = true;
    return params;
  }

  /** The request that creates the job, without its file. @throws {Error} if a field is not what it must be */
  request() {
    checkFields(this);
    return { jobType: this.jobType, params: this.params(), ...this.#limits.request() };
  }
}

customElements.define("job-params", JobParams);
