// Reads the text of failed rows, and writes corrected rows as the API takes them.

/**
 * How the items of a job are read, as the API tells it.
 * @typedef {object} ItemTable
 * @property {"csv" | "jsonl" | "text"} format
 * @property {string | null} delimiter
 * @property {string[]} columns
 * @property {string[]} correctedHeader
 */

/** What a spreadsheet would run. The API takes one apostrophe off such a cell. */
const FORMULA = /^'*[=+\-@\t\r\n＝＋－＠]/;

/**
 * The cells of one record of CSV.
 * @param {string} text
 * @param {string} delimiter
 * @returns {string[]}
 */
export function cells(text, delimiter) {
  const found = [];
  let at = 0;
  for (;;) {
    let cell = "";
    if (text[at] === '"') {
      at += 1;
      for (;;) {
        const quote = text.indexOf('"', at);
        if (quote < 0) return [...found, cell + text.slice(at)];
        cell += text.slice(at, quote);
        at = quote + 1;
        if (text[at] !== '"') break;
        cell += '"';
        at += 1;
      }
    }
    const end = text.indexOf(delimiter, at);
    if (end < 0) return [...found, cell + text.slice(at)];
    found.push(cell + text.slice(at, end));
    at = end + 1;
  }
}

/** @param {string} cell @param {string} delimiter */
function quoted(cell, delimiter) {
  const escaped = FORMULA.test(cell) ? `'${cell}` : cell;
  return /["\r\n]/.test(escaped) || escaped.includes(delimiter) ? `"${escaped.replaceAll('"', '""')}"` : escaped;
}

/**
 * A corrected file: the rows that were corrected, each with its number.
 * @param {ItemTable} table
 * @param {Map<number, string[]>} rows the cells of each row; if it is not CSV, its text as the only cell
 * @throws {Error} if a row is no JSON object where it must be one
 */
export function correctedFile(table, rows) {
  if (table.format === "text") {
    return [...rows].map(([row, [raw]]) => `${JSON.stringify({ row, raw })}\n`).join("");
  }
  if (table.format === "jsonl") {
    return [...rows].map(([row, [text]]) => `{"row":${row},"record":${object(row, text)}}\n`).join("");
  }
  const delimiter = table.delimiter ?? ",";
  const line = (/** @type {string[]} */ cells) => cells.map((cell) => quoted(cell, delimiter)).join(delimiter) + "\n";
  return line(table.correctedHeader) + [...rows].map(([row, cells]) => line([...cells, String(row)])).join("");
}

/** The text of an object, on one line. Its numbers keep every digit. @param {number} row @param {string} text */
function object(row, text) {
  let value;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(`Row ${row} is not JSON: ${/** @type {Error} */ (error).message}`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error(`Row ${row} is not a JSON object.`);
  return text.trim().replace(/[\r\n]+/g, " ");
}
