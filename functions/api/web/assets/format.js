// How numbers, times and sizes are written.

const NUMBER = new Intl.NumberFormat("en");
const DATE = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const SIZES = ["bytes", "KiB", "MiB", "GiB", "TiB"];

/** @param {number} value */
export const count = (value) => NUMBER.format(value);

/** @param {number} bytes */
export function size(bytes) {
  let unit = 0;
  while (bytes >= 1024 && unit < SIZES.length - 1) {
    bytes /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? bytes : bytes.toFixed(bytes < 10 ? 2 : 1)} ${SIZES[unit]}`;
}

/** @param {number} seconds */
export function span(seconds) {
  if (!Number.isFinite(seconds) || seconds < 0) return "–";
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  if (whole < 172800) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  return `${Math.floor(whole / 86400)} days`;
}

/**
 * Dollars with three digits that count, and at least cents.
 * @param {number} usd
 */
export function dollars(usd) {
  const places = 2 - Math.floor(Math.log10(Math.max(usd, 1e-9)));
  return `$${usd.toFixed(Math.min(Math.max(places, 2), 9))}`;
}

/** @param {number} perSecond */
export function rate(perSecond) {
  if (!Number.isFinite(perSecond)) return "–";
  return perSecond < 10 ? perSecond.toFixed(1) : count(Math.round(perSecond));
}

/** @param {string | null} time */
export const date = (time) => (time ? DATE.format(new Date(time)) : "–");

/**
 * How long ago, in a few words.
 * @param {string} time
 */
export function ago(time) {
  const seconds = (Date.now() - Date.parse(time)) / 1000;
  if (seconds < 5) return "now";
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  return new Date(time).toLocaleDateString();
}

/**
 * How long until a time, or "passed".
 * @param {string} time
 */
export function until(time) {
  const seconds = (Date.parse(time) - Date.now()) / 1000;
  return seconds > 0 ? `in ${span(seconds)}` : "passed";
}

/** @param {string} guid */
export const short = (guid) => guid.slice(-8);
