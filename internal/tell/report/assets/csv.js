"use strict";
// What the pages of reports share. What they show as a file: buttons that save a CSV (RFC 4180). The page has no address for it, so the file is made when a button
// is pressed.

// csvOf is a table as text. A cell that a spreadsheet would take for a formula is a text.
const csvOf = rows => rows.map(row => row.map(cell => {
  const text = typeof cell === "string" && /^[=+@\t\r-]/.test(cell) && !/^[+-]?[\d.]+$/.test(cell) ? `'${cell}` : String(cell ?? "");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}).join(",")).join("\r\n") + "\r\n";

// csvButton saves the rows that a function returns; what is the last part of the file's name.
function csvButton(what, rows, text = "Download as CSV") {
  const run = document.querySelector("footer code").textContent, name = `${run}-${what}`.replace(/[^\w.-]+/g, "-") + ".csv";
  const button = Object.assign(document.createElement("button"), { type: "button", className: "quiet", textContent: text });
  button.dataset.download = name;
  button.addEventListener("click", () => {
    const href = URL.createObjectURL(new Blob([csvOf(rows())], { type: "text/csv;charset=utf-8" }));
    Object.assign(document.createElement("a"), { href, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(href), 60000); // the browser has read it by then
  });
  const line = Object.assign(document.createElement("p"), { className: "hint" });
  line.append(button);
  return line;
}

// tableRows are the rows of a table that is on the page: as it says them, but for the signs that only people read.
const tableRows = table => [...table.rows].map(row => [...row.cells].flatMap(cell => {
  const text = cell.textContent.replaceAll("\u202f", "").replace(/\s+/g, " ").trim().replace(/^−(?=[\d.]+$)/, "-").replace(/^[–—]$/, "");
  return [text, ...Array(cell.colSpan - 1).fill("")];
}));
// labelled gives each value of a table its heading: on a narrow screen it stands above the value.
function labelled(table) {
  const heads = [...table.querySelectorAll("thead th, caption + tbody tr:first-child > th[scope=col]")].map(th => th.textContent.trim());
  for (const row of table.querySelectorAll("tbody tr")) {
    let i = 0;
    for (const cell of row.children) { if (heads[i] && cell.colSpan === 1) cell.dataset.label = heads[i]; i += cell.colSpan; }
  }
}
