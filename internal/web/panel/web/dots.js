// Two charts of a run's metric, as SVG. distribution() has a dot for each trial, in a row for each arm, with the median and its
// interval. differences() has a dot for each pair in the order of the run, with the shift and its interval. Each chart is one tab
// stop; the arrow keys go from dot to dot. Each is given a function that returns what it shows, and has a method that draws it again.
import { make, number } from "./common.js";
import { fitted, kindOf, mark, svg, ticks, walk } from "./svg.js";

const left = 14, right = 14, row = 62, radius = 4.5, bottom = 26;

export const percent = share => `${Math.round(100 * share)} %`;
export const signed = v => `${v > 0 ? "+" : ""}${number(v)}`;

// range is the range of an axis with some room at both ends.
function range(values) {
  const low = Math.min(...values), high = Math.max(...values), room = (high - low) * 0.05 || Math.abs(high) * 0.05 || 1;
  return [low - room, high + room];
}

const digits = marks => marks.length > 1 && marks[1] - marks[0] < 1 ? 2 : 0;
const round = (marks, v) => digits(marks) ? v.toFixed(2).replace("-", "−") : number(v).replace(/\.0+$/, "");

// dot is a link at a place of a chart that says its number.
function dot(kind, x, y, { says, href, valid = true, current = false }, tell) {
  const shape = mark(kind, radius);
  shape.setAttribute("transform", `translate(${x} ${y})`);
  const a = svg("a", { class: `run-point ${kindOf(kind)}${valid ? "" : " left-out"}${current ? " chosen" : ""}`, tabindex: -1, "aria-label": says, role: "link" }, shape);
  if (href) a.setAttribute("href", href);
  if (current) a.setAttribute("aria-current", "true");
  for (const event of ["pointerenter", "focus"]) a.addEventListener(event, () => tell(says));
  return a;
}

