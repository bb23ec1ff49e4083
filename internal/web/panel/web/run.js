// The page of a run: the result in words, for each metric what the arms are like and how the pairs differ, and the films of a
// pair. The address holds run, page and user, step, metric, and what the films show. All content from runs is inserted as text.
import { $, make, call, doing, number, address, found, reportOf, runOf, signIn, when } from "./common.js";
import { again } from "./faults.js";
import { differences, distribution, percent, percents, signed } from "./dots.js";
import { numbers } from "./numbers.js";
import { write } from "./refresh.js";
/** @import { Schema } from "../panel" */

const query = new URLSearchParams(location.search);
const run = query.get("run") || "", chosen = ["cell", "step", "metric"];
/** @type {Schema<"RunView">} */
let view = null; // until it is loaded
let stream = null, pair = null, asked = 0, soon = null;
const cards = new Map(); // of metrics, by their names
/** @type {`/api/v1/runs/${string}`} */
const base = `/api/v1/runs/${encodeURIComponent(run)}`;
const trialOf = n => `/trial?${new URLSearchParams({ run, trial: n })}`;
const link = (href, textContent) => make("a", { href, textContent });
const value = v => v === null ? null : v.toFixed(Math.abs(v) < 10 ? 3 : 1).replace("-", "−");

// ofTwo is what names an arm: a run with one has none to name.
const ofTwo = text => view.arms.length > 1 ? text : "";
const upper = text => text.charAt(0).toUpperCase() + text.slice(1);
const keep = () => history.replaceState(null, "", `?${query}${location.hash}`);

// choosing is the address of this page with other choices.
function choosing(choices) {
  const all = new URLSearchParams({ run });
  for (const [name, v] of Object.entries({ ...Object.fromEntries(chosen.map(c => [c, query.get(c)])), ...choices })) if (v) all.set(name, v);
  return `/run?${all}`;
}

async function load() {
  const turn = ++asked, which = new URLSearchParams(chosen.flatMap(c => query.get(c) ? [[c, query.get(c)]] : []));
  try {
    const fresh = await call(`${base}/view?${which}`);
    if (turn !== asked) return;
    const before = view;
    view = fresh;
    $("busy").hidden = $("trouble").hidden = true;
    $("all").hidden = false;
    if (before && before.state !== view.state) say(`The run: ${view.state}. ${view.headline ? `${view.headline}.` : view.error || ""}`);
    draw();
    follow();
    watch();
  } catch (e) {
    if (turn !== asked) return;
    $("busy").hidden = true;
    if (e.status === 401) { signIn(load); return; }
    $("trouble").hidden = false;
    $("trouble").textContent = e.status === 404 ? `${e.message}. The list of runs has those that exist.` : `The run cannot be shown: ${e.message}.`;
    if (e.status === 404) $("trouble").append(" ", link("/", "All runs"));
  }
}

function say(text) { $("news").append(make("p", { textContent: text })); }

