// A job as the API shows it, and the parts in which the list and the job's own page show it.

import { h, setText, show } from "./elements.js";
import { count } from "./format.js";

/**
 * @typedef {object} JobView
 * @property {string} jobGuid
 * @property {string} jobType
 * @property {string | null} fileGuid
 * @property {string} [priority]
 * @property {number | null} [maxConcurrency]
 * @property {{count?: number | null, percent?: number | null} | null} [tolerance]
 * @property {number | null} files how many files it reads, if many
 * @property {"waiting" | "running" | "paused" | "cancelling" | "completed" | "failed" | "cancelled"} status
 * @property {"succeeded" | "partial" | "failed" | "empty" | null} outcome
 * @property {string} stage
 * @property {string} message
 * @property {number} percent
 * @property {number} itemCount
 * @property {boolean} itemCountFinal
 * @property {number} itemProgress
 * @property {number} itemsSucceeded
 * @property {number} itemsFailed
 * @property {number} itemsSkipped
 * @property {number} chunksInFlight
 * @property {number | null} [itemsAtWork]
 * @property {{usd: number, priceRegion: string} | null} [cost]
 * @property {number} attempt
 * @property {string} createdAt
 * @property {string | null} startedAt
 * @property {string | null} firstChunkAt
 * @property {string} heartbeatAt
 * @property {string} deadlineAt
 * @property {string | null} finishedAt
 * @property {string | null} expiresAt
 * @property {{by: string, reason: {code: string, message: string, since: string} | null, nextProbeAt: string | null} | null} pause
 * @property {{code: string, message: string, row: number | null, offset: number | null} | null} error
 * @property {{code: string, message: string}[]} warnings
 * @property {{fromRow: number, fromOffset: number} | null} unprocessed
 * @property {Record<string, any> | null} metadata
 * @property {string | null} [undoneBy]
 * @property {number} [version]
 */

/** What a badge can say, with its colour, and what the API calls these jobs. */
export const STATES = {
  waiting: { tone: "idle", query: { status: "waiting" } },
  running: { tone: "busy", query: { status: "running" } },
  paused: { tone: "idle", query: { status: "paused" } },
  cancelling: { tone: "busy", query: { status: "cancelling" } },
  completed: { tone: "good", query: { outcome: "succeeded" } },
  "some failed": { tone: "warn", query: { outcome: "partial" } },
  "all failed": { tone: "bad", query: { outcome: "failed" } },
  "nothing to do": { tone: "warn", query: { outcome: "empty" } },
  failed: { tone: "bad", query: { status: "failed" } },
  cancelled: { tone: "idle", query: { status: "cancelled" } },
};

/** @param {JobView} job */
export const hasEnded = (job) => job.finishedAt !== null;

/** What people call a job: its file, or its type. @param {JobView} job */
export const title = (job) => (typeof job.metadata?.fileName === "string" ? job.metadata.fileName : `${job.jobType} job`);

/**
 * Whether a view may replace the one that is shown. What is older comes late at times, by another way.
 * @param {JobView | null} shown
 * @param {JobView} view
 */
export function isNewer(shown, view) {
  if (!shown || shown.jobGuid !== view.jobGuid) return true;
  if (shown.version !== undefined && view.version !== undefined) return view.version >= shown.version;
  return view.attempt > shown.attempt || (view.attempt === shown.attempt && (!hasEnded(shown) || hasEnded(view)));
}

/** The state of a job, a word of `STATES`. @param {JobView} job @returns {keyof typeof STATES} */
export function state(job) {
  if (job.status !== "completed") return job.status;
  const outcomes = /** @type {const} */ ({ partial: "some failed", failed: "all failed", empty: "nothing to do", succeeded: "completed" });
  return outcomes[job.outcome ?? "succeeded"] ?? "completed";
}

/**
 * Seconds that an ended job took, or that another one has taken so far; NaN if it has not begun. Of a job that was run again these
 * are the seconds of its last attempt.
 * @param {JobView} job
 */
export function seconds(job) {
  const began = job.attempt > 1 ? job.firstChunkAt : job.startedAt;
  return ((job.finishedAt ? Date.parse(job.finishedAt) : Date.now()) - Date.parse(began ?? "")) / 1000;
}

/** Items that were processed: a skipped one took no work. @param {JobView} job */
export const processed = (job) => job.itemsSucceeded + job.itemsFailed;

/** The state of a job as a badge. */
export class StateBadge extends HTMLElement {
  /** @param {JobView} job */
  update(job) {
    const word = state(job);
    const tone = STATES[word]?.tone ?? "idle";
    setText(this, word);
    if (this.className !== `badge ${tone}`) this.className = `badge ${tone}`;
  }
}

/** How far a job is: its items in the colours of their outcomes, over the percentage that is done. */
export class JobBar extends HTMLElement {
  #parts = ["good", "bad", "skip"].map((tone) => h("span", { class: tone }));
  #bar = h("div", { class: "bar", role: "progressbar", "aria-label": "Progress", "aria-valuemin": 0, "aria-valuemax": 100 }, this.#parts);
  #percent = h("span", { class: "percent" });

  connectedCallback() {
    this.replaceChildren(this.#bar, this.#percent);
  }

  /** @param {JobView} job */
  update(job) {
    const counts = [job.itemsSucceeded, job.itemsFailed, job.itemsSkipped];
    const all = Math.max(job.itemProgress, 1);
    // A job that stopped early shows how far it came.
    const done = hasEnded(job) && job.itemProgress > 0 && job.percent === 0 ? 100 : job.percent;
    counts.forEach((items, index) => {
      const width = `${((items / all) * done).toFixed(2)}%`;
      if (this.#parts[index].style.width !== width) this.#parts[index].style.width = width;
    });
    setText(this.#percent, state(job) === "nothing to do" ? "–" : `${job.percent}%`);
    this.#bar.setAttribute("aria-valuenow", String(job.percent));
    this.#bar.setAttribute("aria-valuetext", `${job.percent}%, ${count(job.itemsSucceeded)} succeeded, ${count(job.itemsFailed)} failed, ${count(job.itemsSkipped)} skipped`);
  }
}

/** A message about the whole job or a request: what is wrong, and what to do. */
export class Notice extends HTMLElement {
  #text = h("p");

  connectedCallback() {
    this.replaceChildren(this.#text);
    if (!this.#text.textContent) show(this, false);
  }

  /** @param {string} text @param {"bad" | "warn" | "good"} [tone] */
  say(text, tone = "bad") {
    this.className = `notice ${tone}`;
    this.setAttribute("role", tone === "bad" ? "alert" : "status");
    setText(this.#text, text);
    show(this, text !== "");
  }
}

customElements.define("state-badge", StateBadge);
customElements.define("job-bar", JobBar);
customElements.define("page-notice", Notice);

/** The name of a cause of failed rows. @param {any} cause */
export const nameOf = ({ code, column, rule }) => [code, column, rule].filter(Boolean).join(", ");
