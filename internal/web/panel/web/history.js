// The history of runs: for each series a chart, its changes in words, and the numbers
// as a table.
import { $, make, call, number, address, reportOf, signIn, when } from "./common.js";
import { chart, together } from "./chart.js";
import { numbers } from "./numbers.js";
import { comparing } from "./compare.js";
import { alerting } from "./alerting.js";
/** @import { Schema } from "../panel" */

const query = new URLSearchParams(location.search);
const kinds = ["series", "name", "page", "link", "device", "browser"]; // query parameters that select series
const common = ["name", "page", "link", "device"]; // what series of different browsers have in common
const title = s => [s.name || "no name", address(s.page), s.link && `link ${s.link}`, s.device, s.browser].filter(Boolean).join(" · ");
const browserOf = s => s.browser || "chromium";
const alike = (a, b) => common.every(kind => (a[kind] || "") === (b[kind] || ""));
const lines = { control: "the control", treatment: "the treatment", difference: "their difference" }; // what can be followed of a metric
const find = (s, name) => s.metrics.find(m => m.metric === name && m.line === $("line").value);
const of = (metric, level, difference) => metric.line === "difference" ? difference : level;
/** @type {Schema<"Histories">} */
let shown = { level: 0, needed: 0, series: [] };

// ask loads the series that the address selects, or else that of the newest run.
async function ask(list) {
  const which = new URLSearchParams([...query].filter(([kind, value]) => kinds.includes(kind) && value));
  if (!which.size && list.series.length) which.set("series", list.series[0].key);
  if (!which.size) return { series: [] };
  which.set("limit", "200");
  which.set("line", Object.keys(lines).join(","));
  const answer = await call(`/api/v1/history?${which}`);
  if (query.has("browsers")) { // exactly these: what is empty in the request selects everything
    const wanted = Object.fromEntries(query);
    answer.series = answer.series.filter(s => alike(s, wanted)).sort((a, b) => browserOf(a).localeCompare(browserOf(b)));
  }
  const extra = query.get("metric");
  if (extra && !answer.series.every(s => s.metrics.some(m => m.metric === extra)) && answer.series.every(s => s.available.some(a => a.metric === extra))) {
    which.set("metric", extra);
    const more = await call(`/api/v1/history?${which}`);
    answer.series.forEach(s => s.metrics.push(...(more.series.find(o => o.key === s.key)?.metrics || []).filter(m => !s.metrics.some(o => o.metric === m.metric && o.line === m.line))));
  }
  return answer;
}

let asked = 0;
async function load() {
  const turn = ++asked; // an answer that arrives too late is not shown
  const failed = e => {
    if (turn !== asked) return;
    if (e.status === 401) { signIn(load); return; }
    $("trouble").hidden = false;
    $("trouble").replaceChildren(`The history could not be loaded: ${e.message}. `, ...e.status === 404 ? [make("a", { href: "/history", textContent: "Other series" })] : []);
  };
  try {
    const list = await call("/api/v1/history?limit=500");
    const answer = await ask(list).catch(e => { failed(e); return null; });
    if (turn !== asked) return;
    shown = answer || { series: [] };
    if (answer) $("trouble").hidden = true;
    choices(list);
    draw();
  } catch (e) { failed(e); }
}

// choices fills the selects.
function choices(list) {
  const options = list.series.map(s => make("option", { value: s.key, textContent: `${title(s)} (${s.count})` }));
  // Series that differ in the browser alone can be seen on one chart.
  const groups = list.series.filter((s, i) => list.series.findIndex(o => alike(o, s)) === i).map(s => list.series.filter(o => alike(o, s))).filter(g => g.length > 1);
  const groupOf = s => new URLSearchParams([...common.filter(kind => s[kind]).map(kind => [kind, s[kind]]), ["browsers", "all"]]).toString();
  options.push(...groups.map(g => make("option", { value: groupOf(g[0]), textContent: `${title({ ...g[0], browser: "" })} · ${g.map(browserOf).sort().join(", ")}` })));
  const chosen = shown.series.length && query.has("browsers") ? groupOf(shown.series[0]) : shown.series.length === 1 ? shown.series[0].key : "";
  if (!chosen) options.unshift(make("option", { value: "", textContent: shown.series.length ? `${shown.series.length} series${shown.left_out ? ", and more" : ""}` : "choose one" }));
  $("series").replaceChildren(...options);
  $("series").value = chosen;
  const metrics = new Map(shown.series.flatMap(s => s.available).map(a => [a.metric, a.label]));
  $("metric").replaceChildren(...[...metrics].map(([value, textContent]) => make("option", { value, textContent })));
  if (metrics.has(query.get("metric"))) $("metric").value = query.get("metric");
  // A series of comparisons shows first what it is made for.
  const has = Object.keys(lines).filter(line => shown.series.some(s => s.lines.some(l => l === line))), wanted = query.get("line");
  $("line").replaceChildren(...has.map(value => make("option", { value, textContent: lines[value] })));
  $("line").value = has.includes(wanted) ? wanted : has.at(-1) || "";
  $("line").closest("label").hidden = has.length < 2;
  $("choose").hidden = $("steady").hidden = !list.series.length;
  $("none").hidden = list.series.length > 0;
}

