// Follows jobs: by WebSocket where the stack pushes, else, and while the connection is lost, by polling.

import * as api from "./api.js";

/** @typedef {import("./job.js").JobView} JobView */

/**
 * @typedef {object} Topic
 * @property {{jobGuid: string} | {jobs: "mine"}} subject What the API calls it.
 * @property {(view: JobView) => void} onView
 * @property {() => Promise<number | null>} poll Asks the API; after how many milliseconds to ask again, `null` for never.
 * @property {boolean} subscribed
 * @property {number} failures
 * @property {number | undefined} timer
 */

const PING_MS = 4 * 60_000;
/** How long a connection may be silent about a topic before it is asked for once more. */
const SILENT_MS = 15_000;
const WAIT_MAX_MS = 20_000;

/** @type {Set<Topic>} */
const topics = new Set();
/** Fires `mode`: `live`, `polling`, `lost`, or `idle` while nothing is followed. */
export const events = new EventTarget();

/** @type {WebSocket | null} */
let socket = null;
let pushes = false;
let failures = 0;
let connecting = false;
/** @type {number | undefined} */
let pinging;
/** @type {"live" | "polling" | "lost" | "idle"} */
let mode = "idle";

/** @param {boolean} live whether the stack pushes */
export function configure(live) {
  pushes = live;
}

/** Ends the connection: it is that of the user who was signed in. */
export function disconnect() {
  const closed = socket;
  socket = null;
  clearInterval(pinging);
  for (const topic of topics) topic.subscribed = false;
  closed?.close();
  update();
}

/** How jobs are followed now. */
export const currentMode = () => mode;

/**
 * Follows a subject until the returned function is called. `poll` is called at once, and again whenever nothing is pushed.
 * @param {Topic["subject"]} subject
 * @param {(view: JobView) => void} onView
 * @param {() => Promise<number | null>} poll
 * @returns {{stop: () => void, refresh: () => void}}
 */
export function follow(subject, onView, poll) {
  /** @type {Topic} */
  const topic = { subject, onView, poll, subscribed: false, failures: 0, timer: undefined };
  topics.add(topic);
  subscribe(topic);
  ask(topic);
  update();
  void connect();
  return {
    stop() {
      topics.delete(topic);
      clearTimeout(topic.timer);
      send({ action: "unsubscribe", ...subject });
      update();
    },
    refresh: () => ask(topic),
  };
}

/** @param {Topic} topic */
async function ask(topic) {
  clearTimeout(topic.timer);
  /** @type {number | null} */
  let wait;
  try {
    wait = await topic.poll();
    topic.failures = 0;
  } catch (error) {
    if (error instanceof api.ApiError && [401, 403, 404].includes(error.status)) return;
    topic.failures += 1;
    const asked = error instanceof api.ApiError ? error.retryAfter * 1000 : 0;
    wait = Math.max(asked, backoff(topic.failures));
  }
  if (!topics.has(topic)) return;
  clearTimeout(topic.timer);
  if (wait === null) return;
  if (topic.subscribed && topic.failures === 0) wait = Math.max(wait, SILENT_MS);
  // Nobody looks at a hidden page.
  if (document.hidden) wait = Math.max(wait, WAIT_MAX_MS);
  topic.timer = setTimeout(() => ask(topic), wait);
}

/** @param {number} failures */
function backoff(failures) {
  const longest = Math.min(1000 * 2 ** (failures - 1), WAIT_MAX_MS);
  return longest / 2 + Math.random() * (longest / 2);
}

async function connect() {
  if (!pushes || socket || connecting || topics.size === 0) return;
  connecting = true;
  try {
    const { url, ticket } = await api.post("/api/live/tickets");
    open(`${url}?ticket=${encodeURIComponent(ticket)}`);
  } catch (error) {
    // A gateway has no WebSocket, even if the stack has one.
    if (error instanceof api.ApiError && error.status === 404) pushes = false;
    else later();
  } finally {
    connecting = false;
  }
}

function later() {
  failures += 1;
  setTimeout(connect, backoff(failures));
}

/** @param {string} url */
function open(url) {
  const opened = new WebSocket(url);
  socket = opened;
  opened.addEventListener("open", () => {
    failures = 0;
    for (const topic of topics) subscribe(topic);
    clearInterval(pinging);
    pinging = setInterval(() => send({ action: "ping" }), PING_MS);
  });
  opened.addEventListener("message", (event) => receive(JSON.parse(event.data)));
  opened.addEventListener("close", () => {
    if (socket !== opened) return;
    socket = null;
    clearInterval(pinging);
    for (const topic of topics) {
      topic.subscribed = false;
      ask(topic);
    }
    update();
    later();
  });
}

/** @param {Topic} topic */
function subscribe(topic) {
  send({ action: "subscribe", ...topic.subject });
}

/** @param {object} message */
function send(message) {
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
}

/** @param {any} message */
function receive(message) {
  if (message.type === "subscribed" || message.type === "error") {
    for (const topic of topics) {
      const same = "jobs" in topic.subject ? message.jobs : message.jobGuid === topic.subject.jobGuid && message.jobGuid;
      if (same) topic.subscribed = message.type === "subscribed";
    }
    update();
  }
  if (!message.job) return;
  for (const topic of topics) {
    if (!("jobs" in topic.subject) && topic.subject.jobGuid !== message.job.jobGuid) continue;
    topic.onView(message.job);
    // What is pushed need not be asked for.
    if (topic.subscribed && topic.timer !== undefined && !("jobs" in topic.subject)) {
      clearTimeout(topic.timer);
      if (message.type !== "ended") topic.timer = setTimeout(() => ask(topic), SILENT_MS);
    }
  }
}

let reachable = true;

function update() {
  const live = [...topics].some((topic) => topic.subscribed);
  const now = !reachable ? "lost" : live ? "live" : topics.size > 0 ? "polling" : "idle";
  if (now === mode) return;
  mode = now;
  events.dispatchEvent(new CustomEvent("mode", { detail: mode }));
}

api.events.addEventListener("reachable", (event) => {
  reachable = /** @type {CustomEvent} */ (event).detail;
  update();
});

function now() {
  failures = 0;
  for (const topic of topics) if (topic.timer !== undefined || topic.failures > 0) ask(topic);
  void connect();
}

addEventListener("online", now);
// Whether the API can be reached all the same, as on this machine, is found out by asking it.
addEventListener("offline", () => topics.forEach(ask));
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) now();
});