// chart makes a figure that draw fills and gives a label. The first dot, or the chosen one, is the tab stop.
function chart(help, draw) {
  const figure = make("figure", { className: "chart" }), readout = make("figcaption", { className: "hint", textContent: help });
  figure.redraw = fitted(figure, width => {
    const back = svg("g", { "aria-hidden": "true" }), points = svg("g"), { height, label } = draw(width, back, points, text => { readout.textContent = text; });
    (points.querySelector(".chosen") || points.querySelector("a"))?.setAttribute("tabindex", 0);
    walk(points);
    return [svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": label }, back, points), readout];
  });
  figure.append(readout);
  return figure;
}

// distribution shows { metric, rows }, where rows are { name, kind, dots: [{ value, valid, says, href }], spread }.
export function distribution(of) {
  return chart("A dot for each trial; its link opens the trial's frames. Hollow: left out.", (width, back, points, tell) => {
    const { metric, rows } = of(), all = rows.flatMap(r => r.dots.map(d => d.value)), [low, high] = range(all.length ? all : [0]), height = rows.length * row + bottom;
    const label = [metric.label, ...rows.map(r => `${r.name}: ${r.spread ? `median ${number(r.spread.median)} ${metric.unit}, ${r.spread.confident ? "95 % interval" : "smallest and largest"} ${number(r.spread.low)} to ${number(r.spread.high)}` : "no valid trial"}`)].join(". ");
    const x = v => left + (width - left - right) * (v - low) / (high - low), marks = ticks(low, high, Math.max(3, Math.floor(width / 70)));
    for (const v of marks) back.append(svg("line", { class: "grid", x1: x(v), x2: x(v), y1: 0, y2: height - bottom }), svg("text", { x: x(v), y: height - 8, "text-anchor": "middle" }, `${round(marks, v)} ${metric.unit}`));
    rows.forEach((r, i) => {
      const top = i * row, middle = top + 38;
      back.append(svg("text", { class: "of", x: left, y: top + 13 }, r.name));
      if (r.spread) {
        back.append(svg("g", { class: kindOf(r.kind) }, svg("rect", { class: "band", x: x(r.spread.low), width: Math.max(2, x(r.spread.high) - x(r.spread.low)), y: top + 20, height: 36 }),
          svg("line", { class: "middle", x1: x(r.spread.median), x2: x(r.spread.median), y1: top + 18, y2: top + 58 })));
      }
      // Dots that would cover each other are stacked from the middle: 0, −1, +1, −2 …
      const free = new Map();
      for (const d of r.dots.toSorted((a, b) => a.value - b.value)) {
        const at = x(d.value);
        let k = 0;
        while (k < 7 && at - (free.get(k) ?? -Infinity) < 2 * radius) k++;
        free.set(k, at);
        points.append(dot(r.kind, at, middle + Math.ceil(k / 2) * (k % 2 ? -1 : 1) * Math.min(2 * radius, 5), d, tell));
      }
    });
    return { height, label };
  });
}

// differences shows { metric, pairs }, where pairs are { value, says, href, pair, current }.
export function differences(of) {
  return chart("A dot for each pair in the order of the run: the treatment minus the control. Its link shows the pair's films.", (width, back, points, tell) => {
    const { metric, pairs } = of(), { effect } = metric, known = effect && effect.shift.confidence > 0 ? effect.shift : null, height = 190, top = 12, axis = 62;
    const label = `${metric.label}, treatment minus control, of ${pairs.length} pairs` + (known ? `: shift ${signed(known.value)} ${metric.unit}, ${percent(known.confidence)} interval ${signed(known.low)} to ${signed(known.high)}` : "");
    const [low, high] = range([0, ...pairs.map(p => p.value), ...(known ? [known.low, known.high] : [])]);
    const y = v => top + (height - top - bottom) * (high - v) / (high - low), inside = width - axis - right;
    const x = i => axis + inside * (i + 0.5) / pairs.length, marks = ticks(low, high, 4);
    for (const v of marks) back.append(svg("line", { class: v ? "grid" : "zero", x1: axis, x2: width - right, y1: y(v), y2: y(v) }), svg("text", { x: axis - 8, y: y(v) + 4, "text-anchor": "end" }, round(marks, v)));
    back.append(svg("text", { x: axis - 8, y: height - 8, "text-anchor": "end" }, metric.unit));
    if (known) {
      back.append(svg("rect", { class: "band shift", x: axis, width: inside, y: y(known.high), height: Math.max(1, y(known.low) - y(known.high)) }),
        svg("line", { class: "middle shift", x1: axis, x2: width - right, y1: y(known.value), y2: y(known.value) }));
    }
    const step = Math.ceil(pairs.length / Math.max(1, Math.floor(inside / 44)));
    pairs.forEach((p, i) => {
      if (i % step === 0) back.append(svg("text", { x: x(i), y: height - 8, "text-anchor": "middle" }, i + 1));
      const a = dot(3, x(i), y(p.value), p, tell);
      a.dataset.pair = p.pair;
      points.append(a);
    });
    return { height, label };
  });
}

// percents shows the intervals of several changes in percent on one axis: rows are { name, range, says, href }.
export function percents(label, of) {
  return chart("The change of each in percent, with its interval.", (width, back, points, tell) => {
    const rows = of(), known = rows.filter(r => r.range), [low, high] = range([0, ...known.flatMap(r => [r.range.low, r.range.high])]), line = 44, height = rows.length * line + bottom;
    const x = v => left + (width - left - right) * (v - low) / (high - low), marks = ticks(low, high, Math.max(2, Math.floor(width / 100)));
    for (const v of marks) back.append(svg("line", { class: v ? "grid" : "zero", x1: x(v), x2: x(v), y1: 0, y2: height - bottom }), svg("text", { x: x(v), y: height - 8, "text-anchor": "middle" }, `${round(marks, v)} %`));
    rows.forEach((r, i) => {
      back.append(svg("text", { class: "of", x: left, y: i * line + 14 }, r.name.length > 60 ? `${r.name.slice(0, 59)}…` : r.name));
      if (!r.range) return;
      const y = i * line + 29, a = dot(0, x(r.range.value), y, r, tell);
      a.prepend(svg("line", { class: "interval", x1: x(r.range.low), x2: x(r.range.high), y1: y, y2: y }));
      points.append(a);
    });
    return { height, label };
  });
}
