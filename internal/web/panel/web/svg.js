// What the charts have in common: elements of SVG, round numbers for axes, marks, and points that keys go through.
export const svg = (tag, attributes = {}, ...kids) => {
  const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
  e.append(...kids);
  return e;
};

// ticks returns round numbers between two values.
export function ticks(low, high, most) {
  const raw = (high - low) / most, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map(f => f * power).find(s => s >= raw) || raw;
  const out = [];
  for (let i = Math.ceil(low / step); i * step <= high * (1 + 1e-9) && out.length < 20; i++) out.push(i * step);
  return out;
}

// fitted draws a chart as wide as its figure, and anew when that changes; draw returns what the figure holds. The point that
// has the focus keeps it. It returns a function that draws the chart again.
export function fitted(figure, draw) {
  let width = 0;
  const paint = () => {
    if (!width) return;
    const at = [...figure.querySelectorAll("a")].indexOf(document.activeElement);
    figure.replaceChildren(...draw(width));
    if (at >= 0) figure.querySelectorAll("a")[at]?.focus();
  };
  new ResizeObserver(([seen]) => {
    const now = Math.round(seen.contentRect.width);
    if (now && now !== width) { width = now; paint(); }
  }).observe(figure);
  return paint;
}

// walk makes the points of a chart, which are links, one tab stop; keys go from point to point.
export function walk(points) {
  points.addEventListener("focusin", e => points.querySelectorAll("a").forEach(a => a.setAttribute("tabindex", a === e.target ? 0 : -1)));
  points.addEventListener("keydown", e => {
    const all = [...points.querySelectorAll("a")], last = all.length - 1, at = all.indexOf(e.target.closest("a"));
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last }[e.key];
    if (to === undefined || e.altKey || e.ctrlKey || e.metaKey) return;
    e.preventDefault();
    all[Math.min(Math.max(to, 0), last)].focus();
  });
}

// Marks of the lines or arms in a common chart: in form as well as in colour.
const shapes = [r => `M${-r} 0a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0z`, r => `M${-r} ${-r}h${2 * r}v${2 * r}h${-2 * r}z`,
  r => `M0 ${-1.3 * r}L${1.2 * r} ${r}H${-1.2 * r}z`, r => `M0 ${-1.4 * r}L${1.4 * r} 0L0 ${1.4 * r}L${-1.4 * r} 0z`];
export const kindOf = i => `b${i % shapes.length}`;
export const mark = (i, r) => svg("path", { class: "mark", d: shapes[i % shapes.length](r) });
