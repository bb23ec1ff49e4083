// Tables that sort: each heading is a button, which sorts by its column, then the other way round, then not at all.
import { make } from "./common.js";

const text = cell => [cell ?? ""].flat().map(part => part.textContent ?? String(part)).join("");

// worth is what a cell is sorted by: a number where it begins with one, else its text; null for a cell without a value.
function worth(cell) {
  if (typeof cell === "number") return cell;
  const words = text(cell).trim(), digits = words.replace(/[\u202f\u00a0]/g, "").replace(/^−/, "-");
  return words === "" || words === "–" ? null : /^[-+]?\d/.test(digits) ? parseFloat(digits) : words;
}

function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (typeof a === typeof b) return a.localeCompare(b, undefined, { numeric: true });
  return typeof a === "number" ? -1 : 1;
}

// sorting makes buttons of headings, and returns what puts rows into order: column is what a row is sorted by in a column, which its
// cells are by default. start is a heading, with a minus before it for the other way round; changed is told the next one.
export function sorting(heads, changed, { start = "", column = (row, i) => (row.cells || row)[i] } = {}) {
  const names = heads.map(th => th.textContent);
  let by = names.indexOf(start.replace(/^-/, "")), down = start.startsWith("-");
  const mark = () => heads.forEach((th, i) => th.setAttribute("aria-sort", i !== by ? "none" : down ? "descending" : "ascending"));
  heads.forEach((th, i) => th.replaceChildren(make("button", { type: "button", className: "sort", textContent: names[i], onclick: () => {
    [by, down] = by !== i ? [i, false] : down ? [-1, false] : [i, true];
    mark();
    changed(by < 0 ? "" : (down ? "-" : "") + names[by]);
  } })));
  mark();
  return rows => by < 0 ? rows : rows.map(row => [worth(column(row, by)), row]).sort(([a], [b]) =>
    a === null || b === null ? +(a === null) - +(b === null) : compare(a, b) * (down ? -1 : 1)).map(([, row]) => row); // without a value: last
}
