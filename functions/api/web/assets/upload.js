// Sends a file: in the request, by one presigned request, or in parts. It can be paused, and a file in parts continues
// where it was, also after the page was closed. Or has the API fetch a file, and watches that.

import * as api from "./api.js";

/**
 * @typedef {object} Presigned
 * @property {string} method
 * @property {string} url
 * @property {Record<string, string>} headers
 */
/** @typedef {Presigned & {partNumber: number, size: number}} Part */
/**
 * @typedef {object} UploadView
 * @property {string} fileGuid
 * @property {"pending" | "fetching" | "ready" | "failed"} status
 * @property {string | null} [fileName]
 * @property {number} size 0 while that of a fetched file is not known
 * @property {Presigned} [upload]
 * @property {Part[]} [parts]
 * @property {number} [partSize]
 * @property {number | null} [nextPart]
 * @property {number} [bytesStored]
 * @property {{url: string}} [source]
 * @property {{code: string, detail: string}} [failure]
 */
/** @typedef {"queued" | "sending" | "fetching" | "paused" | "joining" | "ready" | "failed"} State */

const PARTS_AT_ONCE = 3;
const TRIES = 6;
const KEPT = "rowmill.uploads";
const KEPT_MAX = 20;
/** The speed is that of the last so many milliseconds. */
const WINDOW_MS = 5000;
/** Of a file that is fetched only whole parts are known. */
const FETCH_WINDOW_MS = 30_000;
/** How often a fetch is looked at: so many times soon, then later. */
const SOON_LOOKS = 60;
const SOON_MS = 1000;
const LATER_MS = 5000;

/** The bucket's refusal of a part, or no answer (`status` 0). */
class SendError extends Error {
  /** @param {number} status @param {string} text @param {string | null} retryAfter */
  constructor(status, text, retryAfter) {
    super(`status ${status}`);
    Object.assign(this, { status, text, retryAfter });
  }
}

/** A file on its way. Fires `change`. */
export class Upload extends EventTarget {
  /** @type {State} */
  state = "queued";
  error = "";
  fileGuid = "";
  #stored = 0;
  /** Bytes that are on their way, by request. @type {Map<XMLHttpRequest, number>} */
  #sent = new Map();
  /** @type {{at: number, bytes: number}[]} */
  #recent = [];
  #run = 0;
  /** @type {Part[]} */
  #missing = [];
  /** @type {number | null} */
  #next = null;

