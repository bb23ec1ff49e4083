// A chart of a metric over runs, as SVG: medians with their intervals, the level
// between steps, the steps, and marks where the environment changed. The chart is one
// tab stop; arrow keys go from run to run, Enter opens the report.
// together() lays the same metric of several browsers over each other, by date.
import { make, number, reportOf, when } from "./common.js";
import { fitted, kindOf, mark, svg, ticks, walk } from "./svg.js";

export const height = 260, top = 26, bottom = 34, left = 62, right = 14;

// range is the range of the axis: all medians, and their intervals unless these are so
// long that the medians would look flat.
function range(values) {
  const medians = values.map(v => v.median), low = Math.min(...medians), high = Math.max(...medians);
  const room = Math.max(3 * (high - low), Math.abs(high) * 0.1, 1e-9);
  const from = Math.max(Math.min(...values.map(v => v.low)), low - room), to = Math.min(Math.max(...values.map(v => v.high)), high + room);
  const margin = Math.max((to - from) * 0.08, Math.abs(to) * 0.01, 1e-9);
  return [from - margin, to + margin];
}

// difference formats a difference as the sentences from the server do.
const difference = v => { const a = Math.abs(v); return `${v > 0 ? "▲ +" : "▼ −"}${a < 1 ? +a.toFixed(2) : a < 10 ? +a.toFixed(1) : a.toFixed(0).replace(/\B(?=(\d{3})+$)/g, "\u202f")}`; };

const says = (v, run, metric) => `${when(run.wall)}: ${number(v.median)} ${metric.unit}` +
  `, ${v.n < 6 && metric.line !== "difference" ? "smallest and largest" : "95 % interval"} ${number(v.low)} – ${number(v.high)}, ${v.n} ${metric.line === "difference" ? "pair" : "trial"}${v.n === 1 ? "" : "s"}` +
  run.changed.map(f => `; changed: ${f.name}`).join("");

export function chart(s, metric) {
  const figure = make("figure", { className: "chart" }), readout = make("figcaption", { className: "hint" });
  const runs = new Map(s.runs.map(r => [r.id, r]));
  const help = "Arrow keys or the pointer show a run's numbers; Enter opens its report.";
  readout.textContent = help;
  let current = metric.values.length - 1;
  fitted(figure, width => [draw(width, s, metric, runs, i => { current = i; readout.textContent = says(metric.values[i], runs.get(metric.values[i].run), metric); }, () => current), readout]);
  figure.append(readout);
  return figure;
}

function draw(width, s, metric, runs, tell, current) {
  const values = metric.values, [low, high] = range(values);
  const x = i => values.length === 1 ? (left + width - right) / 2 : left + 8 + i * (width - left - right - 16) / (values.length - 1);
  const y = v => top + (height - top - bottom) * (high - Math.min(Math.max(v, low), high)) / (high - low);
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": `${metric.label} over ${values.length} runs: ${[metric.text, ...metric.steps.map(p => p.text)].join(". ")}` });
  const back = svg("g", { "aria-hidden": "true" });
  axes(back, metric.unit, low, high, y, values.map(v => new Date(runs.get(v.run).wall)), x, width);
  levels(back, values, metric, x, y, width);
  const points = svg("g");
  values.forEach((v, i) => {
    const run = runs.get(v.run), small = values.length > 60 ? 2.5 : 4;
    if (run.changed.length) back.append(svg("path", { class: "fact", d: `M${x(i)} ${height - bottom}l4 -7h-8z` }));
    const a = svg("a", { class: "run-point", tabindex: i === current() ? 0 : -1, "aria-label": says(v, run, metric), role: "link" },
      svg("line", { class: "hit", x1: x(i), x2: x(i), y1: top, y2: height - bottom, "stroke-width": Math.max(4, (width - left - right) / values.length) }),
      svg("line", { class: "interval", x1: x(i), x2: x(i), y1: y(v.low), y2: y(v.high) }),
      svg("circle", { cx: x(i), cy: y(v.median), r: small }));
    if (run.report) a.setAttribute("href", reportOf(v.run));
    a.addEventListener("pointerenter", () => tell(i));
    a.addEventListener("focus", () => tell(i));
    points.append(a);
  });
  walk(points);
  picture.append(back, points);
  return picture;
}

