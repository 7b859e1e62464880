// The results of an ended job, its audit and its dead letters.

import * as api from "./api.js";
import { h } from "./elements.js";
import { count, date, size } from "./format.js";
import { hasEnded, nameOf, Notice } from "./job.js";

/** @typedef {import("./job.js").JobView} JobView */

const RELOAD_MS = 3000;
const FIELDS_SHOWN = 10;
const WAITING = "They are here when the job has ended.";
const KINDS = { failedRows: "failed rows", unprocessedRows: "rows that were not processed", output: "output", files: "the files that were read" };

/** The files of the results, with links. */
class JobFiles extends HTMLElement {
  #shown = "?";
  #expires = 0;
  #list = h("ul", { class: "files" });
  #changes = h("div");
  #causes = h("div", { class: "scroll" });
  #notice = new Notice();
  /** @type {JobView | null} */
  #job = null;

  connectedCallback() {
    this.replaceChildren(h("section", { class: "panel" }, h("h2", { text: "Results" }), this.#notice, this.#changes, this.#causes, this.#list));
  }

  /** @param {JobView} job */
  update(job) {
    this.#job = job;
    const key = hasEnded(job) ? `${job.jobGuid} ${job.attempt} ${job.status}` : "";
    if (key && key !== this.#shown) void this.#load();
    else if (!key && this.#shown !== key) this.#list.replaceChildren(h("li", { class: "hint", text: WAITING }));
    if (!key) [this.#changes, this.#causes].forEach((part) => part.replaceChildren());
    this.#shown = key;
  }

  async #load() {
    try {
      const results = await api.get(`/api/jobs/${this.#job?.jobGuid}/results`);
      this.#expires = Date.parse(results.expiresAt);
      const manifest = { ...results.manifest, kind: "", items: undefined };
      this.#list.replaceChildren(...[...results.files, manifest].map((file) => this.#file(file)));
      this.#changes.replaceChildren(...changesOf(results.changes, this.#job?.jobType ?? ""));
      this.#causes.replaceChildren(...causesOf(results.causes ?? [], results.otherCauses ?? 0, (cause) => this.#redrive(cause),
        (cause) => this.dispatchEvent(new CustomEvent("cause", { detail: cause }))));
      this.#notice.say(results.leftOut.map((/** @type {any} */ one) => `${one.file}: ${one.message}`).join(" "), "warn");
    } catch (error) {
      this.#list.replaceChildren();
      this.#notice.say(api.reason(error), "warn");
      if (api.isPassing(error)) setTimeout(() => this.isConnected && this.#load(), RELOAD_MS);
    }
  }

  /** @param {any} cause the one whose rows run again */
  async #redrive({ code, column, rule }) {
    try {
      await api.post(`/api/jobs/${this.#job?.jobGuid}/redrive`, { select: { causes: [{ code, column, rule }] } });
      this.#causes.replaceChildren();
    } catch (error) {
      this.#notice.say(api.reason(error), "warn");
    }
  }

  /** @param {any} file */
  #file(file) {
    const items = file.items === undefined ? "" : `${count(file.items)} ${file.items === 1 ? "row" : "rows"}, `;
    const kind = KINDS[/** @type {keyof typeof KINDS} */ (file.kind)] ?? file.kind;
    const click = async (/** @type {Event} */ event) => {
      if (Date.now() < this.#expires - 5000) return;
      // Links live for an hour.
      event.preventDefault();
      await this.#load();
      /** @type {HTMLAnchorElement | null} */ (this.querySelector(`a[data-name="${CSS.escape(file.name)}"]`))?.click();
    };
    return h("li", {}, h("a", { href: file.url, download: file.fileName, "data-name": file.name, text: file.name, on: { click } }),
      h("span", { class: "hint", text: `${kind ? `${kind}, ` : ""}${items}${size(file.bytes)}` }));
  }
}

/**
 * What a dry run of an import would change, or what an undo or a prune has changed.
 * @param {any} changes
 * @param {string} jobType
 */
function changesOf(changes, jobType) {
  if (!changes) return [];
  const { create, update, unchanged, fields, reversed = 0, kept = 0, remove = 0 } = changes;
  const named = fields.slice(0, FIELDS_SHOWN).map((/** @type {any} */ field) => [`Field ${field.name}`, field.items]);
  const [said, facts] = {
    undo: ["Records of the job that was undone. changes.jsonl names who has changed those that were kept:", [["Reversed", reversed], ["Kept", kept]]],
    prune: ["Records that were there before the import and are not in its file. changes.jsonl names them:", [["Missing", remove]]],
  }[jobType] ?? ["This was a dry run: nothing was written. Rows by what they would do to the records:",
    [["Would create", create], ["Would update", update], ["Would leave unchanged", unchanged], ...named]];
  return [h("p", { text: said }),
    h("dl", { class: "facts changes" }, facts.flatMap((/** @type {any} */ [name, items]) => [h("dt", { text: name }), h("dd", { text: count(items) })]))];
}

/**
 * Why rows failed, the most frequent cause first.
 * @param {any[]} causes
 * @param {number} other
 * @param {(cause: any) => void} redrive
 * @param {(cause: any) => void} filter
 */
function causesOf(causes, other, redrive, filter) {
  if (causes.length === 0) return [];
  const button = (/** @type {any} */ cause, /** @type {string} */ text, /** @type {(cause: any) => void} */ click) =>
    h("button", { type: "button", text, "aria-label": `${text} the rows that failed for ${nameOf(cause)}`, on: { click: () => click(cause) } });
  const row = (/** @type {any} */ cause) => h("tr", {},
    h("td", { class: "number", text: count(cause.items) }), h("td", { text: cause.code }), h("td", { text: cause.column ?? "" }),
    h("td", { text: cause.rule ?? "" }), h("td", { text: cause.examples.map((/** @type {any} */ one) => `row ${count(one.row)}: ${one.message}`)[0] ?? "" }),
    h("td", { class: "actions" }, button(cause, "Show", filter), button(cause, "Redrive", redrive)));
  const heads = ["rows", "code", "column", "rule", "for example", "these rows"].map((text) => h("th", { scope: "col", text }));
  const more = other ? [h("p", { class: "hint", text: `and ${count(other)} rows of other causes` })] : [];
  return [h("table", { "aria-label": "Causes of failed rows" }, h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}, ...causes.map(row))), ...more];
}

