// How fast a job is, and the plot of it. What is kept does not grow with the job.

import { h, setText, svg } from "./elements.js";
import { rate as perSecond, span } from "./format.js";

/** @typedef {import("./job.js").JobView} JobView */

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
    if (job.attempt !== this.#attempt) {
      this.#attempt = job.attempt;
      this.points = [];
      this.step = STEP_MS;
      this.#recent = [];
      this.#stepFrom = { at: now, items: job.itemProgress };
    }
    const items = job.itemProgress;
    this.#recent.push({ at: now, items, percent: job.percent });
    while (this.#recent.length > 2 && this.#recent[1].at < now - WINDOW_MS) this.#recent.shift();
    const passed = now - this.#stepFrom.at;
    if (passed >= this.step) {
      this.points.push(((items - this.#stepFrom.items) * 1000) / passed);
      this.#stepFrom = { at: now, items };
      if (this.points.length > POINTS_MAX) this.#halve();
    }
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
  #image = svg(
    "svg", { viewBox: `0 0 ${POINTS_MAX} 40`, preserveAspectRatio: "none", role: "img", "aria-label": "Items per second over time" },
    svg("line", { class: "grid", x1: 0, y1: 20, x2: POINTS_MAX, y2: 20 }), this.#area, this.#line,
  );

  connectedCallback() {
    this.replaceChildren(h("span", { class: "caption", text: "Items per second" }), this.#top, this.#image, this.#from, this.#to);
  }

  /** @param {Meter} meter @param {boolean} ended */
  update(meter, ended) {
    const points = meter.points;
    const highest = Math.max(1, ...points);
    setText(this.#top, points.length ? `highest ${perSecond(highest)}` : "");
    setText(this.#from, points.length ? `${span((points.length * meter.step) / 1000)} before` : "");
    setText(this.#to, ended ? "end" : "now");
    if (points.length < 2) {
      this.#line.removeAttribute("d");
      this.#area.removeAttribute("d");
      return;
    }
    // The newest point is at the right edge. A short plot does not fill the width.
    const width = POINTS_MAX / (Math.max(points.length, SHORT) - 1);
    const first = POINTS_MAX - (points.length - 1) * width;
    const line = points.map((value, index) => `${(first + index * width).toFixed(1)},${(38 - (value / highest) * 36).toFixed(1)}`);
    this.#line.setAttribute("d", `M${line.join("L")}`);
    this.#area.setAttribute("d", `M${first.toFixed(1)},40L${line.join("L")}L${POINTS_MAX},40Z`);
  }
}

customElements.define("rate-plot", RatePlot);
