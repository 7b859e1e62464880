// A new job: drop files or name a URL, choose what is done with them, look at their first rows, start.

import * as api from "./api.js";
import { announce, checkFields, field, h, setText, show } from "./elements.js";
import { count, size, span } from "./format.js";
import { Notice } from "./job.js";
import { JobParams } from "./job-params.js";
import { FilePreview } from "./file-preview.js";
import { Upload } from "./upload.js";

const FILES_AT_ONCE = 2;
const STATES = { queued: "waiting", sending: "uploading", fetching: "fetching", paused: "paused", joining: "storing", ready: "uploaded", failed: "failed" };

/** A file in the list, with its upload. */
class FileRow {
  #bar = h("span", { class: "good" });
  #progress = h("div", { class: "bar", role: "progressbar", "aria-label": "Upload", "aria-valuemin": 0, "aria-valuemax": 100 }, this.#bar);
  #state = h("span", { class: "hint state" });
  #name = h("strong");
  #size = h("span", { class: "hint" });
  #drop = h("button", { type: "button", class: "quiet", text: "Remove" });
  #pause = h("button", { type: "button", text: "Pause" });
  #job = h("span", { class: "of-job" });
  /** The job that was made of it. */
  jobGuid = "";
  /** Repeats of the same request make one job. */
  key = crypto.randomUUID();