function draw() {
  const over = query.has("browsers") && shown.series.length > 1 ? [browsers(shown.series, $("metric").value)] : [];
  $("charts").replaceChildren(...over, ...shown.series.map(s => section(s, $("metric").value)));
  $("charts").ariaBusy = "false";
}

const lacks = "These runs do not have the metric: choose another one above.";
const interval = (v, metric) => [`${number(v.low)} – ${number(v.high)}`, ...v.n < 6 && of(metric, true) ? [make("small", { textContent: "smallest and largest" })] : []];
const nameOf = r => [r.report ? make("a", { href: reportOf(r.id), textContent: when(r.wall) }) : when(r.wall), make("small", { textContent: r.id })];

// browsers shows series that differ in the browser alone on one chart. What changed in each follows in its own section.
function browsers(list, name) {
  const card = make("section", { className: "series" }), s = list[0];
  const lines = list.map(one => ({ label: browserOf(one), runs: one.runs, metric: find(one, name) })).filter(line => line.metric?.values.length);
  card.append(make("h2", { textContent: `${s.name || address(s.page)}: ${list.map(browserOf).join(", ")}` }),
    make("p", { className: "hint", textContent: [s.name && address(s.page), s.link && `link ${s.link}`, s.device && `device ${s.device}`].filter(Boolean).join(" · ") }),
    ...lines.length ? [together(lines), tableOfAll(s, lines)] : [make("p", { textContent: lacks })]);
  return card;
}

// tableOfAll shows the numbers of several browsers, the newest run first.
function tableOfAll(s, lines) {
  const { label, unit, metric } = lines[0].metric, all = lines.flatMap(l => l.metric.values.map(v => ({ v, browser: l.label, run: l.runs.find(r => r.id === v.run) })))
    .sort((a, b) => a.run.wall.localeCompare(b.run.wall));
  return numbers("Numbers", `${label} of ${lines.map(l => l.label).join(", ")}, the newest run first`, `${s.name || "runs"}-browsers-${metric}`, () => ({
    head: ["Run", ...of(lines[0].metric, ["Trials", `Median, ${unit}`], ["Pairs", `Difference, ${unit}`]), "95 % interval", "Browser"],
    rows: all.toReversed().map(({ v, browser, run }) => [nameOf(run), of(lines[0].metric, `${v.n} of ${run.trials}`, String(v.n)), number(v.median), interval(v, lines[0].metric), browser]),
    csv: [["run", "started", "browser", "trials", "valid", `median_${unit}`, `low_${unit}`, `high_${unit}`],
      ...all.map(({ v, browser, run }) => [run.id, run.wall, browser, run.trials, v.n, v.median, v.low, v.high])],
  }));
}

// steadiness is a table of all series, which says how much their newest runs scatter: a flaky page is one of the first.
/** @type {Schema<"Histories">} */
let steady = null;
const scatter = numbers("Which pages are steady, and which are flaky?", "Trials that were left out, and spreads within runs and between them, of the newest 10 runs of each series", "steadiness", () => {
  const rows = (steady?.series || []).map(s => ({ s, worst: Math.max(s.steady.left_out_percent, s.steady.within_percent ?? 0, s.steady.between_percent ?? 0) })).sort((a, b) => b.worst - a.worst).map(({ s }) => s);
  const percent = v => v === undefined ? null : v.toFixed(1);
  return {
    head: ["Series", "Runs", "Left out, %", "Within a run, %", "Between runs, %", "Of"],
    rows: rows.map(s => [[make("a", { href: `/history?series=${s.key}`, textContent: s.name || address(s.page) }), make("small", { textContent: [s.name && address(s.page), s.link && `link ${s.link}`, s.device, s.browser].filter(Boolean).join(" · ") })],
      String(s.steady.runs), ...["left_out_percent", "within_percent", "between_percent"].map(k => percent(s.steady[k])), s.steady.label || null]),
    csv: [["series", "name", "page", "link", "device", "browser", "runs", "left_out_percent", "within_percent", "between_percent", "metric"],
      ...rows.map(s => [s.key, s.name, s.page, s.link, s.device || "", s.browser || "", s.steady.runs, s.steady.left_out_percent, s.steady.within_percent ?? "", s.steady.between_percent ?? "", s.steady.metric || ""])],
  };
});
$("steady").append(scatter);
scatter.addEventListener("toggle", async () => {
  if (!scatter.open || steady) return;
  try {
    steady = await call("/api/v1/history?steady=true");
    scatter.update();
  } catch (e) { scatter.open = false; $("trouble").hidden = false; $("trouble").textContent = `How steady the pages are could not be loaded: ${e.message}.`; }
});

