// The frame of the page: who is signed in, which view is shown, how jobs are followed.

import * as api from "./api.js";
import { h, setText, show } from "./elements.js";
import { Notice } from "./job.js";
import * as live from "./live.js";
import * as session from "./sign-in.js";
import "./datasets.js";
import "./job-list.js";
import "./job-page.js";
import "./new-job.js";

/**
 * @typedef {object} ClientConfig
 * @property {boolean} live
 * @property {import("./sign-in.js").SignIn | null} signIn
 * @property {string} bucketOrigin
 * @property {{directMaxBytes: number, uploadMaxBytes: number}} limits
 * @property {string[]} jobTypes
 * @property {string[]} jobTypesWithoutFile
 */

const MODES = { live: "Live", polling: "Polling", lost: "No connection", idle: "" };

/** The elements of the views, by their addresses. */
const PAGES = new Map([["jobs/…", "job-page"], ["new", "new-job"], ["datasets", "dataset-list"], ["datasets/…", "dataset-page"]]);

class RowmillPage extends HTMLElement {
  /** @type {ClientConfig | null} */
  #config = null;
  /** Views by their address: the one that is shown, and those that were left with something unsaved. @type {Map<string, any>} */
  #views = new Map();
  #mode = h("span", { class: "mode", title: "How this page follows the jobs" });
  #person = h("span", { class: "person" });
  #signOut = h("button", { type: "button", class: "quiet", text: "Sign out", hidden: true, on: { click: () => this.#leave() } });
  #lost = h("div", { class: "lost", role: "status", hidden: true, text: "The connection is lost. What you see may be old; the page tries again by itself." });
  #main = h("main", { id: "content" });
  #links = [
    h("a", { href: "#/", text: "Jobs" }),
    h("a", { href: "#/new", text: "New job" }),
    h("a", { href: "#/datasets", text: "Datasets" }),
  ];

  connectedCallback() {
    // The document has the header with the name, which is painted before this script is here.
    const header = /** @type {HTMLElement} */ (this.querySelector("header"));
    header.append(h("nav", { "aria-label": "Views" }, this.#links), h("div", { class: "status" }, this.#mode, this.#person, this.#signOut));
    this.prepend(h("a", { class: "skip-link", href: "#content", text: "Skip to the content", on: { click: (/** @type {Event} */ event) => { event.preventDefault(); this.#focus(); } } }));
    this.append(
      this.#lost, this.#main,
      h("div", { id: "announcements", class: "unseen", role: "status", "aria-live": "polite" }),
    );
    addEventListener("hashchange", () => this.#route(true));
    addEventListener("beforeunload", (event) => {
      if ([...this.#views.values()].some((view) => view.unsaved)) event.preventDefault();
    });
    live.events.addEventListener("mode", () => this.#showMode());
    api.events.addEventListener("reachable", () => this.#showMode());
    api.events.addEventListener("unauthorized", () => this.#askToSignIn());
    this.#showMode();
    void this.#begin();
  }

  async #begin() {
    try {
      this.#config = /** @type {ClientConfig} */ (await api.get("/api/client-config"));
      session.configure(this.#config.signIn);
      live.configure(this.#config.live);
      await session.finish();
    } catch (error) {
      this.#refuse(api.reason(error), this.#config ? "Sign in" : "");
      if (!this.#config) setTimeout(() => this.#begin(), 3000);
      return;
    }
    this.#showPerson();
    this.#route(false);
  }

  /** @param {boolean} moved whether the person went to another view, and the focus goes with them */
  #route(moved) {
    if (!this.#config) return;
    const [path, query = ""] = location.hash.slice(1).split("?");
    const [, view = "", name = ""] = path.split("/");
    const shown = this.#view(view, name);
    if ("show" in shown) shown.show(new URLSearchParams(query));
    this.#links.forEach((link) => {
      const current = link.getAttribute("href") === `#/${view}` && !name;
      if (current) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    });
    if (shown.isConnected) return;
    this.#main.replaceChildren(shown);
    scrollTo(0, 0);
    if (moved) this.#focus();
  }

  /** The view of an address. One that holds something unsaved is the one that was left. @param {string} view @param {string} name */
  #view(view, name) {
    const tag = PAGES.get(`${view}${name ? "/…" : ""}`) ?? "job-list";
    const key = `${tag} ${name}`;
    for (const [other, left] of this.#views) if (!left.unsaved && (other !== key || !left.isConnected)) this.#views.delete(other);
    const shown = this.#views.get(key) ?? h(tag, name ? { name } : {});
    if (!this.#views.has(key) && "configure" in shown) shown.configure(this.#config);
    this.#views.set(key, shown);
    return shown;
  }

  #focus() {
    const heading = this.#main.querySelector("h1");
    heading?.setAttribute("tabindex", "-1");
    heading?.focus({ preventScroll: true });
  }

  #showMode() {
    const mode = live.currentMode();
    setText(this.#mode, MODES[mode]);
    show(this.#mode, mode !== "idle");
    this.#mode.className = `mode ${mode}`;
    show(this.#lost, mode === "lost");
  }

  #showPerson() {
    setText(this.#person, session.person());
    show(this.#signOut, session.person() !== "");
  }

  #askToSignIn() {
    const was = session.person();
    session.end();
    live.disconnect();
    this.#showPerson();
    if (session.isPossible()) this.#refuse(was ? "Your sign-in has ended. Sign in again to go on." : "Sign in to see your jobs.", "Sign in");
    else this.#refuse("The API asks for a token, and this stack lets nobody sign in on the page: its setting PageClientId is empty.", "");
  }

  #leave() {
    session.end();
    live.disconnect();
    this.#views.clear();
    this.#showPerson();
    this.#refuse("You are signed out.", "Sign in again", true);
  }

  /** @param {string} text @param {string} action @param {boolean} [again] */
  #refuse(text, action, again = false) {
    const notice = new Notice();
    const start = () => session.start(again).catch((error) => notice.say(api.reason(error)));
    this.#main.replaceChildren(h("section", { class: "gate" },
      h("h1", { text: "Rowmill" }), h("p", { text }), notice,
      action && session.isPossible() && h("button", { type: "button", class: "primary", text: action, on: { click: start } })));
  }
}

customElements.define("rowmill-page", RowmillPage);
