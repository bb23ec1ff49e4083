// The list of runs. All content from runs is inserted as text, never as markup.
import { $, make, call, doing, number, address, found, reportOf, runOf, signIn, when } from "./common.js";
import { again } from "./faults.js";
import { become, refresh, write } from "./refresh.js";
import { ask } from "./ask.js";
/** @import { Schema } from "../panel" */

/** @type {Schema<"Entry">[]} */
let runs = null; // the runs in the list; null until it is loaded
/** @type {Map<string, Schema<"Progress">>} */
const news = new Map(); // run id → its latest progress
const step = 50; // how many more runs a click on "Show older runs" loads
const pages = new Set(); // addresses that were seen, to filter by
let rows = step, stream = null, busy = null, retry = null, box = null, looking = null, waiting = null;
let wanted = 0, reading = false; // counts the requests to reload; whether a reload is in progress
let changes = 0; // counts local changes; an older answer does not contain them

// filter is what of the runs is shown; the address has it.
const query = new URLSearchParams(location.search), filters = ["state", "kind", "verdict", "page", "since"];
const filter = () => filters.filter(name => query.get(name)).map(name => `&${name}=${encodeURIComponent(name === "since" ? new Date(`${query.get(name)}T00:00`).toISOString() : query.get(name))}`).join("");
for (const name of filters) $("filter").elements[name].value = query.get(name) || "";

/** @type {Schema<"MetricEntry">[]} */
let headline = []; // the two metrics of a load that tell most

// figure shows a metric's median; with two arms it is that of the control, and says so.
/** @param {Schema<"Entry">} run */
function figure(run, { name, label, unit }) {
  const known = (run.summary || []).filter(s => s.metric === name && s.n > 0);
  const s = known.find(s => s.arm === "control") || known[0];
  const whose = run.comparison && s ? `, ${s.arm}` : "";
  return make("div", { className: "number" }, ...(s ? [`${number(s.median)} ${unit}`, make("small", { textContent: label + whose })] : []));
}

// historyOf is the address of the history of runs with the same name and page.
const historyOf = run => `/history?${new URLSearchParams(Object.entries({ name: run.name, page: run.page }).filter(([, value]) => value))}`;

const named = run => run.page ? address(run.page) : run.kind ? run.name : run.id;
const goesOn = run => run.state === "queued" || run.state === "running";

/** @param {Schema<"Entry">} run */
function item(run) {
  const li = make("li", { className: "run" });
  li.dataset.key = run.id;
  const title = make("h2");
  title.append(make("a", { href: runOf(run.id), textContent: named(run) }));
  const facts = make("p", {}, make("em", { className: `state ${run.state}`, textContent: run.state }), make("time", { dateTime: run.wall, textContent: when(run.wall) }));
  if (run.kind) facts.append(` · ${run.kind}`);
  else if (run.name) facts.append(` · ${run.name}`);
  if (run.trials && !run.kind) facts.append(` · ${run.valid} of ${run.trials} trials valid`);
  if (run.on) facts.append(` · ${run.on.join(", ")}`);
  if (run.report) facts.append(" · ", make("a", { href: reportOf(run.id), textContent: "report" }));
  if (run.state === "done" && !run.kind) facts.append(" · ", make("a", { href: historyOf(run), textContent: "history" }));
  const left = make("div", {}, title, facts);
  if (run.trials) facts.append(" · ", make("a", { href: `/trial?run=${encodeURIComponent(run.id)}`, textContent: "frames" }));
  if (run.comparison) left.append(found(run.comparison));
  if (run.error) left.append(make("p", { textContent: run.error }));
  if (run.waits) left.append(make("p", { className: "waits", textContent: `${run.state === "queued" ? "Waits" : "Some of its pages wait"}: ${run.waits}` }));
  if (run.state === "running") left.append(make("div", { className: "doing" }, ...(news.has(run.id) ? doing(news.get(run.id), run.valid) : [])));
  if (health.starts) {
    const rerun = make("button", { type: "button", className: "act-on again", textContent: "Run again", ariaLabel: `Run again: ${run.id}` });
    rerun.dataset.key = "again";
    if (!run.kind) facts.append(" · ", rerun, " · ", make("a", { href: `/plan?run=${encodeURIComponent(run.id)}`, textContent: "Edit its plan", ariaLabel: `Edit its plan: ${run.id}` }));
    const [key, what] = goesOn(run) ? ["cancel", "Cancel"] : ["remove", "Delete"];
    const button = make("button", { type: "button", className: `act-on ${key}`, textContent: what, ariaLabel: `${what} run ${run.id}` });
    button.dataset.key = key;
    facts.append(" · ", button);
  }
  li.append(left, ...headline.map(h => figure(run, h)));
  return li;
}

// say announces a change to screen readers.
function say(text) {
  const log = $("news");
  log.append(make("p", { textContent: text }));
  if (log.childElementCount > 5) log.firstChild.remove();
}

// show displays the runs; null means that the list is not loaded. Unchanged nodes
// are not touched: one of them may have the focus.
function show(fresh) {
  const before = new Map(runs?.map(run => [run.id, run.state]));
  for (const run of fresh || []) {
    const known = before.get(run.id);
    if (known ? known !== run.state : runs && goesOn(run)) say(`${named(run)}: ${run.state}. ${run.comparison ? `${run.comparison.headline}.` : run.error || ""}`);
    if (!goesOn(run)) news.delete(run.id);
  }
  runs = fresh;
  refresh($("runs"), (runs || []).map(item), $("heading"));
}