function draw() {
  const name = view.name || (view.page ? address(view.page) : view.id), counted = view.trials.filter(t => !t.extra), valid = counted.filter(t => t.valid);
  write($("title"), name);
  document.title = `${name} – Eidetic`;
  $("state").className = `state ${view.state}`;
  write($("state"), view.state);
  write($("facts"), [when(view.wall), view.page && address(view.page), view.cell, view.link && `link ${view.link}`, view.browser, view.device && !view.kind && `device ${view.device}`, view.kind ? `${view.kind} of ${view.device}` : counted.length || view.state !== "running" ? `${valid.length} of ${counted.length} trials valid` : "", view.id].filter(Boolean).join(" · "));
  $("report").hidden = !view.report;
  $("report").href = `/runs/${encodeURIComponent(run)}/${view.report || ""}`;
  $("history").href = `/history?${new URLSearchParams(Object.entries({ name: view.name, page: view.page }).filter(([, v]) => v))}`;
  $("edit").href = `/plan?${new URLSearchParams({ run })}`;
  $("again").hidden = $("edit").hidden = $("history").hidden = Boolean(view.kind);
  $("frames").hidden = !view.trials.some(t => t.reel);
  $("frames").href = trialOf(view.trials.find(t => t.reel)?.n || 1);
  result();
  picker("cell", [["", "all together"], ...(view.cells || []).map(c => [c.name, c.name])], view.cells);
  picker("step", [["", "what decides the verdict"], ...(view.steps || []).map(s => [s, s])], view.steps);
  const others = [...view.others || []];
  const extra = view.metrics.find(m => m.metric === query.get("metric"));
  if (extra) others.unshift({ metric: extra.metric, label: extra.label });
  picker("metric", [["", "none"], ...others.map(o => [o.metric, o.label])], others.length);
  $("choose").hidden = ["cell", "step", "metric"].every(c => $(`of-${c}`).hidden);
  together();
  metrics();
  leftOut(counted.filter(t => !t.valid));
  trials();
  if (view.pairs.length && !pair) {
    pair = import("./pair.js").then(({ films }) => films({ run, query, keep }));
    pair.catch(e => { $("unseen").textContent = `The films cannot be shown: ${e.message}.`; });
  }
  pair?.then(p => p.offer(view), () => {});
}

// picker fills a choice, which is hidden where there is nothing to choose.
function picker(kind, options, any) {
  $(`of-${kind}`).hidden = !any || !options[1];
  const same = $(kind).options.length === options.length && options.every(([v], i) => $(kind).options[i].value === v);
  if (!same) $(kind).replaceChildren(...options.map(([value, textContent]) => make("option", { value, textContent })));
  $(kind).value = query.get(kind) || "";
}

// result says what was found, and what can be done where nothing was.
function result() {
  const said = view.verdict ? found(view) : view.headline ? make("p", { className: "found" }, make("strong", { textContent: `${view.headline}.` }), ` ${upper(view.detail)}.`) : null;
  $("found").replaceChildren(...said ? [said] : []);
  const file = name => `${base}/artifacts/trials/001/${name}`;
  const valid = view.trials.some(t => t.valid), edit = () => link(`/plan?${new URLSearchParams({ run })}`, "Edit its plan");
  const says = {
    queued: [view.waits ? `The run waits: ${view.waits}. ` : "The run waits for its device. ", "This page shows its trials as soon as it has begun. ", link("/", "See the queue")],
    running: [view.waits ? `Some of its pages wait: ${view.waits}. ` : "", view.arms.length > 1 ? "The verdict comes when the run has ended: numbers that are looked at before can mislead. Medians are those so far." : "Medians and intervals are those so far."],
    failed: ["The run failed", view.error ? `: ${view.error}. ` : ". ", valid ? "What was measured before is below. " : "", "Mend what it names, then run it again, or: ", edit()],
    done: view.kind === "film" ? ["A film of the device's screen, without measurements. ", link(trialOf(1), "Look at it frame by frame"), ", or take the ", link(file("evidence.webm"), "video"), " or the ", link(file("screen.reel"), "reel"), "."] : view.kind ? ["How well the grabber delivers what is on a screen: ", link(`/runs/${encodeURIComponent(run)}/report.html`, "its report"), "."] : undefined,
    interrupted: ["The run was interrupted", view.error ? `: ${view.error}. ` : ". ", valid ? "What was measured before is below. " : "", edit()],
  }[view.state] || (view.trials.length === 0 ? ["The run has no trials. ", edit()] : valid ? [] : ["No trial is valid, so there is no result. Below stands why each was left out; mend that, then run it again, or: ", edit()]);
  if (view.thinned) says.push(` ${view.thinned} The numbers stay.`);
  $("next").replaceChildren(...says.length ? [make("p", { className: view.state === "failed" ? "bad" : "" }, ...says)] : []);
  $("arms").replaceChildren(...view.arms.length > 1 ? view.arms.map(a => make("li", {}, make("strong", { textContent: `${a.name}: ` }), a.differs || "as the plan says")) : []);
  $("warnings").hidden = !view.warnings.length;
  $("warnings").querySelector("summary").textContent = view.warnings.length === 1 ? "One warning" : `${view.warnings.length} warnings`;
  $("warnings").querySelector("ul").replaceChildren(...view.warnings.map(textContent => make("li", { textContent })));
  if (view.state !== "running") $("doing").hidden = true;
}

