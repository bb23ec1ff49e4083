// The same page in several browsers and on several devices: the median of each one's newest run, side by side. All content from runs is
// inserted as text, never as markup.
import { $, make, call, number, address, reportOf, csv, when } from "./common.js";
import { svg, ticks } from "./svg.js";
import { refresh } from "./refresh.js";
import { visit, row } from "./visit.js";
/** @import { Schema } from "../panel" */

const query = new URLSearchParams(location.search);
const common = ["name", "page", "link"]; // what series that stand side by side have in common
const newest = 20; // runs of a series among which the newest with the metric is looked for
const keyOf = s => JSON.stringify(common.map(kind => s[kind] || ""));
const browserOf = s => s.browser || "chromium";
const titleOf = s => [address(s.page), s.name && s.name !== s.page && `“${s.name}”`, s.link && `link ${s.link}`].filter(Boolean).join(" · ");
/** @type {Schema<"SeriesHistory">[]} */
let shown = []; // the chosen series with their numbers

const load = visit(async () => {
  const { series } = await call("/api/v1/history?limit=500");
  const groups = new Map();
  for (const s of series) groups.set(keyOf(s), [...groups.get(keyOf(s)) || [], s]);
  // Those with something to compare first.
  const list = [...groups.entries()].sort(([, a], [, b]) => +(b.length > 1) - +(a.length > 1));
  $("none").hidden = list.length > 0;
  $("choose").hidden = $("one").hidden = !list.length;
  if (!list.length) {
    $("none").replaceChildren("No run is done yet. ", make("a", { href: "/plan", textContent: "Make a run" }), " of a page in one browser, and one in another: they stand side by side here.");
    return;
  }
  const wanted = keyOf(Object.fromEntries(query)), chosen = query.has("page") && groups.has(wanted) ? wanted : list[0][0];
  refresh($("page"), list.map(([value, all]) => make("option", { value, textContent: `${titleOf(all[0])} (${all.length === 1 ? `${browserOf(all[0])} only` : [...new Set(all.map(browserOf))].join(", ")})` })));
  $("page").value = chosen;
  await numbers(groups.get(chosen));
});

// numbers asks for the numbers of the series of a group, each on its own: not all of them have each metric.
async function numbers(group) {
  const ask = (s, metric) => call(`/api/v1/history?${new URLSearchParams({ series: s.key, limit: String(newest), ...metric && { metric } })}`).then(answer => answer.series[0]);
  shown = await Promise.all(group.map(s => ask(s)));
  shown.sort((a, b) => browserOf(a).localeCompare(browserOf(b)) || (a.device || "").localeCompare(b.device || ""));
  const metrics = new Map(shown.flatMap(s => s.available).map(a => [a.metric, a.label]));
  refresh($("metric"), [...metrics].map(([value, textContent]) => make("option", { value, textContent })));
  const first = shown[0].metrics[0]?.metric || "";
  $("metric").value = metrics.has(query.get("metric")) ? query.get("metric") : first;
  const metric = $("metric").value;
  await Promise.all(shown.map(async (s, i) => {
    if (!s.metrics.some(m => m.metric === metric) && s.available.some(a => a.metric === metric)) shown[i].metrics.push(...(await ask(s, metric)).metrics);
  }));
  draw(metric);
}

function draw(name) {
  const s = shown[0];
  const lines = shown.map(s => {
    const metric = s.metrics.find(m => m.metric === name), value = metric?.values.at(-1);
    return { s, metric, value, run: value && s.runs.find(r => r.id === value.run) };
  });
  const have = lines.filter(l => l.value), { label, unit } = have[0]?.metric || { label: name, unit: "" };
  $("one-head").textContent = `${label}: ${titleOf(s)}`;
  $("facts").textContent = shown.length === 1 ? `There are runs in ${browserOf(s)}${s.device ? ` on ${s.device}` : ""} only: make one in another browser or on another device.` : "A point is the median, a bar its 95 % interval.";
  $("unit").textContent = `Median, ${unit}`;
  refresh($("side"), have.map(({ s, value, run }) => row(s.key, [browserOf(s), s.device || "–", number(value.median),
    [`${number(value.low)} – ${number(value.high)}`, ...value.n < 6 ? [make("small", { textContent: "smallest and largest" })] : []], `${value.n} of ${run.trials}`,
    run.report ? make("a", { href: reportOf(run.id), textContent: when(run.wall) }) : when(run.wall)])));
  const without = lines.filter(l => !l.value).map(l => [browserOf(l.s), l.s.device].filter(Boolean).join(" on "));
  $("lacks").textContent = without.length ? `The newest runs have no ${label} in ${without.join(", ")}: choose another metric, or make a run that measures it.` : "";
  $("side-table").hidden = $("csv").parentNode.hidden = !have.length;
  $("csv").href = csv([["browser", "device", "run", "started", "trials", "valid", `median_${unit}`, `low_${unit}`, `high_${unit}`],
    ...have.map(({ s, value, run }) => [browserOf(s), s.device || "", run.id, run.wall, run.trials, value.n, value.median, value.low, value.high])]);
  const past = new URLSearchParams([...common.filter(kind => s[kind]).map(kind => [kind, s[kind]]), ...s.device ? [["device", s.device]] : [], ["browsers", "all"], ["metric", name]]);
  $("past").href = `/history?${past}`;
  $("make").href = `/plan?${new URLSearchParams({ page: s.page })}`;
  $("chart").replaceChildren(...have.length ? [picture(have, label, unit)] : []);
  $("one").hidden = false;
}

// picture has a row for each browser; the table below has the same numbers.
function picture(lines, label, unit) {
  const high = Math.max(...lines.map(l => l.value.high), 1e-9), low = Math.min(0, ...lines.map(l => l.value.low)), span = (high - low) * 1.03, step = 46;
  const x = v => `${100 * (v - low) / span}%`, height = lines.length * step;
  const p = svg("svg", { height: height + 24, "aria-hidden": "true" });
  for (const t of ticks(low, high, 5)) p.append(svg("line", { class: "grid", x1: x(t), x2: x(t), y1: 0, y2: height }), svg("text", { class: "tick", x: x(t), y: height + 17, "text-anchor": t === low ? "start" : "middle" }, `${+t.toPrecision(6)}${t === low ? ` ${unit}` : ""}`));
  lines.forEach(({ s, value }, i) => {
    const y = i * step + 32;
    p.append(svg("text", { x: 6, y: y - 14 }, [browserOf(s), s.device].filter(Boolean).join(" on ")), svg("line", { class: "interval", x1: x(value.low), x2: x(value.high), y1: y, y2: y }), svg("circle", { cx: x(value.median), cy: y, r: 5 }));
  });
  return p;
}

function go() {
  const [name, page, link] = JSON.parse($("page").value);
  for (const [kind, value] of Object.entries({ name, page, link, metric: $("metric").value })) if (value) query.set(kind, value); else query.delete(kind);
  history.replaceState(null, "", `?${query}`);
  load();
}
$("page").addEventListener("change", go);
$("metric").addEventListener("change", go);
$("choose").addEventListener("submit", e => e.preventDefault());
