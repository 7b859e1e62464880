// How fast a job is, and the plot of it. What is kept does not grow with the job.

import { h, setText, show, svg } from "./elements.js";
import { rate as perSecond, span } from "./format.js";
import { hasEnded, processed } from "./job.js";

/** @typedef {import("./job.js").JobView} JobView */

/** Fewer points say less than their average. */
const POINTS_MIN = 5;
const POINTS_MAX = 120;
/** A plot with fewer points begins further right. */
const SHORT = 30;
const STEP_MS = 1000;
/** The speed that is told is that of the last so many milliseconds. */
const WINDOW_MS = 6000;

/** The speed of one attempt, from the views of its job. */
export class Meter {
  /** Items per second, one point for each step. @type {number[]} */
  points = [];
  /** Milliseconds of a step. It doubles when there are too many points. */
  step = STEP_MS;
  /** @type {{at: number, items: number, percent: number}[]} */
  #recent = [];
  #attempt = 0;
  #stepFrom = { at: 0, items: 0 };

  /** @param {JobView} job @param {number} now in milliseconds */
  add(job, now) {
    const items = processed(job);
    if (job.attempt !== this.#attempt) this.#begin(job, now);
    if (["waiting", "paused"].includes(job.status)) {
      this.#recent = [];
      this.#stepFrom = { at: now, items };
      return;
    }
    this.#recent.push({ at: now, items, percent: job.percent });
    while (this.#recent.length > 2 && this.#recent[1].at < now - WINDOW_MS) this.#recent.shift();
    const passed = now - this.#stepFrom.at, done = (items - this.#stepFrom.items) * 1000, last = this.points.length - 1;
    if (passed >= this.step) {
      // A page that was hidden is called less often.
      for (let left = passed; left >= this.step; left -= this.step) this.#push(done / passed);
    } else if (hasEnded(job) && last >= 0) {
      this.points[last] = (this.points[last] * this.step + done) / (this.step + passed);
    } else return;
    this.#stepFrom = { at: now, items };
  }

  /** The time before this page watched is drawn as its average. Of a later attempt it is not known. @param {JobView} job @param {number} now */
  #begin(job, now) {
    const items = processed(job);
    const passed = job.attempt === 1 && job.startedAt ? Math.max(Date.parse(job.heartbeatAt) - Date.parse(job.startedAt), 0) : 0;
    const perMs = passed > 0 ? items / passed : 0;
    this.#attempt = job.attempt;
    [this.points, this.step, this.#recent] = [[], STEP_MS, []];
    while (passed > POINTS_MAX * this.step) this.step *= 2;
    this.points = Array(Math.floor(passed / this.step)).fill(perMs * 1000);
    const rest = passed % this.step;
    this.#stepFrom = { at: now - rest, items: items - perMs * rest };
  }

  /** @param {number} speed */
  #push(speed) {
    this.points.push(speed);
    if (this.points.length > POINTS_MAX) this.#halve();
  }

  #halve() {
    const halved = [];
    for (let index = 0; index < this.points.length; index += 2) {
      const next = this.points[index + 1] ?? this.points[index];
      halved.push((this.points[index] + next) / 2);
    }
    this.points = halved;
    this.step *= 2;
  }

  /** Items per second now; NaN if that is not known yet. */
  get rate() {
    const first = this.#recent[0], last = this.#recent.at(-1);
    if (!first || !last || last.at - first.at < 500) return NaN;
    return ((last.items - first.items) * 1000) / (last.at - first.at);
  }

  /** Seconds until all known items are done, NaN if that cannot be told. @param {JobView} job */
  left(job) {
    const first = this.#recent[0], last = this.#recent.at(-1);
    if (job.itemCountFinal && job.attempt === 1 && this.rate > 0) return (job.itemCount - job.itemProgress) / this.rate;
    const percents = first && last ? ((last.percent - first.percent) * 1000) / (last.at - first.at) : NaN;
    return percents > 0 ? (100 - job.percent) / percents : NaN;
  }
}

/** Items per second over time. */
export class RatePlot extends HTMLElement {
  #area = svg("path", { class: "area" });
  #line = svg("path", { class: "line" });
  #top = h("span", { class: "top" });
  #from = h("span", { class: "from" });
  #to = h("span", { class: "to" });
  #plain = h("p", { class: "plain" });
  #image = svg(
    "svg", { viewBox: `0 0 ${POINTS_MAX} 40`, preserveAspectRatio: "none", role: "img", "aria-label": "Items per second over time" },
    svg("line", { class: "grid", x1: 0, y1: 20, x2: POINTS_MAX, y2: 20 }), this.#area, this.#line,
  );

  connectedCallback() {
    this.replaceChildren(h("span", { class: "caption", text: "Items per second" }), this.#top, this.#plain, this.#image, this.#from, this.#to);
  }

  /** @param {Meter} meter @param {number} average items per second, NaN if it is not known @param {boolean} ended */
  update(meter, average, ended) {
    const points = meter.points, plotted = points.length >= POINTS_MIN;
    const known = Number.isFinite(average);
    this.#image.toggleAttribute("hidden", !plotted);
    show(this.#plain, !plotted);
    setText(this.#plain, known ? `${perSecond(average)} on average` : "–");
    // Steps are longer than bursts, so the fastest step may look slower than the job was on average.
    const highest = Math.max(1, ...points, known ? average : 0);
    setText(this.#top, plotted ? `${known ? `average ${perSecond(average)}, ` : ""}highest ${perSecond(highest)}` : "");
    setText(this.#from, plotted ? `${span((points.length * meter.step) / 1000)} before` : "");
    setText(this.#to, !plotted ? "" : ended ? "end" : "now");
    if (!plotted) return;
    // The newest point is at the right edge. A short plot does not fill the width.
    const width = POINTS_MAX / (Math.max(points.length, SHORT) - 1);
    const first = POINTS_MAX - (points.length - 1) * width;
    const line = points.map((value, index) => `${(first + index * width).toFixed(1)},${(38 - (value / highest) * 36).toFixed(1)}`);
    this.#line.setAttribute("d", `M${line.join("L")}`);
    this.#area.setAttribute("d", `M${first.toFixed(1)},40L${line.join("L")}L${POINTS_MAX},40Z`);
  }
}

customElements.define("rate-plot", RatePlot);