// watch shows what the run's device has on its screen, as long as the run goes on and somebody looks.
let seen = "", tag = "", watching = 0;
async function watch() {
  clearTimeout(watching);
  if (view.state !== "running" || !view.device) { $("live").hidden = true; return; }
  if (!document.hidden) {
    try {
      const answer = await fetch(`/api/v1/devices/${encodeURIComponent(view.device)}/screen`, { credentials: "same-origin", headers: tag ? { "If-None-Match": tag } : {} });
      if (answer.ok) {
        tag = answer.headers.get("ETag") || "";
        const url = URL.createObjectURL(await answer.blob());
        $("screen").src = url;
        if (seen) URL.revokeObjectURL(seen);
        seen = url;
      }
      if (answer.ok || answer.status !== 304) $("live").hidden = !answer.ok;
    } catch { $("live").hidden = true; }
  }
  watching = setTimeout(watch, 1000);
}

// together shows the pages and users of a run of many.
function together() {
  const shown = view.cells?.length && !view.cell;
  if (!shown) { $("together").replaceChildren(); return; }
  const range = e => e?.unit === "%" && e.shift.confidence > 0 ? e.shift : e?.percent?.confidence > 0 ? e.percent : null;
  const says = (name, e) => range(e) ? `${name}: ${signed(range(e).value)} %, ${percent(range(e).confidence)} interval ${signed(range(e).low)} to ${signed(range(e).high)} %` : name;
  const all = [...(view.together || []).slice(0, 1).map(e => ({ name: "All together", label: e.label, effect: e, href: "" })), ...view.cells.map(c => ({ ...c, href: choosing({ cell: c.name }) }))];
  const rows = () => all.map(c => ({ name: c.name, range: range(c.effect), says: says([c.name, c.label].filter(Boolean).join(", "), c.effect), href: c.href }));
  const table = make("table", {}, make("caption", { textContent: "Each page and user; its name opens its distributions" }), make("thead", {}, make("tr", {}, ...["Page and user", "Valid trials", "Verdict"].map(textContent => make("th", { scope: "col", textContent })))),
    make("tbody", {}, ...view.cells.map(c => make("tr", {}, make("th", { scope: "row" }, link(choosing({ cell: c.name }), c.name)), make("td", { textContent: `${c.valid} of ${c.trials}` }), make("td", { textContent: c.headline || "–" })))));
  const card = make("section", { className: "card" }, make("h2", { textContent: "Pages and users" }));
  if (view.cells.some(c => range(c.effect))) {
    card.append(percents("Changes of all pages and users in percent", rows), numbers("Numbers", "Changes in percent", `${run}-pages`, () => ({
      head: ["Page and user", "Metric", "Change, %", "Low", "High"], rows: all.map(c => [c.name, c.label, ...["value", "low", "high"].map(k => range(c.effect) ? signed(range(c.effect)[k]) : null)]),
      csv: [["cell", "metric", "change_percent", "low_percent", "high_percent"], ...all.map(c => [c.name, c.effect?.metric || "", ...["value", "low", "high"].map(k => range(c.effect)?.[k] ?? "")])],
    })));
  }
  card.append(make("div", { className: "wide-table", tabIndex: 0, role: "region", ariaLabel: "Pages and users" }, table));
  $("together").replaceChildren(card);
}

// metrics shows a card for each metric. A card that is there stays: something in it may be open, or have the focus.
function metrics() {
  const wanted = new Set(view.metrics.map(m => m.metric));
  for (const [name, card] of cards) if (!wanted.has(name)) { card.box.remove(); cards.delete(name); }
  for (const m of view.metrics) {
    let card = cards.get(m.metric);
    if (!card) cards.set(m.metric, card = cardOf(m.metric));
    card.update();
    if (!card.box.isConnected) $("metrics").append(card.box);
  }
}

