// A new job: drop files, choose what is done with them, look at their first rows, start.

import * as api from "./api.js";
import { announce, h, setText, show } from "./elements.js";
import { count, size, span } from "./format.js";
import { Notice } from "./job.js";
import { JobParams } from "./job-params.js";
import { FilePreview } from "./file-preview.js";
import { Upload } from "./upload.js";

const FILES_AT_ONCE = 2;
const STATES = { queued: "waiting", sending: "uploading", paused: "paused", joining: "storing", ready: "uploaded", failed: "failed" };

/** A file in the list, with its upload. */
class FileRow {
  #bar = h("span", { class: "good" });
  #progress = h("div", { class: "bar", role: "progressbar", "aria-label": "Upload", "aria-valuemin": 0, "aria-valuemax": 100 }, this.#bar);
  #state = h("span", { class: "hint state" });
  #pause = h("button", { type: "button", text: "Pause" });
  #job = h("span", { class: "of-job" });
  /** The job that was made of it. */
  jobGuid = "";
  /** Repeats of the same request make one job. */
  key = crypto.randomUUID();

  /** @param {Upload} upload @param {() => void} remove @param {() => void} changed */
  constructor(upload, remove, changed) {
    this.upload = upload;
    const drop = h("button", { type: "button", class: "quiet", text: "Remove", "aria-label": `Remove ${upload.file.name}`, on: { click: remove } });
    this.element = h("li", { class: "file" },
      h("div", { class: "file-name" }, h("strong", { text: upload.file.name }), h("span", { class: "hint", text: size(upload.file.size) })),
      this.#progress, this.#state, h("div", { class: "actions" }, this.#job, this.#pause, drop));
    this.#pause.addEventListener("click", () => (upload.state === "sending" ? upload.pause() : upload.start()));
    upload.addEventListener("change", () => {
      this.show();
      changed();
    });
    this.show();
  }

  show() {
    const { upload } = this;
    const percent = upload.file.size ? Math.floor((upload.bytes / upload.file.size) * 100) : 100;
    this.#bar.style.width = `${percent}%`;
    this.#progress.setAttribute("aria-valuenow", String(percent));
    this.element.dataset.state = upload.state;
    const speed = upload.state === "sending" && upload.rate > 0
      ? ` · ${size(upload.rate)}/s · ${span((upload.file.size - upload.bytes) / upload.rate)} left` : "";
    setText(this.#state, upload.state === "failed" ? upload.error : `${STATES[upload.state]}, ${percent}%${speed}`);
    this.#state.classList.toggle("bad", upload.state === "failed");
    setText(this.#pause, upload.state === "sending" ? "Pause" : "Resume");
    show(this.#pause, ["sending", "paused", "failed"].includes(upload.state));
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
  #list = h("ul", { class: "uploads", "aria-label": "Files" });
  #form = new JobParams();
  #preview = new FilePreview((schema) => this.#form.setSchema(schema), (columns) => this.#form.suggest(columns));
  #notice = new Notice();
  #start = h("button", { type: "submit", class: "primary", text: "Start job" });
  #hold = h("button", { type: "button", text: "Do not start yet", hidden: true, on: { click: () => this.#want(false) } });
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
        h("section", { class: "panel files-panel", "aria-label": "Files" }, this.#drop, this.#list, this.#preview),
        h("form", { class: "panel", novalidate: true, "aria-label": "Job", on: { submit: (/** @type {Event} */ event) => this.#submit(event) } },
          this.#form, this.#notice, h("div", { class: "actions" }, this.#start, this.#hold))));
    for (const event of ["dragenter", "dragover"]) this.addEventListener(event, (moved) => this.#over(moved, true));
    for (const event of ["dragleave", "drop"]) this.addEventListener(event, (moved) => this.#over(moved, false));
    this.addEventListener("drop", (event) => this.#add(event.dataTransfer?.files ?? null));
    this.#form.addEventListener("change", () => this.#askForPreview());
    this.#form.addEventListener("input", () => this.#askForPreview());
    this.#showStart();
  }

  /** Whether there is something that no job was made of yet. It stays while another view is shown. */
  get unsaved() {
    return !this.#done && (this.#files.some(({ jobGuid }) => !jobGuid) || this.#form.filled);
  }

  /** @param {Event} event @param {boolean} over */
  #over(event, over) {
    event.preventDefault();
    this.#drop.classList.toggle("over", over);
  }

  /** @param {FileList | null} files */
  #add(files) {
    const { directMaxBytes, uploadMaxBytes } = /** @type {import("./app.js").ClientConfig} */ (this.#config).limits;
    for (const file of files ?? []) {
      if (file.size > uploadMaxBytes) {
        this.#notice.say(`${file.name} has ${size(file.size)}; at most ${size(uploadMaxBytes)} are allowed.`);
        continue;
      }
      const row = new FileRow(new Upload(file, directMaxBytes), () => this.#remove(row), () => this.#changed());
      this.#files.push(row);
      this.#list.append(row.element);
    }
    this.#input.value = "";
    this.#changed();
  }

  /** @param {FileRow} row */
  #remove(row) {
    this.#files = this.#files.filter((one) => one !== row);
    row.element.remove();
    if (!row.jobGuid) void row.upload.abort();
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
    this.#start.disabled = this.#starting || this.#wanted || (needs && files === 0);
    setText(this.#start, this.#wanted ? "Starts when uploaded" : needs && files > 1 ? `Start ${count(files)} jobs` : "Start job");
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

  /** Creates a job for each file that is stored. @param {boolean} [first] whether the API has not seen this request yet */
  async #create(first = false) {
    if (this.#starting) return;
    try {
      const request = { ...this.#form.request() };
      this.#starting = true;
      if (!this.#form.readsFile) return await this.#open(await this.#post(request, crypto.randomUUID()));
      const isStored = (/** @type {FileRow} */ { upload, jobGuid }) => upload.state === "ready" && !jobGuid;
      // What is wrong without the file is told at once, and not when the file is stored.
      if (first && !this.#files.some(isStored)) await api.call("POST", "/api/jobs/estimate", { json: request });
      for (let row; (row = this.#files.find(isStored)); ) {
        // No file system has longer names, and the metadata of a job has room for 255 of any characters.
        const metadata = { fileName: row.upload.file.name.slice(0, 255) };
        row.started(await this.#post({ ...request, fileGuid: row.upload.fileGuid, metadata }, row.key));
      }
      const left = this.#files.filter((row) => !row.jobGuid);
      if (left.length > 0) return;
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
