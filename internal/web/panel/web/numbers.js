// A table below a chart, closed until somebody opens it, with a download. Its rows are made when it is opened: those of 100 trials
// in a dozen tables would make the page slow.
import { make, csv } from "./common.js";
import { sorting } from "./sorting.js";

const most = 500;

// numbers: of returns { head, rows, csv }: rows of cells, which are text, nodes or several of them, and those of the file. A row may
// also be { cells, className }.
export function numbers(summary, caption, file, of) {
  const box = make("details", { className: "numbers" }, make("summary", { textContent: summary }));
  let start = "";
  const fill = () => {
    if (!box.open) return;
    const { head, rows, csv: lines } = of(), ths = head.map(textContent => make("th", { scope: "col", textContent })), body = make("tbody");
    const order = sorting(ths, next => { start = next; draw(); }, { start }), draw = () => body.replaceChildren(...order(rows).slice(0, most).map(row));
    draw();
    const save = make("a", { textContent: "Download as CSV", download: `${file.replace(/[^\w.-]+/g, "-")}.csv`, href: csv(lines) });
    const table = make("table", {}, make("caption", { textContent: caption + (rows.length > most ? `; the first ${most} of ${rows.length}` : "") }),
      make("thead", {}, make("tr", {}, ...ths)), body);
    box.replaceChildren(box.firstChild, make("p", { className: "hint" }, save), make("div", { className: "wide-table", tabIndex: 0, role: "region", ariaLabel: caption }, table));
  };
  const row = r => {
    const [first, ...cells] = r.cells || r;
    return make("tr", { className: r.className || "" }, make("th", { scope: "row" }, ...[first].flat()), ...cells.map(c => make("td", {}, ...[c ?? "–"].flat())));
  };
  box.addEventListener("toggle", fill);
  box.update = fill;
  return box;
}
