// Calls of the API: with the token of the user who is signed in, and with problems as errors.

import * as session from "./sign-in.js";

/**
 * @typedef {object} Problem
 * @property {string} code
 * @property {string} detail
 * @property {string} [field]
 */

/** The API's refusal, or no answer at all (`status` 0). */
export class ApiError extends Error {
  /**
   * @param {number} status
   * @param {string} detail
   * @param {{code?: string, field?: string, retryAfter?: number}} [more]
   */
  constructor(status, detail, more = {}) {
    super(detail);
    this.status = status;
    this.code = more.code ?? "";
    this.field = more.field ?? "";
    this.retryAfter = more.retryAfter ?? 0;
  }
}

/** Tells whether the API can be reached (`reachable`), and that it wants a token (`unauthorized`). */
export const events = new EventTarget();

let reachable = true;

/** @param {boolean} now */
function setReachable(now) {
  if (now === reachable) return;
  reachable = now;
  events.dispatchEvent(new CustomEvent("reachable", { detail: now }));
}

/** The address of a path of the API. The page may lie below a path, as on the local stack. */
export const address = (/** @type {string} */ path) => new URL(path.replace(/^\//, ""), document.baseURI).href;

/**
 * The headers of a request, with the token if there is one.
 * @param {Record<string, string>} [headers]
 */
export async function headers(headers = {}) {
  const token = await session.token();
  return token ? { ...headers, authorization: `Bearer ${token}` } : headers;
}

/**
 * Calls the API.
 * @param {string} method
 * @param {string} path
 * @param {{json?: any, body?: BodyInit, headers?: Record<string, string>, signal?: AbortSignal}} [options]
 * @returns {Promise<Response>} a response with status 2xx or 304
 */
export async function call(method, path, options = {}) {
  const sent = { ...options.headers };
  if (options.json !== undefined) sent["content-type"] = "application/json";
  let response;
  try {
    const body = options.json === undefined ? options.body : JSON.stringify(options.json);
    response = await fetch(address(path), {
      method, body, headers: await headers(sent), signal: options.signal, cache: "no-store", credentials: "omit",
    });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    setReachable(false);
    throw new ApiError(0, "The API cannot be reached.");
  }
  setReachable(true);
  if (response.ok || response.status === 304) return response;
  throw refused(response.status, await response.text(), response.headers.get("retry-after"));
}

/**
 * The error of an answer, also of one that API Gateway gives itself.
 * @param {number} status
 * @param {string} text
 * @param {string | null} retryAfter
 */
export function refused(status, text, retryAfter) {
  /** @type {Partial<Problem> & {message?: string}} */
  let problem = {};
  try {
    problem = JSON.parse(text);
  } catch {
    // Not a problem document.
  }
  if (status === 401) events.dispatchEvent(new CustomEvent("unauthorized"));
  const detail = problem.detail ?? problem.message ?? `The API answered with status ${status}.`;
  const seconds = Number(retryAfter) || 0;
  return new ApiError(status, detail, { code: problem.code, field: problem.field, retryAfter: seconds });
}

/** @param {string} path @param {AbortSignal} [signal] */
export const get = async (path, signal) => (await call("GET", path, { signal })).json();

/** @param {string} path @param {any} [json] @param {Record<string, string>} [headers] */
export const post = async (path, json, headers) => (await call("POST", path, { json, headers })).json();

/**
 * Whether the same request may succeed a little later.
 * @param {unknown} error
 */
export const isPassing = (error) => error instanceof ApiError && (error.status === 0 || error.status === 429 || error.status >= 500);

/**
 * Why something failed, for a person.
 * @param {unknown} error
 */
export const reason = (error) => (error instanceof Error ? error.message : String(error));