  /** @param {Upload} upload @param {() => void} remove @param {() => void} changed */
  constructor(upload, remove, changed) {
    this.upload = upload;
    this.element = h("li", { class: "file" },
      h("div", { class: "file-name" }, this.#name, this.#size),
      this.#progress, this.#state, h("div", { class: "actions" }, this.#job, this.#pause, this.#drop));
    this.#drop.addEventListener("click", remove);
    this.#pause.addEventListener("click", () => (upload.state === "sending" ? upload.pause() : upload.start()));
    upload.addEventListener("change", () => {
      this.show();
      changed();
    });
    this.show();
  }

  show() {
    const { upload } = this;
    const { name, size: whole } = upload.file;
    const isSizeKnown = !Number.isNaN(whole);
    const percent = whole === 0 ? 100 : Math.floor((upload.bytes / whole) * 100);
    setText(this.#name, name);
    setText(this.#size, isSizeKnown ? size(whole) : "");
    this.#drop.setAttribute("aria-label", `Remove ${name}`);
    // Without a value it is a bar of which nobody knows how far it is.
    if (isSizeKnown) this.#progress.setAttribute("aria-valuenow", String(percent));
    this.#bar.style.width = isSizeKnown ? `${percent}%` : "0";
    this.element.dataset.state = upload.state;
    setText(this.#state, upload.state === "failed" ? upload.error : this.#far(isSizeKnown, percent));
    this.#state.classList.toggle("bad", upload.state === "failed");
    setText(this.#pause, upload.state === "sending" ? "Pause" : "Resume");
    show(this.#pause, ["sending", "paused", "failed"].includes(upload.state));
  }

  /** What it does, how far it is, how fast, how long it takes: what is known of that. @param {boolean} isSizeKnown @param {number} percent */
  #far(isSizeKnown, percent) {
    const { state, url, bytes, rate, file } = this.upload;
    const moves = ["sending", "fetching"].includes(state) && rate > 0;
    const far = [isSizeKnown && `${percent}%`, state === "fetching" && size(bytes), moves && `${size(rate)}/s`,
      moves && isSizeKnown && `${span((file.size - bytes) / rate)} left`];
    return `${url && state === "ready" ? "fetched" : STATES[state]}, ${far.filter(Boolean).join(" · ")}`;
  }

  /** @param {string} jobGuid */
  started(jobGuid) {
    this.jobGuid = jobGuid;
    this.#job.replaceChildren(h("a", { href: `#/jobs/${jobGuid}`, text: "Show its job" }));
  }
}

class NewJob extends HTMLElement {
  /** @type {FileRow[]} */
  #files = [];
  /** Whether all jobs are started. */
  #done = false;
  /** @type {import("./app.js").ClientConfig | null} */
  #config = null;
  #input = h("input", { type: "file", multiple: true, class: "unseen", id: "files", on: { change: () => this.#add(this.#input.files) } });
  #drop = h("div", { class: "drop" },
    h("p", {}, h("label", { for: "files", class: "button", text: "Choose files" }), this.#input, h("span", { text: " or drop them here" })),
    h("p", { class: "hint", text: "CSV, JSON lines, Excel workbook or Parquet; gzip and zstd" }));
  #url = h("input", { type: "url", required: true, maxlength: 2048, autocomplete: "off", spellcheck: "false", placeholder: "https://", "aria-describedby": "url-refused" });
  #refused = h("page-notice", { id: "url-refused" });
  #source = h("form", { class: "source", novalidate: true, on: { submit: (/** @type {Event} */ event) => this.#fetch(event) } },
    field("Or the URL of a file", this.#url), h("button", { type: "submit", text: "Fetch" }), this.#refused);
  #list = h("ul", { class: "uploads", "aria-label": "Files" });
  #form = new JobParams();
  #preview = new FilePreview((schema) => this.#form.setSchema(schema), (columns) => this.#form.suggest(columns));
  #notice = new Notice();
  #start = h("button", { type: "submit", class: "primary", text: "Start job" });
  #hold = h("button", { type: "button", text: "Do not start yet", hidden: true, on: { click: () => this.#want(false) } });
  #together = h("input", { type: "checkbox", on: { change: () => this.#showStart() } });
  #oneJob = h("label", { class: "check one-job", hidden: true }, this.#together, " One job over all files");
  /** Whether the person wants the jobs, although not all files are stored. */
  #wanted = false;
  #starting = false;
  /** @type {number | undefined} */
  #asking;
  /** @param {import("./app.js").ClientConfig} config */
  configure(config) {
    if (!this.#config) this.#form.configure(config.jobTypes, config.jobTypesWithoutFile);
    this.#config = config;
  }

  connectedCallback() {
    document.title = "New job – Rowmill";
    if (this.childElementCount > 0) return;
    this.replaceChildren(h("h1", { text: "New job" }),
      h("div", { class: "new-job" },
        h("section", { class: "panel files-panel", "aria-label": "Files" }, this.#drop, this.#source, this.#list, this.#preview),
        h("form", { class: "panel", novalidate: true, "aria-label": "Job", on: { submit: (/** @type {Event} */ event) => this.#submit(event) } },
          this.#form, this.#oneJob, this.#notice, h("div", { class: "actions" }, this.#start, this.#hold))));
    for (const event of ["dragenter", "dragover"]) this.addEventListener(event, (moved) => this.#over(moved, true));
    for (const event of ["dragleave", "drop"]) this.addEventListener(event, (moved) => this.#over(moved, false));
    this.addEventListener("drop", (event) => this.#add(event.dataTransfer?.files ?? null));
    this.#form.addEventListener("change", () => this.#askForPreview());
    this.#form.addEventListener("input", () => this.#askForPreview());
    this.#showStart();
  }

  /** Whether there is something that no job was made of yet. It stays while another view is shown. */
  get unsaved() {
    return !this.#done && (this.#files.some(({ jobGuid }) => !jobGuid) || this.#form.filled || this.#url.value !== "");
  }

  /** @param {Event} event @param {boolean} over */
  #over(event, over) {
    event.preventDefault();
    this.#drop.classList.toggle("over", over);
  }

  /** @param {FileList | null} files */
  #add(files) {
    const { uploadMaxBytes } = /** @type {import("./app.js").ClientConfig} */ (this.#config).limits;
    for (const file of files ?? []) {
      if (file.size > uploadMaxBytes) {
        this.#notice.say(`${file.name} has ${size(file.size)}; at most ${size(uploadMaxBytes)} are allowed.`);
        continue;
      }
      this.#append(file);
    }
    this.#input.value = "";
    this.#changed();
  }

  /** @param {File | string} source a file or a URL */
  #append(source) {
    const { directMaxBytes } = /** @type {import("./app.js").ClientConfig} */ (this.#config).limits;
    const row = new FileRow(new Upload(source, directMaxBytes), () => this.#remove(row), () => this.#changed());
    this.#files.push(row);
    this.#list.append(row.element);
    return row;
  }

  /** Has the file of the URL fetched. If that fails, the URL is in its field again, to be corrected. @param {Event} event */
  async #fetch(event) {
    event.preventDefault();
    this.#refuse("");
    try {
      checkFields(this.#source);
    } catch (error) {
      return this.#refuse(api.reason(error));
    }
    const url = this.#url.value;
    this.#url.value = "";
    const row = this.#append(url);
    const { upload } = row;
    await upload.start();
    if (upload.state !== "failed") return;
    this.#want(false);
    this.#remove(row);
    this.#url.value ||= url;
    this.#refuse(this.#url.value === url ? upload.error : `${upload.file.name}: ${upload.error}`);
  }

  /** @param {string} why what is wrong with the URL; empty if nothing is */
  #refuse(why) {
    this.#url.setAttribute("aria-invalid", String(why !== ""));
    this.#refused.say(why);
  }

  /** @param {FileRow} row */
  #remove(row) {
    this.#files = this.#files.filter((one) => one !== row);
    row.element.remove();
    if (!row.jobGuid) void row.upload.abort();
    if (this.#files.length === 0) this.#wanted = false;
    this.#changed();
  }

  #changed() {
    const sending = this.#files.filter(({ upload }) => ["sending", "joining"].includes(upload.state)).length;
    const queued = this.#files.filter(({ upload }) => upload.state === "queued");
    for (const { upload } of queued.slice(0, Math.max(0, FILES_AT_ONCE - sending))) void upload.start();
    const first = this.#files.find(({ upload }) => upload.state === "ready");
    if (first?.upload.fileGuid !== this.#preview.fileGuid) this.#askForPreview();
    this.#showStart();
    if (this.#wanted) void this.#create();
  }

  #askForPreview() {
    clearTimeout(this.#asking);
    this.#asking = setTimeout(() => {
      const first = this.#form.readsFile ? this.#files.find(({ upload }) => upload.state === "ready") : undefined;
      let params;
      try {
        params = this.#form.params();
      } catch {
        // Somebody is writing.
        return;
      }
      void this.#preview.show(first?.upload.fileGuid ?? "", first?.upload.file.name ?? "", this.#form.jobType, params, this.#form.hasSchema);
    }, 300);
    this.#showStart();
  }

  #showStart() {
    const files = this.#files.filter((row) => !row.jobGuid).length;
    const needs = this.#form.readsFile;
    show(/** @type {HTMLElement} */ (this.querySelector(".files-panel") ?? this.#drop), needs);
    show(this.#oneJob, needs && files > 1);
    this.#start.disabled = this.#starting || this.#wanted || (needs && files === 0);
    setText(this.#start, this.#wanted ? "Starts when uploaded" : needs && files > 1 && !this.#together.checked ? `Start ${count(files)} jobs` : "Start job");
    show(this.#hold, this.#wanted && !this.#starting);
  }

  /** @param {Event} event */
  #submit(event) {
    event.preventDefault();
    this.#notice.say("");
    this.#want(true);
    void this.#create(true);
  }

  /** @param {boolean} wanted */
  #want(wanted) {
    this.#wanted = wanted;
    this.#showStart();
  }

  /** Creates a job for each file that is stored, or one for all of them. @param {boolean} [first] whether the API has not seen this request yet */
  async #create(first = false) {
    if (this.#starting) return;
    try {
      const request = { ...this.#form.request() };
      this.#starting = true;
      if (!this.#form.readsFile) return await this.#open(await this.#post(request, crypto.randomUUID()));
      const isStored = (/** @type {FileRow} */ { upload, jobGuid }) => upload.state === "ready" && !jobGuid;
      // What is wrong without the file is told at once, and not when the file is stored.
      if (first && !this.#files.some(isStored)) await api.call("POST", "/api/jobs/estimate", { json: request });
      const open = this.#files.filter((row) => !row.jobGuid);
      if (this.#together.checked && open.length > 1) {
        if (this.#wanted && open.every(isStored)) await this.#createOne(request, open);
        return;
      }
      for (let row; (row = this.#files.find(isStored)); ) {
        // No file system has longer names, and the metadata of a job has room for 255 of any characters.
        const metadata = { fileName: row.upload.file.name.slice(0, 255) };
        row.started(await this.#post({ ...request, fileGuid: row.upload.fileGuid, metadata }, row.key));
      }
      const left = this.#files.filter((row) => !row.jobGuid);
      if (left.length > 0 || !this.#wanted) return;
      this.#wanted = false;
      announce("The job is started.");
      await this.#open(this.#files.length === 1 ? this.#files[0].jobGuid : "");
    } catch (error) {
      this.#wanted = false;
      // A request that was refused is another one when it is corrected.
      for (const row of this.#files) if (!row.jobGuid) row.key = crypto.randomUUID();
      this.#notice.say(api.reason(error));
    } finally {
      this.#starting = false;
      this.#showStart();
    }
  }

  /** Creates one job over these files. @param {object} request @param {FileRow[]} rows */
  async #createOne(request, rows) {
    const metadata = { fileName: `${rows[0].upload.file.name.slice(0, 200)} and ${count(rows.length - 1)} more` };
    const source = { files: rows.map(({ upload }) => upload.fileGuid) };
    const job = await this.#post({ ...request, source, metadata }, rows[0].key);
    for (const row of rows) row.started(job);
    this.#wanted = false;
    announce("The job is started.");
    await this.#open(job);
  }

  /** @param {object} request @param {string} key */
  async #post(request, key) {
    return (await api.post("/api/jobs", request, { "idempotency-key": key })).jobGuid;
  }

  /** @param {string} jobGuid */
  async #open(jobGuid) {
    this.#done = true;
    // A user who went to another view stays there.
    if (this.isConnected) location.hash = jobGuid ? `#/jobs/${jobGuid}` : "#/";
  }
}

customElements.define("new-job", NewJob);