  /** @param {File | string} source a file, or the URL of one that the API fetches @param {number} directMaxBytes */
  constructor(source, directMaxBytes) {
    super();
    this.url = typeof source === "string" ? source : "";
    /** Of a URL: its name, without what may be a signature, and its size, NaN while that is not known. */
    this.file = typeof source === "string" ? /** @type {File} */ ({ name: source.split(/[?#]/)[0], size: NaN }) : source;
    this.direct = this.file.size <= directMaxBytes;
  }

  /** Bytes that are stored or sent. */
  get bytes() {
    const sent = [...this.#sent.values()].reduce((sum, bytes) => sum + bytes, 0);
    const bytes = this.#stored + sent;
    return this.state === "ready" || bytes > this.file.size ? this.file.size : bytes;
  }

  /** Bytes a second; NaN if that is not known. */
  get rate() {
    const first = this.#recent[0], last = this.#recent.at(-1);
    return first && last && last.at > first.at ? ((last.bytes - first.bytes) * 1000) / (last.at - first.at) : NaN;
  }

  /** Begins, or goes on. */
  async start() {
    if (["sending", "fetching", "joining", "ready"].includes(this.state)) return;
    const run = ++this.#run;
    this.#recent = [];
    this.#set(this.url ? "fetching" : "sending");
    try {
      await (this.url ? this.#fetch(run) : this.#send(run));
      if (run === this.#run) this.#set("ready");
    } catch (error) {
      if (run !== this.#run) return;
      this.error = api.reason(error);
      this.#stop();
      this.#set("failed");
    }
  }

  /** Stops to send, or to watch. What is stored stays stored. */
  pause() {
    if (!["sending", "fetching"].includes(this.state)) return;
    this.#run += 1;
    this.#stop();
    this.#set("paused");
  }

  /** Stops for ever. */
  async abort() {
    this.pause();
    forget(this.fileGuid);
    if (!this.fileGuid || this.state === "ready") return;
    // An upload that is left lying is deleted by itself.
    await api.call("DELETE", `/api/uploads/${this.fileGuid}`).catch(() => {});
  }

  #stop() {
    for (const request of this.#sent.keys()) request.abort();
    this.#sent.clear();
  }

  /** @param {State} state */
  #set(state) {
    this.state = state;
    this.dispatchEvent(new Event("change"));
  }

  #progress() {
    const now = Date.now();
    this.#recent.push({ at: now, bytes: this.bytes });
    const from = now - (this.url ? FETCH_WINDOW_MS : WINDOW_MS);
    while (this.#recent.length > 2 && this.#recent[1].at < from) this.#recent.shift();
    this.dispatchEvent(new Event("change"));
  }

  /** Has the API fetch the file, and looks until it is stored. @param {number} run */
  async #fetch(run) {
    /** @type {UploadView} */
    let view = await api.post("/api/uploads", { source: { url: this.url } });
    this.fileGuid = view.fileGuid;
    // Aborted when it had no name yet.
    if (run !== this.#run) return this.abort();
    for (let looks = 1; view.status === "fetching"; looks += 1) {
      this.#takeFetched(view);
      await new Promise((done) => setTimeout(done, looks <= SOON_LOOKS ? SOON_MS : LATER_MS));
      if (run !== this.#run) return;
      view = await this.#look(view);
    }
    this.#takeFetched(view);
    if (view.status === "failed") throw new Error(view.failure?.detail ?? "The file cannot be fetched.");
  }

  /** The state of the fetch, or the last known one while the API has no answer. @param {UploadView} known */
  async #look(known) {
    try {
      return await api.get(`/api/uploads/${this.fileGuid}`);
    } catch (error) {
      if (api.isPassing(error)) return known;
      throw error;
    }
  }

  /** @param {UploadView} view */
  #takeFetched({ fileName, source, size, status, bytesStored }) {
    const isKnown = size > 0 || status === "ready";
    this.file = /** @type {File} */ ({ name: fileName ?? source?.url ?? this.file.name, size: isKnown ? size : NaN });
    this.#stored = bytesStored ?? 0;
    this.#progress();
  }

  /** @param {number} run */
  async #send(run) {
    if (this.direct) {
      const path = `/api/uploads?fileName=${encodeURIComponent(this.file.name)}`;
      const headers = await api.headers({ "content-type": "application/octet-stream" });
      const answer = await this.#tried(run, () => ({ method: "POST", url: api.address(path), headers }), this.file);
      this.fileGuid = JSON.parse(answer).fileGuid;
      return;
    }
    const view = await this.#announced();
    if (view.status === "ready" || run !== this.#run) return;
    if (view.upload) {
      const { upload } = view;
      await this.#tried(run, () => upload, this.file);
      return;
    }
    this.#take(view);
    keep(this);
    await Promise.all(Array.from({ length: PARTS_AT_ONCE }, () => this.#sendParts(run, view.partSize ?? 0)));
    if (run !== this.#run) return;
    this.#set("joining");
    await api.post(`/api/uploads/${this.fileGuid}/complete`);
    forget(this.fileGuid);
  }

  /** The upload that the API knows, or a new one. @returns {Promise<UploadView>} */
  async #announced() {
    const known = this.fileGuid || kept(this.file);
    if (known) {
      try {
        const view = await api.get(`/api/uploads/${known}`);
        this.fileGuid = known;
        if (view.status === "ready") return view;
        return { ...view, ...(await api.post(`/api/uploads/${known}/parts`)), bytesStored: view.bytesStored };
      } catch (error) {
        // An upload that has expired, was aborted or is another person's is begun anew.
        if (!(error instanceof api.ApiError) || error.status !== 404) throw error;
        forget(known);
      }
    }
    const { name, size } = this.file;
    const view = await api.post("/api/uploads", { fileName: name, contentType: "application/octet-stream", size });
    this.fileGuid = view.fileGuid;
    return view;
  }

  /** @param {UploadView} view */
  #take(view) {
    this.#missing = [...(view.parts ?? [])];
    this.#next = view.nextPart ?? null;
    const missing = this.#missing.reduce((sum, part) => sum + part.size, 0);
    this.#stored = view.bytesStored ?? (this.#next === null ? this.file.size - missing : 0);
  }

  /** @param {number} run @param {number} partSize */
  async #sendParts(run, partSize) {
    while (run === this.#run) {
      if (this.#missing.length === 0 && this.#next !== null) {
        const from = this.#next;
        this.#next = null;
        const view = await api.post(`/api/uploads/${this.fileGuid}/parts`, { from });
        this.#missing.push(...(view.parts ?? []));
        this.#next = view.nextPart ?? null;
      }
      let part = this.#missing.shift();
      if (!part) return;
      const from = (part.partNumber - 1) * partSize;
      const sign = async () => {
        const number = /** @type {Part} */ (part).partNumber;
        const view = await api.post(`/api/uploads/${this.fileGuid}/parts`, { from: number });
        part = view.parts?.find((/** @type {Part} */ one) => one.partNumber === number) ?? part;
      };
      await this.#tried(run, () => /** @type {Part} */ (part), this.file.slice(from, from + part.size), sign);
      if (run !== this.#run) return;
      this.#stored += part.size;
    }
  }

  /**
   * Sends bytes, again and again while there is hope.
   * @param {number} run
   * @param {() => Presigned} request
   * @param {Blob} bytes
   * @param {() => Promise<void>} [sign] signs the request anew
   * @returns {Promise<string>}
   */
  async #tried(run, request, bytes, sign) {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#request(request(), bytes);
      } catch (error) {
        const { status, text, retryAfter } = /** @type {any} */ (error);
        if (run !== this.#run) return "";
        // The bytes are stored already, by a request whose answer was lost.
        if (status === 412) return "";
        const hopeless = status !== 0 && status !== 429 && status < 500 && !(status === 403 && sign);
        if (hopeless || attempt === TRIES) {
          throw status ? api.refused(status, text, retryAfter) : new Error("The connection was lost. Resume to go on.");
        }
        await new Promise((done) => setTimeout(done, Math.min(500 * 2 ** attempt, 10_000)));
        if (status === 403 && sign) await sign();
      }
      if (run !== this.#run) return "";
    }
  }

  /** One request. `fetch` does not tell how much of a body is sent. @param {Presigned} presigned @param {Blob} bytes */
  #request(presigned, bytes) {
    return new Promise((resolve, reject) => {
      const request = new XMLHttpRequest();
      const end = () => this.#sent.delete(request);
      request.open(presigned.method, presigned.url);
      for (const [name, value] of Object.entries(presigned.headers)) {
        // The browser sets these itself, and lets nobody else set them.
        if (!["content-length", "host"].includes(name.toLowerCase())) request.setRequestHeader(name, value);
      }
      request.upload.addEventListener("progress", (event) => {
        this.#sent.set(request, event.loaded);
        this.#progress();
      });
      request.addEventListener("load", () => {
        end();
        const { status, responseText } = request;
        if (status >= 200 && status < 300) resolve(responseText);
        else reject(new SendError(status, responseText, request.getResponseHeader("retry-after")));
      });
      for (const event of ["error", "abort", "timeout"]) {
        request.addEventListener(event, () => {
          end();
          reject(new SendError(0, "", null));
        });
      }
      this.#sent.set(request, 0);
      request.send(bytes);
    });
  }
}

/** @returns {{fileGuid: string, name: string, size: number, modified: number}[]} */
function all() {
  try {
    return JSON.parse(localStorage.getItem(KEPT) ?? "[]");
  } catch {
    return [];
  }
}

/** @param {Upload} upload */
function keep({ fileGuid, file }) {
  const others = all().filter((one) => one.fileGuid !== fileGuid).slice(-KEPT_MAX);
  const one = { fileGuid, name: file.name, size: file.size, modified: file.lastModified };
  localStorage.setItem(KEPT, JSON.stringify([...others, one]));
}

/** @param {string} fileGuid */
function forget(fileGuid) {
  localStorage.setItem(KEPT, JSON.stringify(all().filter((one) => one.fileGuid !== fileGuid)));
}

/** The unfinished upload of this very file. @param {File} file */
function kept(file) {
  const same = all().findLast((one) => one.name === file.name && one.size === file.size && one.modified === file.lastModified);
  return same?.fileGuid ?? "";
}
