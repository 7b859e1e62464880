// The list of jobs: the newest first, a page at a time, and live.

import * as api from "./api.js";
import { field, h, setText, show } from "./elements.js";
import { ago, count, date, short, span } from "./format.js";
import { hasEnded, isNewer, Notice, seconds, state, STATES, title } from "./job.js";
import * as live from "./live.js";

/** @typedef {import("./job.js").JobView} JobView */

const PAGE = 25;

/** A job in the list. It keeps its elements, and changes what has changed. */
class JobRow {
  #badge = h("state-badge");
  #bar = h("job-bar");
  #link = h("a", { class: "name" });
  #type = h("span", { class: "type" });
  #items = h("td", { class: "number" });
  #failed = h("td", { class: "number" });
  #created = h("td", { class: "time" });
  #took = h("td", { class: "time" });
  element = h("tr", {}, h("td", {}, this.#badge), h("td", { class: "job" }, this.#link, this.#type), h("td", { class: "progress" }, this.#bar),
    this.#items, this.#failed, this.#created, this.#took);
  /** @type {JobView | null} */
  job = null;

  /** @param {JobView} job */
  update(job) {
    if (!isNewer(this.job, job)) return;
    this.job = job;
    this.#badge.update(job);
    this.#bar.update(job);
    this.#link.href = `#/jobs/${job.jobGuid}`;
    setText(this.#link, title(job));
    this.#link.title = title(job);
    const priority = (job.priority ?? "normal") === "normal" ? "" : ` · ${job.priority} priority`;
    setText(this.#type, `${job.jobType} · ${short(job.jobGuid)}${priority}${job.attempt > 1 ? ` · attempt ${job.attempt}` : ""}`);
    setText(this.#items, count(job.itemProgress));
    setText(this.#failed, job.itemsFailed ? count(job.itemsFailed) : "–");
    this.#failed.classList.toggle("some", job.itemsFailed > 0);
    this.#created.title = date(job.createdAt);
    this.#took.title = job.attempt > 1 ? "The last attempt" : "";
    this.tick();
  }

  /** Writes the times anew. */
  tick() {
    if (!this.job) return;
    setText(this.#created, ago(this.job.createdAt));
    setText(this.#took, span(seconds(this.job)));
  }
}

class JobList extends HTMLElement {
  /** @type {Map<string, JobRow>} */
  #rows = new Map();
  /** What is shown, as the address says it: the words of `state` and `type`, and where this page and those before it begin. */
  #query = new URLSearchParams();
  /** @type {string | null} */
  #next = null;
  #body = h("tbody");
  #empty = h("div", { class: "empty", hidden: true });
  #notice = new Notice();
  #newer = h("button", { type: "button", text: "Newer", on: { click: () => this.#turn(-1) } });
  #older = h("button", { type: "button", text: "Older", on: { click: () => this.#turn(1) } });
  #pages = h("div", { class: "pages" }, this.#newer, this.#older);
  /** @type {ReturnType<typeof live.follow> | null} */
  #following = null;
  /** @type {number | undefined} */
  #ticking;
  #state = h("select", { on: { change: () => this.#choose("state", this.#state.value) } });
  #type = h("select", { on: { change: () => this.#choose("type", this.#type.value) } });
  #loaded = false;

  /** @param {import("./app.js").ClientConfig} config */
  configure(config) {
    const options = (/** @type {string[]} */ values) => ["", ...values].map((value) => h("option", { value, text: value || "all" }));
    this.#state.replaceChildren(...options(Object.keys(STATES)));
    this.#type.replaceChildren(...options(config.jobTypes));
  }

  connectedCallback() {
    document.title = "Jobs – Rowmill";
    const columns = ["Status", "Job", "Progress", "Items", "Failed", "Created", "Took"];
    const kinds = ["", "", "", "number", "number", "time", "time"];
    this.replaceChildren(
      h("div", { class: "title-line" }, h("h1", { text: "Jobs" }),
        h("div", { class: "filters" }, field("Status", this.#state), field("Type", this.#type)),
        h("a", { class: "button primary", href: "#/new", text: "New job" })),
      this.#notice,
      h("div", { class: "scroll", role: "region", "aria-label": "Jobs", tabindex: 0 },
        h("table", { class: "jobs" },
          h("thead", {}, h("tr", {}, columns.map((text, index) => h("th", { scope: "col", class: kinds[index], text })))), this.#body)),
      this.#empty, this.#pages,
    );
    this.#ticking = setInterval(() => { for (const row of this.#rows.values()) row.tick(); }, 1000);
    this.show(this.#query);
  }

  disconnectedCallback() {
    this.#following?.stop();
    clearInterval(this.#ticking);
  }

  /** Shows what the address asks for. @param {URLSearchParams} query */
  show(query) {
    this.#query = query;
    if (!this.isConnected) return;
    [this.#state.value, this.#type.value] = [query.get("state") ?? "", query.get("type") ?? ""];
    this.#following?.stop();
    this.#rows.clear();
    this.#loaded = false;
    this.#showState();
    this.#following = live.follow({ jobs: "mine" }, (view) => this.#push(view), () => this.#load());
  }

  get #after() {
    return this.#query.getAll("after");
  }

  /** @param {"state" | "type"} name @param {string} value */
  #choose(name, value) {
    const query = new URLSearchParams(this.#query);
    query.delete("after");
    if (value) query.set(name, value);
    else query.delete(name);
    this.#go(query);
  }

  /** @param {1 | -1} step */
  #turn(step) {
    const query = new URLSearchParams(this.#query), after = this.#after;
    query.delete("after");
    for (const one of step === 1 ? [...after, this.#next ?? ""] : after.slice(0, -1)) query.append("after", one);
    this.#go(query);
  }

  /** All that is chosen stands in the address, so that going back, loading again and a link bring it back. @param {URLSearchParams} query */
  #go(query) {
    location.hash = `#/?${query}`;
  }

  /** Asks for the page; after how long to ask again. */
  async #load() {
    const asked = this.#query;
    const query = new URLSearchParams({ limit: String(PAGE), ...STATES[/** @type {keyof typeof STATES} */ (this.#state.value)]?.query });
    if (this.#type.value) query.set("jobType", this.#type.value);
    if (this.#after.length) query.set("after", this.#after.at(-1) ?? "");
    try {
      const page = await api.get(`/api/jobs?${query}`);
      if (asked !== this.#query) return null;
      this.#next = page.next;
      this.#loaded = true;
      this.#show(page.jobs);
      this.#notice.say("");
      return page.jobs.some((/** @type {JobView} */ job) => !hasEnded(job)) ? 1500 : 4000;
    } catch (error) {
      if (error instanceof api.ApiError && error.status > 0 && error.status !== 401) this.#notice.say(error.message);
      throw error;
    }
  }

  /** @param {JobView[]} jobs */
  #show(jobs) {
    for (const job of jobs) this.#row(job).update(job);
    const wanted = jobs.map((job) => this.#row(job).element);
    const listed = new Set(jobs.map((job) => job.jobGuid));
    for (const guid of this.#rows.keys()) if (!listed.has(guid)) this.#rows.delete(guid);
    // Rows that stay where they are keep focus and selection.
    wanted.forEach((row, index) => {
      if (this.#body.children[index] !== row) this.#body.insertBefore(row, this.#body.children[index] ?? null);
    });
    while (this.#body.children.length > wanted.length) this.#body.lastElementChild?.remove();
    this.#showState();
  }

  #showState() {
    show(this.#newer, this.#after.length > 0);
    show(this.#older, this.#next !== null);
    show(this.#pages, this.#after.length > 0 || this.#next !== null);
    // While another page or choice loads, the jobs of the last one stay.
    const none = this.#rows.size === 0 && (this.#loaded || this.#body.children.length === 0);
    show(this.#empty, none);
    if (!none) return;
    if (!this.#loaded) {
      this.#empty.replaceChildren(h("p", { text: "Loading…" }));
      return;
    }
    const filtered = this.#state.value || this.#type.value;
    this.#empty.replaceChildren(h("p", { text: filtered ? "No job is like this." : "There are no jobs yet." }),
      filtered ? "" : h("p", {}, h("a", { href: "#/new", text: "Drop a file" }), " to start the first one."));
  }

  /** @param {JobView} job */
  #row(job) {
    const row = this.#rows.get(job.jobGuid) ?? new JobRow();
    this.#rows.set(job.jobGuid, row);
    return row;
  }

  /** A job that was pushed. @param {JobView} job */
  #push(job) {
    const known = this.#rows.get(job.jobGuid);
    const { value: word } = this.#state, { value: type } = this.#type;
    const fits = (!word || state(job) === word) && (!type || job.jobType === type);
    if (known && fits) return known.update(job);
    if (!this.#loaded || (!known && (!fits || this.#after.length > 0))) return;
    if (known) {
      known.element.remove();
      this.#rows.delete(job.jobGuid);
      return this.#showState();
    }
    // The newest come first, and guids grow with time. What is older than the page is not shown.
    const others = [...this.#rows.values()].map((row) => /** @type {JobView} */ (row.job));
    const jobs = [...others, job].sort((one, other) => (one.jobGuid < other.jobGuid ? 1 : -1)).slice(0, PAGE);
    this.#show(jobs);
  }
}

customElements.define("job-list", JobList);
