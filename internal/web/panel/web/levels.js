// What a device measured of the fleet's reference: a chart of a metric's level over the reference runs, with the band
// in which a steady device stays, and the same as a table.
import { make, number, when } from "./common.js";
import { numbers } from "./numbers.js";
import { axes, height, top, bottom, left, right } from "./chart.js";
import { svg, walk } from "./svg.js";

const of = (readings, metric) => readings.readings.flatMap(r => { const l = r.levels.find(l => l.metric === metric); return l ? [{ ...r, ...l }] : []; });
const outside = (band, v) => band && (v < band.low || v > band.high);
const bandOf = (readings, metric) => readings.baselines.find(b => b.metric === metric);

const says = (p, band) => `${when(p.at)}: ${number(p.median)} ${p.unit}, spread within the run ${number(p.within)} ${p.unit}` +
  `${outside(band, p.median) ? `, ${p.median > band.high ? "above" : "below"} the band` : ""}, ${number(p.thrown_percent)} % thrown away`;

// level is the chart. It is one tab stop; arrow keys go from run to run, Enter opens the run.
export function level(readings, metric, title) {
  const points = of(readings, metric), band = bandOf(readings, metric);
  const figure = make("figure", { className: "chart" }), readout = make("figcaption", { className: "hint" });
  readout.textContent = `${band ? "The band is where the runs of a steady device lie. " : "There is no baseline yet. "}Arrow keys or the pointer show a run’s numbers.`;
  let width = 0, current = points.length - 1;
  const paint = () => {
    const had = figure.contains(document.activeElement);
    const picture = draw(width, readings, metric, title, points, band, i => { current = i; readout.textContent = says(points[i], band); }, () => current);
    figure.replaceChildren(picture, readout);
    if (had) picture.querySelectorAll("a")[current]?.focus();
  };
  new ResizeObserver(([seen]) => {
    const now = Math.round(seen.contentRect.width);
    if (now && now !== width) { width = now; paint(); }
  }).observe(figure);
  figure.append(readout);
  return figure;
}

function draw(width, readings, metric, title, points, band, tell, current) {
  const values = points.flatMap(p => [p.median - p.within / 2, p.median + p.within / 2]).concat(band ? [band.low, band.high] : []);
  const low = Math.min(...values), high = Math.max(...values), margin = Math.max((high - low) * 0.08, Math.abs(high) * 0.005, 1e-9);
  const from = low - margin, to = high + margin, unit = points[0].unit;
  const x = i => points.length === 1 ? (left + width - right) / 2 : left + 8 + i * (width - left - right - 16) / (points.length - 1);
  const y = v => top + (height - top - bottom) * (to - v) / (to - from);
  const drift = readings.since && band?.drifted ? points.findIndex(p => new Date(p.at) >= new Date(readings.since)) : -1;
  const label = `${title} over ${points.length} reference runs${band ? `; baseline ${number(band.median)} ${unit}, band ${number(band.low)} to ${number(band.high)}` : ""}. ${readings.why}`;
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": label });
  const back = svg("g", { "aria-hidden": "true" }), all = svg("g");
  if (band) {
    back.append(svg("rect", { class: "band", x: left, y: y(band.high), width: width - left - right, height: Math.max(1, y(band.low) - y(band.high)) }),
      svg("line", { class: "level", x1: left, x2: width - right, y1: y(band.median), y2: y(band.median) }));
  }
  axes(back, unit, from, to, y, points.map(p => new Date(p.at)), x, width);
  if (drift >= 0) {
    const middle = drift ? (x(drift - 1) + x(drift)) / 2 : left + 4, end = middle > width / 2;
    back.append(svg("line", { class: "drift", x1: middle, x2: middle, y1: top - 8, y2: height - bottom }),
      svg("text", { class: "drift", x: middle + (end ? -6 : 6), y: 14, "text-anchor": end ? "end" : "start" }, "drifted"));
  }
  points.forEach((p, i) => {
    const far = outside(band, p.median), r = points.length > 60 ? 2.5 : 4;
    const a = svg("a", { class: `run-point${far ? " far" : ""}`, tabindex: i === current() ? 0 : -1, "aria-label": says(p, band), role: "link", href: `/runs/${encodeURIComponent(p.run)}` },
      svg("line", { class: "hit", x1: x(i), x2: x(i), y1: top, y2: height - bottom, "stroke-width": Math.max(4, (width - left - right) / points.length) }),
      svg("line", { class: "interval", x1: x(i), x2: x(i), y1: y(p.median - p.within / 2), y2: y(p.median + p.within / 2) }),
      far ? svg("path", { class: "mark", d: `M${x(i)} ${y(p.median) - 1.5 * r}l${1.4 * r} ${2.5 * r}h${-2.8 * r}z` }) : svg("circle", { cx: x(i), cy: y(p.median), r }));
    a.addEventListener("pointerenter", () => tell(i));
    a.addEventListener("focus", () => { all.querySelectorAll("a").forEach((o, j) => o.setAttribute("tabindex", i === j ? 0 : -1)); tell(i); });
    all.append(a);
  });
  walk(all);
  picture.append(back, all);
  return picture;
}

// numbersOf is the table, the newest run first, and the same as CSV.
export function numbersOf(readings, metric, label, when) {
  const points = of(readings, metric), band = bandOf(readings, metric), unit = points[0].unit, name = `${readings.box}/${readings.device}`;
  return numbers("Numbers", `${label} of ${name}, the newest run first`, `${name}-${metric}`, () => ({
    head: ["Run", `Median, ${unit}`, `Spread within, ${unit}`, "Thrown away", "Stolen time", "Clock differs by", "Band"],
    rows: points.toReversed().map(p => ({ className: outside(band, p.median) ? "step" : "", cells: [
      [make("a", { href: `/runs/${encodeURIComponent(p.run)}`, textContent: when(p.at) }), make("small", { textContent: p.run })],
      number(p.median), number(p.within), `${number(p.thrown_percent)} %`, `${number(p.stolen_percent)} %`, `${number(p.clock_ms)} ms`,
      outside(band, p.median) ? (p.median > band.high ? "above the band" : "below the band") : ""] })),
    csv: [["run", "at", `median_${unit}`, `within_${unit}`, "thrown_percent", "stolen_percent", "clock_ms", "baseline_low", "baseline_high"],
      ...points.map(p => [p.run, p.at, p.median, p.within, p.thrown_percent, p.stolen_percent, p.clock_ms, band?.low ?? "", band?.high ?? ""])],
  }));
}