// forget removes a run from the list without scrolling it.
function forget(id) {
  changes++;
  show(runs.filter(run => run.id !== id));
  $("heading").focus();
}

// load reloads the part of the list that is shown. It makes one request at a time:
// of two concurrent answers the older one may arrive last.
async function load() {
  wanted++;
  if (reading) return;
  reading = true;
  clearTimeout(retry);
  clearTimeout(waiting);
  for (let turn = 0; turn !== wanted;) {
    turn = wanted;
    await read().catch(failed);
  }
  reading = false;
}

async function read() {
  const before = changes, fresh = [];
  let next = "";
  if (!headline.length) headline = (await call("/api/v1/metrics")).metrics.filter(m => m.guard && m.scope === "load").slice(0, 2);
  do {
    const page = await call(`/api/v1/runs?limit=${Math.min(rows - fresh.length, 500)}${next && `&before=${encodeURIComponent(next)}`}${filter()}`, { signal: AbortSignal.timeout(60_000) });
    fresh.push(...page.runs);
    next = page.next || "";
  } while (next && fresh.length < rows);
  if (before !== changes) return; // a local change makes this answer obsolete
  show(fresh);
  $("more").hidden = !next;
  $("none").hidden = fresh.length > 0 || Boolean(filter());
  $("none-such").hidden = fresh.length > 0 || !filter();
  $("filter").hidden = !fresh.length && !filter();
  for (const run of fresh) if (run.page) pages.add(run.page);
  refresh($("seen-pages"), [...pages].slice(0, 200).map(value => make("option", { value })));
  $("login").hidden = true;
  follow();
  if (fresh.some(run => run.waits)) waiting = setTimeout(load, 10_000); // what they wait for changes without news of them
  showBox(fresh).then(() => { $("trouble").hidden = true; }, failed);
}

function failed(e) {
  if (e.status === 401) { $("box").hidden = true; signIn(load); return; }
  $("trouble").hidden = false;
  write($("trouble"), `The list could not be loaded: ${e.message}`);
  clearTimeout(retry);
  retry = setTimeout(load, 3000);
}

// showBox shows the devices and the form, if runs can be started here.
async function showBox(runs) {
  if (!health.starts) return;
  box ||= await import("./box.js");
  await Promise.all([box.showDevices(say), box.showArchives(runs)]);
  $("box").hidden = false;
  clearTimeout(looking);
  looking = setTimeout(look, 3000);
}

// look polls the devices and the health while the page is visible.
async function look() {
  if ($("login").hidden) {
    try {
      if (!document.hidden) { await box.showDevices(say); showHealth(await askHealth()); }
    } catch { showHealth({ status: "not reached", parts: [] }); }
  }
  clearTimeout(looking); // a reload of the list may have set a timer meanwhile
  looking = setTimeout(look, 3000);
}

// askHealth reads the body whatever the status: 503 has the same body.
async function askHealth() { return (await fetch("/api/v1/health")).json(); }

function showHealth(health) {
  const failing = health.parts.filter(p => !p.ok).map(p => p.name);
  const warnings = health.warnings || [], well = health.status === "ok" && !warnings.length;
  const text = well ? "healthy" : [...(health.status === "ok" ? warnings : [health.status, ...failing, ...warnings])].join(": ");
  const old = $("health");
  if (old.textContent && old.textContent !== text) say(`The appliance: ${text}`);
  become(old, make("span", { id: "health", className: `state ${well ? "done" : "failed"}`, hidden: !health.parts.length && well, textContent: text }));
}

// follow shows the progress of running runs, and reloads the list when a run begins or ends.
function follow() {
  if (stream) return;
  stream = new EventSource("/api/v1/events");
  // The stream does not repeat events from before it opened: reload the list.
  stream.onopen = load;
  stream.onerror = e => {
    if (e.target !== stream || stream.readyState !== EventSource.CLOSED) return; // the browser reconnects by itself
    stream = null;
    clearTimeout(retry);
    retry = setTimeout(load, 3000);
  };
  stream.addEventListener("progress", e => {
    const s = JSON.parse(e.data), run = runs?.find(run => run.id === s.run);
    if (s.state === "running") news.set(s.run, s);
    if (s.state !== "running" || run?.state !== "running") { busy ||= setTimeout(() => { busy = null; load(); }, 200); return; }
    const p = $("runs").querySelector(`[data-key="${CSS.escape(s.run)}"] .doing`);
    refresh(p, doing(s, run.valid));
  });
}

$("runs").addEventListener("click", e => {
  const button = e.target.closest("button"), run = button && runs.find(run => run.id === button.closest("li").dataset.key);
  if (!run) return;
  if (button.dataset.key === "again") {
    button.disabled = true; // a second click must not start a second run
    again(run.id).catch(problem => { button.disabled = false; $("trouble").hidden = false; write($("trouble"), `The run was not started again: ${problem.message}`); $("trouble").scrollIntoView({ block: "center" }); });
    return;
  }
  const what = button.dataset.key; // read now: the button may change before the answer
  ask(what, run, named(run), () => {
    if (what === "remove") forget(run.id);
    load();
  });
});
$("filter").addEventListener("submit", e => e.preventDefault());
$("filter").addEventListener("change", () => {
  for (const name of filters) if ($("filter").elements[name].value) query.set(name, $("filter").elements[name].value); else query.delete(name);
  history.replaceState(null, "", query.size ? `/?${query}` : "/");
  changes++; // answers to earlier requests are of other runs
  runs = null;
  load();
});
$("more").addEventListener("click", () => { rows += step; load(); });

const health = await askHealth();
write($("version"), health.version);
showHealth(health);
load();
