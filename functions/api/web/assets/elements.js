// Makes elements by DOM calls. Text never becomes markup.

/** @typedef {Node | string | number | null | undefined | false} Child */

const SVG = "http://www.w3.org/2000/svg";

/**
 * An element. `class`, `on` (listeners by event) and `text` are what they say, a boolean is an attribute that is there or
 * not, everything else is an attribute with this value.
 * @param {string} tag
 * @param {Record<string, any>} [props]
 * @param {...(Child | Child[])} children
 * @returns {any}
 */
export function h(tag, props = {}, ...children) {
  return filled(document.createElement(tag), props, children);
}

/**
 * An element of SVG, with the same arguments.
 * @param {string} tag
 * @param {Record<string, any>} [props]
 * @param {...(Child | Child[])} children
 * @returns {any}
 */
export function svg(tag, props = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), props, children);
}

function filled(element, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (name === "text") {
      element.textContent = value;
    } else if (value === true) {
      element.setAttribute(name, "");
    } else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, String(value));
    }
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false).map(node));
  return element;
}

function node(child) {
  return child instanceof Node ? child : document.createTextNode(String(child));
}

/**
 * Sets the text of an element, unless it has it already: what has not changed is neither painted nor read out again.
 * @param {Element} element
 * @param {string | number} text
 */
export function setText(element, text) {
  if (element.textContent !== String(text)) element.textContent = String(text);
}

/**
 * Shows an element or hides it.
 * @param {HTMLElement} element
 * @param {boolean} shown
 */
export function show(element, shown) {
  if (element.hidden === shown) element.hidden = !shown;
}

/**
 * A labelled control with a hint below it.
 * @param {string} label
 * @param {HTMLElement} control
 * @param {string} [hint]
 * @returns {HTMLElement}
 */
export function field(label, control, hint) {
  control.id ||= `f${++fields}`;
  const below = hint && h("span", { class: "hint", id: `${control.id}-hint`, text: hint });
  if (below) control.setAttribute("aria-describedby", below.id);
  return h("div", { class: "field" }, h("label", { for: control.id, text: label }), control, below);
}

let fields = 0;

/**
 * A dialog with a heading, a sentence and a form.
 * @param {string} id
 * @param {string} heading
 * @param {string} sentence
 * @param {HTMLFormElement} form
 * @returns {HTMLDialogElement}
 */
export function dialog(id, heading, sentence, form) {
  return h("dialog", { "aria-labelledby": id }, h("h2", { id, text: heading }), h("p", { text: sentence }), form);
}

/**
 * Says something to a screen reader, when it has nothing else to say. For few things: a state that has changed, the end of
 * what was asked for.
 * @param {string} text
 */
export function announce(text) {
  const region = document.getElementById("announcements");
  if (region) setText(region, text);
}

/** Makes a field for one line of text. */
export const text = (/** @type {Record<string, any>} */ props = {}) => () => h("input", { type: "text", autocomplete: "off", spellcheck: "false", ...props });

/** Makes a list of options: values with texts. */
export const select = (/** @type {string[][]} */ options) => () => h("select", {}, options.map(([value, text]) => h("option", { value, text })));

/** The number that is written. */
export const number = (/** @type {string} */ text) => (text.trim() === "" ? undefined : Number(text));

/**
 * Checks the fields of a form.
 * @param {HTMLElement} form
 * @throws {Error} if one is not what it must be
 */
export function checkFields(form) {
  const invalid = /** @type {HTMLInputElement | null} */ (form.querySelector("input:invalid, textarea:invalid"));
  if (!invalid) return;
  invalid.focus();
  const label = form.querySelector(`label[for="${invalid.id}"]`)?.textContent ?? "A field";
  throw new Error(`${label}: ${invalid.validationMessage}`);
}