/** The messages of a job that a queue gave up on. They are asked for when somebody wants to see them. */
class DeadLetters extends HTMLElement {
  #guid = "";
  #body = h("div", { class: "scroll" });
  #details = h("details", { class: "panel", on: { toggle: () => this.#details.open && this.#load() } },
    h("summary", {}, h("h2", { text: "Dead letters" })), this.#body);

  connectedCallback() {
    this.replaceChildren(this.#details);
  }

  /** @param {JobView} job */
  update(job) {
    this.#guid = job.jobGuid;
  }

  async #load() {
    try {
      const { deadLetters } = await api.get(`/api/jobs/${this.#guid}/dead-letters`);
      this.#body.replaceChildren(deadLetters.length === 0 ? h("p", { text: "No queue gave up on a message of this job." }) : table(deadLetters));
    } catch (error) {
      this.#body.replaceChildren(h("p", { text: api.reason(error) }));
    }
  }
}

const VERDICTS = {
  proved: "Proved: every chunk is accounted for exactly once.",
  proved_in_part: "Proved, with the tallies of earlier attempts whose objects have expired.",
  active: "Nothing is wrong so far. The job has not ended.",
  refuted: "Refuted: something does not hold.",
};

/** The audit of a job, made when somebody asks for it. */
class JobAudit extends HTMLElement {
  #guid = "";
  #notice = new Notice();
  #figures = h("dl", { class: "facts" });
  #button = h("button", { type: "button", text: "Audit this job", on: { click: () => this.#audit() } });

  connectedCallback() {
    this.replaceChildren(h("section", { class: "panel" }, h("h2", { text: "Audit" }),
      h("p", { class: "hint", text: "Recomputes the counts from everything that is stored." }), this.#button, this.#notice, this.#figures));
  }

  /** @param {JobView} job */
  update(job) {
    this.#guid = job.jobGuid;
  }

  async #audit() {
    this.#button.disabled = true;
    try {
      const path = `/api/jobs/${this.#guid}/audit`;
      let proof = await api.get(path);
      while (proof.verdict === "continues" && this.isConnected) proof = await api.get(`${path}?after=${encodeURIComponent(proof.next)}`);
      const said = VERDICTS[/** @type {keyof typeof VERDICTS} */ (proof.verdict)] ?? proof.verdict;
      this.#notice.say(proof.finding ? `${said} ${proof.finding.message}` : said, proof.finding ? "bad" : "good");
      const facts = [["Items", proof.itemCount], ["Chunks", proof.chunks], ["Committed", proof.chunksCommitted],
        ["Skipped without a run", proof.chunksSkipped], ["Open", proof.chunksOpen]].map(([name, number]) => [name, count(number)]);
      this.#figures.replaceChildren(...[...facts, ["Digest", proof.digest]].flatMap(([name, text]) => [h("dt", { text: name }), h("dd", { text })]));
    } catch (error) {
      this.#figures.replaceChildren();
      this.#notice.say(api.reason(error));
    } finally {
      this.#button.disabled = false;
    }
  }
}

/** @param {any[]} letters */
function table(letters) {
  const columns = ["Recorded", "About", "Attempt", "First row", "Rows"];
  return h("table", {}, h("thead", {}, h("tr", {}, columns.map((text) => h("th", { scope: "col", text })))),
    h("tbody", {}, letters.map(({ at, about, attempt, chunk }) => h("tr", {},
      [date(at), about, attempt, chunk ? count(chunk.firstRow) : "–", chunk ? count(chunk.items) : "–"].map((text) => h("td", { text }))))));
}

customElements.define("job-files", JobFiles);
customElements.define("job-audit", JobAudit);
customElements.define("dead-letters", DeadLetters);