// section shows one series.
function section(s, name) {
  const card = make("section", { className: "series" });
  const head = make("h2", { textContent: (s.name || address(s.page)) + (query.has("browsers") ? ` in ${browserOf(s)}` : "") });
  const facts = make("p", { className: "hint", textContent: [s.name && address(s.page), s.link && `link ${s.link}`, s.device && `device ${s.device}`, s.browser,
    s.runs.length < s.count ? `the newest ${s.runs.length} of ${s.count} runs` : `${s.count} ${s.count === 1 ? "run" : "runs"}`].filter(Boolean).join(" · ") });
  card.append(head, facts, alerting(s.alerts));
  const metric = find(s, name);
  if (!metric || !metric.values.length) { card.append(make("p", { textContent: s.available.some(a => a.metric === name) ? "…" : lacks })); return card; }
  card.append(findings(s, metric), chart(s, metric), comparing(s, when), table(s, metric));
  return card;
}

const signs = { slower: "▲", faster: "▼", larger: "▲", smaller: "▼" };

// findings lists the steps of all metrics as sentences, or says that there are none.
function findings(s, metric) {
  const box = make("div", { className: "findings" });
  const steps = s.metrics.flatMap(m => m.steps.map(step => ({ m, step }))).sort((a, b) => b.step.wall.localeCompare(a.step.wall));
  if (steps.length) {
    box.append(make("ul", {}, ...steps.map(({ step }, i) => make("li", {},
      make("strong", { className: step.trend }, make("span", { ariaHidden: "true", textContent: `${signs[step.trend]} ` }), step.text),
      // Changes of a run are listed once, after the last metric with a step there.
      ...(steps[i + 1]?.step.run === step.run ? [] : step.near).map(n => make("span", { className: "near", textContent: `${n.run === step.run ? "In that run" : `In ${n.run}`} changed: ${n.changed.map(change).join("; ")}.` }))))));
  }
  box.append(make("p", { className: "hint", textContent: `${metric.label}: ${metric.text}.` }));
  return box;
}

const change = f => `${f.name}, from ${f.before} to ${f.after}`;

// table shows the numbers of the chart, newest first.
function table(s, metric) {
  const name = `${s.name || "runs"}-${metric.metric}${metric.line === "control" ? "" : `-${metric.line}`}`, value = new Map(metric.values.map(v => [v.run, v])), steps = new Map(metric.steps.map(p => [p.run, p])), runs = s.runs.filter(r => value.has(r.id));
  return numbers("Numbers", `${metric.label} of ${title(s)}, the newest run first`, name, () => ({
    head: ["Run", ...of(metric, ["Trials", `Median, ${metric.unit}`], ["Pairs", `Difference, ${metric.unit}`]), "95 % interval", "Changed"],
    rows: runs.toReversed().map(r => {
      const v = value.get(r.id), step = steps.get(r.id);
      const says = [...step ? [make("strong", { className: step.trend, textContent: step.text })] : [], ...r.changed.map(f => make("span", { className: "near", textContent: change(f) }))];
      return { className: step ? "step" : "", cells: [nameOf(r), ...of(metric, [`${v.n} of ${r.trials}`], [String(v.n)]), number(v.median), interval(v, metric), says] };
    }),
    csv: [["run", "started", "trials", "valid", of(metric, `median_${metric.unit}`, `difference_${metric.unit}`), `low_${metric.unit}`, `high_${metric.unit}`],
      ...runs.map(r => { const v = value.get(r.id); return [r.id, r.wall, r.trials, v.n, v.median, v.low, v.high]; })],
  }));
}

// go applies a change to the query and updates the address.
function go(change) {
  change();
  history.replaceState(null, "", query.size ? `?${query}` : location.pathname);
}

$("series").addEventListener("change", () => {
  if (!$("series").value) return;
  go(() => {
    [...kinds, "browsers"].forEach(k => query.delete(k));
    const group = new URLSearchParams($("series").value);
    if (group.has("browsers")) group.forEach((value, kind) => query.set(kind, value));
    else query.set("series", $("series").value);
  });
  load();
});
$("line").addEventListener("change", () => { go(() => query.set("line", $("line").value)); draw(); });
$("metric").addEventListener("change", () => {
  go(() => query.set("metric", $("metric").value));
  draw();
  if (!shown.series.every(s => s.metrics.some(m => m.metric === $("metric").value))) load();
});

load();