function cardOf(name) {
  const metric = () => view.metrics.find(m => m.metric === name), at = n => view.trials.findIndex(t => t.n === n);
  const spread = arm => metric().arms.find(s => s.arm === arm);
  const trialsOf = arm => view.trials.flatMap((t, i) => t.arm === arm && !t.extra && metric().values[i] !== null ? [{ t, value: metric().values[i] }] : []);
  const rows = () => view.arms.map((a, kind) => ({ name: `${ofTwo(a.name) || "Median"}${spread(a.arm) ? `: ${number(spread(a.arm).median)} ${metric().unit}` : ""}`, kind, spread: spread(a.arm),
    dots: trialsOf(a.arm).map(({ t, value }) => ({ value, valid: t.valid, href: trialOf(t.n), says: `Trial ${t.n}${ofTwo(`, ${a.name.toLowerCase()}`)}: ${number(value)} ${metric().unit}${t.valid ? "" : ", left out"}` })) }));
  const each = () => view.pairs.flatMap((p, i) => { // pairs of which both have the metric
    const [control, treatment] = [p.control, p.treatment].map(n => metric().values[at(n)] ?? null);
    return control === null || treatment === null ? [] : [{ n: i + 1, ...p, values: [control, treatment], value: treatment - control }];
  });
  const dots = () => each().map(p => ({ ...p, pair: p.n, href: `${choosing({ pair: p.n })}#films`, current: String(p.n) === query.get("pair"),
    says: `Pair ${p.n}, trials ${p.control} and ${p.treatment}: ${signed(p.value)} ${metric().unit}` }));
  const first = metric(), file = `${run}-${first.metric}`, unit = first.unit;
  const head = make("h2", { textContent: first.label }), says = make("p", { className: "hint" });
  const arms = distribution(() => ({ metric: metric(), rows: rows() })), diffs = differences(() => ({ metric: metric(), pairs: dots() }));
  const values = numbers("All trials, as a table", `${first.label} of each trial`, file, () => ({
    head: ["Trial", "Arm", `${first.label}, ${unit}`, "Counted"],
    rows: view.trials.map((t, i) => [link(trialOf(t.n), t.n), t.arm, value(metric().values[i]), t.valid ? "yes" : t.extra || "left out"]),
    csv: [["trial", "arm", `${first.metric}`, "valid"], ...view.trials.map((t, i) => [t.n, t.arm, metric().values[i] ?? "", t.valid])],
  }));
  const pairs = numbers("All pairs, as a table", `${first.label}, treatment minus control, of each pair`, `${file}-pairs`, () => ({
    head: ["Pair", "Trials", "Control", "Treatment", `Difference, ${unit}`],
    rows: each().map(p => [link(`${choosing({ pair: p.n })}#films`, p.n), `${p.control} and ${p.treatment}`, ...p.values.map(value), value(p.value)]),
    csv: [["pair", "control_trial", "treatment_trial", "control", "treatment", "difference"], ...each().map(p => [p.n, p.control, p.treatment, ...p.values, +p.value.toFixed(4)])],
  }));
  const halves = [make("div", {}, make("h3", { textContent: "Each trial" }), arms, values), make("div", {}, make("h3", { textContent: "Each pair: treatment minus control" }), diffs, pairs)];
  const box = make("section", { className: "card metric", ariaLabel: first.label }, head, says, make("div", { className: "halves" }, ...halves));
  return { box, update() {
    const { effect } = metric();
    says.textContent = effect ? wordsOf(effect) : "";
    halves[1].hidden = !each().length;
    box.querySelector(".halves").classList.toggle("two", !halves[1].hidden);
    arms.redraw();
    diffs.redraw();
    values.update();
    pairs.update();
  } };
}

function wordsOf(e) {
  if (!(e.shift.confidence > 0)) return `${upper(e.words)}.`;
  const relative = e.percent ? ` (${signed(e.percent.value)} %)` : "";
  return `${upper(e.words)}. Shift ${signed(e.shift.value)} ${e.unit}${relative}, ${percent(e.shift.confidence)} interval ${signed(e.shift.low)} to ${signed(e.shift.high)} ${e.unit}, of ${e.pairs} pairs.`;
}

