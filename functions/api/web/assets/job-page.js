// One job: how far it is, how fast, what failed, and what can be done.

import * as api from "./api.js";
import { announce, checkFields, dialog, h, setText, show } from "./elements.js";
import { ago, count, date, dollars, rate, span, until } from "./format.js";
import { hasEnded, isNewer, Notice, processed, seconds, state, title } from "./job.js";
import { JobLimits } from "./job-limits.js";
import * as live from "./live.js";
import { Meter } from "./rate.js";
import "./failed-rows.js";
import "./job-files.js";
import "./job-inputs.js";
import "./job-settings.js";
import "./job-tasks.js";

/** @typedef {import("./job.js").JobView} JobView */

const WHY_EVERY_MS = 15_000;
/** Stages whose words say too little. */
const STAGES = { fetching: "waits for its file", listing: "lists its files", after: "waits for another job" };

/** The figures below the bar, in this order. */
const FIGURES = ["Items", "Succeeded", "Failed", "Skipped", "Items per second", "Time left", "Chunks in flight", "Attempt", "Deadline"];

class JobPage extends HTMLElement {
  /** @type {JobView | null} */
  #job = null;
  #etag = "";
  #meter = new Meter();
  /** @type {ReturnType<typeof live.follow> | null} */
  #following = null;
  /** @type {number | undefined} */
  #ticking;
  #heading = h("h1", { text: "Job" });
  #badge = h("state-badge");
  #message = h("p", { class: "message" });
  /** It has its place while it is empty, so that nothing moves when it is told. */
  #why = h("p", { class: "hint why" });
  #askedWhy = 0;
  #bar = h("job-bar", { class: "large" });
  #plot = h("rate-plot", { hidden: true });
  #figures = new Map(FIGURES.map((name) => [name, h("dd", { text: "–" })]));
  #labels = new Map(FIGURES.map((name) => [name, h("dt", { text: name })]));
  #fileName = "";
  #factsShown = "";
  #notice = new Notice();
  #error = new Notice();
  #warnings = h("div", { class: "warnings" });
  #pause = h("button", { type: "button", text: "Pause", hidden: true, on: { click: () => this.#change(this.#pause, "pause") } });
  #resume = h("button", { type: "button", text: "Resume", hidden: true, on: { click: () => this.#change(this.#resume, "resume") } });
  #cancel = h("button", { type: "button", class: "danger", text: "Cancel job", hidden: true, on: { click: () => this.#sure.showModal() } });
  #redrive = h("button", { type: "button", text: "Redrive failed rows", hidden: true, on: { click: () => this.redrive(null) } });
  #retune = h("button", { type: "button", text: "Change limits", hidden: true, on: { click: () => this.#showTuning() } });
  #limits = new JobLimits("as it is", { maxConcurrency: "Running chunks end first, which takes up to 180 seconds by default", deadlineSeconds: "Counted from the creation of the job or its last redrive" });
  #refused = new Notice();
  #apply = h("button", { type: "submit", class: "primary", text: "Apply" });
  #tuning = dialog("tuning", "Change limits", "What is left empty stays as it is. A tolerance replaces the old one as a whole.",
    h("form", { novalidate: true, on: { submit: (/** @type {Event} */ event) => this.#applyLimits(event) } },
      this.#limits, this.#refused,
      h("div", { class: "actions" }, h("button", { type: "button", text: "Close", on: { click: () => this.#tuning.close() } }), this.#apply)));
  #facts = h("dl", { class: "facts" });
  #rows = h("failed-rows");
  #files = h("job-files", { on: { cause: (/** @type {any} */ event) => this.#rows.filter(event.detail) } });
  #inputs = h("job-inputs");
  #settings = h("job-settings");
  #audit = h("job-audit");
  #letters = h("dead-letters");
  #tasks = h("job-tasks");
  #sure = dialog("sure", "Cancel this job?", "What runs comes to its end, what is queued is skipped. Rows that are done stay done.",
    h("form", { method: "dialog", class: "actions" },
      h("button", { value: "", text: "Go on with the job" }), h("button", { value: "cancel", class: "danger filled", text: "Cancel job" })));

  get guid() {
    return this.getAttribute("name") ?? "";
  }

  /** Whether there are corrections that were not sent. */
  get unsaved() {
    return this.#rows.unsaved;
  }

  connectedCallback() {
    document.title = "Job – Rowmill";
    this.replaceChildren(
      h("p", { class: "crumbs" }, h("a", { href: "#/", text: "Jobs" }), h("span", { "aria-hidden": "true", text: " / " }), h("code", { text: this.guid })),
      h("div", { class: "title-line" }, this.#heading, this.#badge, h("div", { class: "actions" }, this.#redrive, this.#retune, this.#pause, this.#resume, this.#cancel)),
      this.#notice,
      h("section", { class: "panel progress-panel", "aria-label": "Progress" },
        this.#message, this.#why, this.#bar,
        h("dl", { class: "figures" }, FIGURES.map((name) => h("div", { class: name.toLowerCase().replaceAll(" ", "-") }, this.#labels.get(name), this.#figures.get(name)))),
        this.#plot),
      this.#error, this.#warnings, this.#files, this.#rows, this.#inputs,
      h("section", { class: "panel" }, h("h2", { text: "Details" }), this.#facts),
      this.#settings, this.#audit, this.#letters, this.#tasks, this.#sure, this.#tuning,
    );
    this.#sure.addEventListener("close", () => this.#sure.returnValue === "cancel" && this.#change(this.#cancel, "cancel"));
    this.#following = live.follow({ jobGuid: this.guid }, (view) => this.#take(view), () => this.#load());
    this.#ticking = setInterval(() => this.#tick(), 1000);
  }

  disconnectedCallback() {
    this.#following?.stop();
    clearInterval(this.#ticking);
  }

  #showTuning() {
    this.#tuning.querySelector("form")?.reset();
    this.#refused.say("");
    this.#tuning.showModal();
  }

  /** Asks for the job; after how long to ask again. */
  async #load() {
    try {
      const answer = await api.call("GET", `/api/jobs/${this.guid}`, { headers: this.#etag ? { "if-none-match": this.#etag } : {} });
      this.#etag = answer.headers.get("etag") ?? "";
      if (answer.status !== 304) this.#take(await answer.json());
      const seconds = Number(answer.headers.get("retry-after"));
      return seconds > 0 ? seconds * 1000 : null;
    } catch (error) {
      if (error instanceof api.ApiError && [400, 404].includes(error.status) && !this.#job) return this.#showNone(error.message);
      if (error instanceof api.ApiError && error.status >= 400 && error.status < 500 && error.status !== 401) this.#notice.say(error.message);
      throw error;
    }
  }

  /** The address is that of no job. @param {string} message */
  #showNone(message) {
    this.#following?.stop();
    document.title = "No such job – Rowmill";
    setText(this.#heading, "No such job");
    this.replaceChildren(h("div", { class: "title-line" }, this.#heading), h("p", { text: message }), h("p", {}, h("a", { href: "#/", text: "Show all jobs" })));
    return null;
  }

  /** @param {JobView} job */
  #take(job) {
    if (!isNewer(this.#job, job)) return;
    const before = this.#job;
    if (!before) void this.#askForName(job);
    this.#job = job;
    if (!hasEnded(job) || (before && !hasEnded(before))) this.#meter.add(job, Date.now());
    this.#show(job);
    if (before && (before.status !== job.status || before.attempt !== job.attempt)) announce(`${this.#title(job)}: ${job.message}`);
  }

  /** @param {JobView} job */
  #show(job) {
    const ended = hasEnded(job);
    document.title = `${ended ? state(job) : `${job.percent}%`} · ${this.#title(job)} – Rowmill`;
    setText(this.#heading, this.#title(job));
    this.#badge.update(job);
    setText(this.#message, job.message);
    this.#bar.update(job);
    const atWork = job.itemsAtWork ? ` (${count(job.itemsAtWork)} items done)` : "";
    const figures = {
      Items: `${count(job.itemProgress)} of ${count(job.itemCount)}${job.itemCountFinal ? "" : "+"}`,
      Succeeded: count(job.itemsSucceeded), Failed: count(job.itemsFailed), Skipped: count(job.itemsSkipped),
      "Chunks in flight": job.status === "paused" ? "–" : `${count(job.chunksInFlight)}${atWork}`, Attempt: count(job.attempt),
    };
    for (const [name, text] of Object.entries(figures)) setText(/** @type {Element} */ (this.#figures.get(name)), text);
    const waitsForSlot = job.stage === "waiting_for_slot";
    show(this.#pause, waitsForSlot || (["waiting", "running"].includes(job.status) && !["stopping", "composing"].includes(job.stage)));
    show(this.#resume, job.status === "paused" && !waitsForSlot);
    show(this.#retune, ["waiting", "running", "paused"].includes(job.status) && job.stage !== "stopping");
    show(this.#cancel, !ended && job.status !== "cancelling");
    show(this.#redrive, ended && job.itemsFailed > 0);
    this.#error.say(job.error ? `${job.error.message}${job.error.row ? ` (row ${count(job.error.row)})` : ""} – ${job.error.code}` : "");
    if (this.#warnings.childElementCount !== job.warnings.length) {
      this.#warnings.replaceChildren(...job.warnings.map(({ message }) => h("p", { class: "notice warn", text: message })));
    }
    const facts = this.#factsOf(job);
    if (this.#factsShown !== String(facts)) {
      this.#factsShown = String(facts);
      this.#facts.replaceChildren(...facts.flatMap(([name, text]) => [h("dt", { text: name }), h("dd", { text })]));
    }
    this.#rows.update(job, this);
    this.#files.update(job);
    this.#inputs.update(job);
    this.#settings.update(job);
    this.#audit.update(job);
    this.#letters.update(job);
    this.#tick();
  }

  /** A job of another client may not note what its file is called, but the upload does. @param {JobView} job */
  async #askForName(job) {
    if (!job.fileGuid || job.metadata?.fileName) return;
    try {
      this.#fileName = (await api.get(`/api/uploads/${job.fileGuid}`)).fileName ?? "";
      if (this.#job) this.#show(this.#job);
    } catch {
      // The upload has expired, or was dropped into the bucket. The job has a name without it.
    }
  }

  /** Asks what holds the job up, now and then. A job that runs as it should needs no line. */
  async #askWhy() {
    if (document.hidden || Date.now() - this.#askedWhy < WHY_EVERY_MS) return;
    this.#askedWhy = Date.now();
    try {
      const { reasons } = await api.get(`/api/jobs/${this.guid}/why`);
      const [reason] = reasons;
      setText(this.#why, !this.#job || hasEnded(this.#job) || reason.code === "running" ? "" : reason.message);
      await this.#tasks.update(this.guid, reasons);
    } catch {
      // It is asked again. Whether the API answers at all is told elsewhere.
    }
  }

  /** @param {JobView} job */
  #title(job) {
    return this.#fileName || title(job);
  }

  /** @param {JobView} job @returns {[string, string][]} */
  #factsOf(job) {
    const notes = Object.entries(job.metadata ?? {}).map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`);
    /** @type {[string, string][]} */
    const facts = [["Type", job.jobType], ["Priority", job.priority ?? "normal"],
      ["Chunks at once", job.maxConcurrency ? count(job.maxConcurrency) : "as many as there are workers"], ["Tolerates", tolerated(job)], ["Stage", STAGES[/** @type {keyof typeof STAGES} */ (job.stage)] ?? job.stage], ["Created", date(job.createdAt)], ["Started", date(job.startedAt)],
      ["First chunk", date(job.firstChunkAt)], ["Last progress", date(job.heartbeatAt)], ["Deadline", date(job.deadlineAt)], ["Ended", date(job.finishedAt)], ["Deleted", date(job.expiresAt)]];
    if (job.cost) facts.push(["AWS list price", `${dollars(job.cost.usd)} (${job.cost.priceRegion})`]);
    if (job.fileGuid) facts.push(["Upload", job.fileGuid]);
    if (job.files != null) facts.push(["Files", count(job.files)]);
    if (job.pause?.reason) facts.push(["Paused because", `${job.pause.reason.message} – ${job.pause.reason.code}`], ["Next look", date(job.pause.nextProbeAt)]);
    if (job.unprocessed) facts.push(["Never dispatched", `from row ${count(job.unprocessed.fromRow)}, byte ${count(job.unprocessed.fromOffset)}`]);
    if (notes.length) facts.push(["Notes", notes.join(", ")]);
    return facts;
  }

  /** Writes what changes with time. */
  #tick() {
    const job = this.#job;
    if (!job) return;
    const ended = hasEnded(job);
    if (ended) {
      setText(this.#why, "");
      show(this.#tasks, false);
    }
    else void this.#askWhy();
    const set = (/** @type {string} */ name, /** @type {string} */ text) => setText(/** @type {Element} */ (this.#figures.get(name)), text);
    // Between two views nothing is known to have changed.
    if (!ended && live.currentMode() !== "lost") this.#meter.add(job, Date.now());
    const paused = job.status === "paused";
    set("Items per second", rate(ended ? average(job) : paused ? NaN : this.#meter.rate));
    set("Time left", span(ended ? seconds(job) : paused ? NaN : this.#meter.left(job)));
    set("Deadline", ended ? ago(/** @type {string} */ (job.finishedAt)) : until(job.deadlineAt));
    setText(/** @type {Element} */ (this.#labels.get("Time left")), ended ? (job.attempt > 1 ? "Last attempt took" : "Took") : "Time left");
    setText(/** @type {Element} */ (this.#labels.get("Deadline")), ended ? "Ended" : "Deadline");
    // A plot that is shown stays, so that nothing moves when a short job ends.
    const plotted = !ended || !this.#plot.hidden;
    show(this.#plot, plotted);
    if (plotted) this.#plot.update(this.#meter, average(job), ended);
  }

  /** @param {HTMLButtonElement} button @param {"cancel" | "pause" | "resume"} how */
  async #change(button, how) {
    await this.#do(button, async () => this.#take(await api.post(`/api/jobs/${this.guid}/${how}`)));
  }

  /** @param {Event} event */
  async #applyLimits(event) {
    event.preventDefault();
    const applied = await this.#do(this.#apply, async () => {
      checkFields(this.#limits);
      this.#take(await (await api.call("PATCH", `/api/jobs/${this.guid}`, { json: this.#limits.request() })).json());
    }, this.#refused);
    if (!applied) return;
    /** @type {HTMLFormElement} */ (event.target).reset();
    this.#tuning.close();
  }

  /**
   * Starts the next attempt.
   * @param {string | null} fileGuid the upload of a corrected file
   */
  async redrive(fileGuid) {
    return this.#do(this.#redrive, async () => {
      this.#take(await api.post(`/api/jobs/${this.guid}/redrive`, fileGuid ? { fileGuid } : {}));
      this.#following?.refresh();
    });
  }

  /** @param {HTMLButtonElement} button @param {() => Promise<void>} work @param {Notice} notice says what went wrong */
  async #do(button, work, notice = this.#notice) {
    button.disabled = true;
    try {
      await work();
      notice.say("");
      return true;
    } catch (error) {
      notice.say(api.reason(error));
      return false;
    } finally {
      button.disabled = false;
    }
  }
}

/** How many failed rows the job tolerates. @param {JobView} job */
function tolerated({ tolerance }) {
  const parts = [tolerance?.count != null && `${count(tolerance.count)} failed rows`, tolerance?.percent != null && `${tolerance.percent}% failed rows`];
  return parts.filter(Boolean).join(", ") || "any number of failed rows";
}

/** Items per second since the job began; NaN after a redrive, as it is not known what the earlier attempts did. @param {JobView} job */
const average = (job) => (job.attempt === 1 ? processed(job) / seconds(job) : NaN);

customElements.define("job-page", JobPage);