// axes draws the grid with its numbers, and days or, within a single day, times: only as many as fit.
export function axes(back, unit, low, high, y, walls, x, width) {
  const marks = ticks(low, high, 4), digits = marks.length > 1 && marks[1] - marks[0] < 1 ? 2 : 0;
  for (const v of marks) {
    back.append(svg("line", { class: "grid", x1: left, x2: width - right, y1: y(v), y2: y(v) }),
      svg("text", { x: left - 8, y: y(v) + 4, "text-anchor": "end" }, digits ? v.toFixed(digits) : number(v).replace(/\.0+$/, "")));
  }
  back.append(svg("text", { x: left - 8, y: 12, "text-anchor": "end" }, unit));
  const days = new Set(walls.map(w => w.toDateString()));
  const day = w => w.toLocaleDateString([], { month: "short", day: "numeric" }), time = w => w.toLocaleTimeString([], { timeStyle: "short" });
  const label = (w, i) => days.size > 1 ? day(w) : i ? time(w) : `${day(w)}, ${time(w)}`;
  let free = -Infinity, before = "";
  walls.forEach((w, i) => {
    if (x(i) < free || label(w, i) === before || x(i) + 30 > width) return;
    [free, before] = [x(i) + 90, label(w, i)];
    back.append(svg("line", { class: "tick", x1: x(i), x2: x(i), y1: height - bottom, y2: height - bottom + 5 }), svg("text", { x: x(i), y: height - bottom + 20, "text-anchor": "middle" }, before));
  });
}

// together draws one line for each series: lines are { label, metric, runs }.
export function together(lines) {
  const figure = make("figure", { className: "chart" }), readout = make("figcaption", { className: "hint" });
  readout.textContent = "Arrow keys or the pointer show a run's numbers; Enter opens its report.";
  const legend = make("p", { className: "legend" }, ...lines.map((line, i) => {
    const sample = svg("svg", { class: kindOf(i), width: 28, height: 12, viewBox: "-14 -6 28 12", "aria-hidden": "true" }, svg("path", { class: "way", d: "M-14 0H14" }), mark(i, 4));
    return make("span", {}, sample, ` ${line.label}`);
  }));
  let current = -1;
  fitted(figure, width => [legend, drawTogether(width, lines, (i, text) => { current = i; readout.textContent = text; }, () => current), readout]);
  figure.append(legend, readout);
  return figure;
}

function drawTogether(width, lines, tell, current) {
  const { label, unit } = lines[0].metric, all = lines.flatMap(({ label, metric, runs }, which) => {
    const of = new Map(runs.map(r => [r.id, r]));
    return metric.values.map(v => ({ v, which, run: of.get(v.run), wall: new Date(of.get(v.run).wall), text: `${label}, ${says(v, of.get(v.run), metric)}` }));
  }).sort((a, b) => a.wall - b.wall);
  const [low, high] = range(all.map(p => p.v)), from = all[0].wall, span = all.at(-1).wall - from;
  const x = i => span ? left + 8 + (all[i].wall - from) / span * (width - left - right - 16) : (left + width - right) / 2;
  const y = v => top + (height - top - bottom) * (high - Math.min(Math.max(v, low), high)) / (high - low);
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": `${label} of ${lines.map(l => l.label).join(", ")}` });
  const back = svg("g", { "aria-hidden": "true" }), points = svg("g");
  axes(back, unit, low, high, y, all.map(p => p.wall), x, width);
  lines.forEach((_, which) => {
    const way = all.flatMap((p, i) => p.which === which ? [`${x(i)} ${y(p.v.median)}`] : []);
    back.append(svg("g", { class: kindOf(which) }, svg("path", { class: "way", d: `M${way.join("L")}` })));
  });
  const stop = current() < 0 ? all.length - 1 : current();
  all.forEach((p, i) => {
    const place = mark(p.which, all.length > 120 ? 2.5 : 4);
    place.setAttribute("transform", `translate(${x(i)} ${y(p.v.median)})`);
    const a = svg("a", { class: `run-point ${kindOf(p.which)}`, tabindex: i === stop ? 0 : -1, "aria-label": p.text, role: "link" },
      svg("line", { class: "interval", x1: x(i), x2: x(i), y1: y(p.v.low), y2: y(p.v.high) }), place);
    if (p.run.report) a.setAttribute("href", reportOf(p.v.run));
    a.addEventListener("pointerenter", () => tell(i, p.text));
    a.addEventListener("focus", () => tell(i, p.text));
    points.append(a);
  });
  walk(points);
  picture.append(back, points);
  return picture;
}

// levels draws the median between steps, and each step.
function levels(back, values, metric, x, y, width) {
  const at = metric.steps.map(p => values.findIndex(v => v.run === p.run));
  metric.steps.forEach((p, k) => {
    const from = k ? at[k - 1] : 0, middle = (x(at[k] - 1) + x(at[k])) / 2, end = k + 1 < at.length ? (x(at[k + 1] - 1) + x(at[k + 1])) / 2 : width - right;
    const begin = k ? (x(from - 1) + x(from)) / 2 : left;
    if (!k) back.append(svg("line", { class: "level", x1: begin, x2: middle, y1: y(p.before), y2: y(p.before) }));
    const side = middle > width / 2 ? "end" : "start";
    back.append(svg("line", { class: "level", x1: middle, x2: end, y1: y(p.after), y2: y(p.after) }),
      svg("line", { class: `change ${p.trend}`, x1: middle, x2: middle, y1: top - 8, y2: height - bottom }),
      svg("text", { class: `change ${p.trend}`, x: middle + (side === "end" ? -6 : 6), y: 14, "text-anchor": side }, `${difference(p.after - p.before)} ${metric.unit}`));
  });
}