function leftOut(list) {
  $("left").hidden = !list.length;
  $("left-out").replaceChildren(...list.map(t => make("li", {}, link(trialOf(t.n), `Trial ${t.n}`), `${ofTwo(` (${t.arm})`)}: ${(t.invalid || ["it is not valid"]).join("; ")}`)));
}

let all = null;
function trials() {
  if (!view.trials.length || view.kind) return;
  const pairOf = n => { const i = view.pairs.findIndex(p => p.control === n || p.treatment === n); return i < 0 ? "" : i + 1; };
  const state = t => t.extra || (t.valid ? "valid" : `left out: ${(t.invalid || []).join("; ")}`);
  all ||= numbers("The trials, as a table", "The trials in the order in which they were made", `${run}-trials`, () => ({
    head: ["Trial", "Arm", "Pair", "State", "Report"],
    rows: view.trials.map(t => [link(trialOf(t.n), t.n), t.arm, String(pairOf(t.n) || "–"), state(t), view.report && !(view.cells && !view.cell) ? link(`/runs/${encodeURIComponent(run)}/${view.report}#trial-${t.n}`, "report") : null]),
    csv: [["trial", "arm", "pair", "valid", "why"], ...view.trials.map(t => [t.n, t.arm, pairOf(t.n), t.valid, t.extra || (t.invalid || []).join("; ")])],
  }));
  if (!all.isConnected) $("trials").append(make("section", { className: "card", ariaLabel: "Trials" }, all));
  all.update();
}

// follow shows a run's progress, and reads it anew when a trial begins or the run ends.
function follow() {
  if (stream || view.state !== "running" && view.state !== "queued") return;
  stream = new EventSource(`${base}/events`);
  let seen = "";
  stream.addEventListener("progress", e => {
    const s = JSON.parse(e.data), now = `${s.state} ${s.state === "queued" ? s.doing : s.trial}`, ended = s.state !== "running" && s.state !== "queued";
    if (ended) { stream.close(); stream = null; }
    $("doing").hidden = s.state !== "running" || !s.doing;
    if (!$("doing").hidden) $("doing").replaceChildren(...doing(s, view.trials.filter(t => t.valid && !t.extra).length));
    if (now !== seen || ended) { seen = now; soon ||= setTimeout(() => { soon = null; load(); }, 200); }
  });
  stream.onerror = () => { // one that the browser does not open again, as after a log-out
    if (stream?.readyState === EventSource.CLOSED) { stream = null; soon ||= setTimeout(() => { soon = null; load(); }, 3000); }
  };
}

for (const kind of chosen) {
  $(kind).addEventListener("change", () => {
    if ($(kind).value) query.set(kind, $(kind).value); else query.delete(kind);
    if (kind === "cell") for (const name of ["step", "metric", "pair", "at", "region"]) query.delete(name);
    if (kind === "step") query.delete("metric");
    if (kind === "cell") { location.search = `?${query}`; return; } // other trials: begin anew
    keep();
    load();
  });
}
$("choose").addEventListener("submit", e => e.preventDefault());
$("metrics").addEventListener("click", async e => {
  const a = e.target.closest("a[data-pair], .numbers a[href$='#films']");
  if (!a || e.ctrlKey || e.metaKey || e.shiftKey || e.button) return;
  e.preventDefault();
  (await pair).take(Number(a.dataset.pair || a.textContent));
  for (const card of cards.values()) card.update();
  $("films").scrollIntoView({ block: "start" });
  $("films-head").focus({ preventScroll: true });
});

$("again").addEventListener("click", async () => {
  $("again").disabled = true; // a second click must not start a second run
  $("refused").textContent = "";
  try { await again(run); } catch (problem) { $("refused").textContent = `The run was not started again: ${problem.message}`; }
  $("again").disabled = false;
});

if (run) load();
else {
  $("busy").hidden = true;
  $("none").hidden = false;
}
