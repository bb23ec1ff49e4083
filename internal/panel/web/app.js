// The list of runs. Everything that comes from a run is put in as text.
import { $, make, call, number, address, found, reportOf, signIn } from "./common.js";
import { become, refresh, write } from "./refresh.js";
import { ask } from "./ask.js";

let runs = null; // those in the list; null while it is not known
const news = new Map(); // run id → what it does
const step = 50; // by so many runs the list grows
let rows = step, stream = null, busy = null, retry = null, box = null, looking = null;
let wanted = 0, reading = false; // how often the list was asked for, and whether it is being read
let changes = 0; // what was done here; an answer from before does not know of it

const headline = [["time_to_stable_ms", "looks finished"], ["speed_index_ms", "SpeedIndex"]];

// figure is a metric's median; of a run with two arms it is the control's, and says so.
function figure(run, [metric, label]) {
  const known = (run.summary || []).filter(s => s.metric === metric && s.n > 0);
  const s = known.find(s => s.arm === "control") || known[0];
  const whose = run.comparison && s ? `, ${s.arm}` : "";
  return make("div", { className: "number" }, ...(s ? [`${number(s.median)} ms`, make("small", { textContent: label + whose })] : []));
}

// historyOf is where the runs of the same name on the same page are laid side by side.
const historyOf = run => `/history?${new URLSearchParams(Object.entries({ name: run.name, page: run.page }).filter(([, value]) => value))}`;

const named = run => run.page ? address(run.page) : run.id;
const goesOn = run => run.state === "queued" || run.state === "running";

function item(run) {
  const li = make("li", { className: "run" });
  li.dataset.key = run.id;
  const title = make("h2");
  title.append(run.report ? make("a", { href: reportOf(run.id), textContent: named(run) }) : named(run));
  const when = make("time", { dateTime: run.wall, textContent: new Date(run.wall).toLocaleString() });
  const facts = make("p", {}, make("em", { className: `state ${run.state}`, textContent: run.state }), when);
  if (run.name) facts.append(` · ${run.name}`);
  if (run.trials) facts.append(` · ${run.valid} of ${run.trials} trials valid`);
  if (run.state === "done") facts.append(" · ", make("a", { href: historyOf(run), textContent: "history" }));
  const left = make("div", {}, title, facts);
  if (run.comparison) left.append(found(run.comparison));
  if (run.error) left.append(make("p", { textContent: run.error }));
  if (run.state === "running") left.append(doing(news.get(run.id)));
  if (health.starts) {
    const [key, what] = goesOn(run) ? ["cancel", "Cancel"] : ["remove", "Delete"];
    const button = make("button", { type: "button", className: `act-on ${key}`, textContent: what, ariaLabel: `${what} run ${run.id}` });
    button.dataset.key = key;
    facts.append(" · ", button);
  }
  li.append(left, ...headline.map(h => figure(run, h)));
  return li;
}

// doing is the progress of a run, as far as it has been told.
function doing(s) {
  if (!s) return make("p", { className: "doing", hidden: true });
  const trial = s.trial || 1;
  return make("p", { className: "doing" }, `${s.doing || "running"}${s.of ? `, trial ${trial} of ${s.of}` : ""}`,
    ...(s.of ? [make("progress", { max: s.of, value: Math.max(0, trial - 1), ariaLabel: "Trials done" })] : []));
}

// say tells those who do not see the page what changed on it.
function say(text) {
  const log = $("news");
  log.append(make("p", { textContent: text }));
  if (log.childElementCount > 5) log.firstChild.remove();
}

// show puts the runs into the list; null is a list that is not known. What stays
// as it is is not touched: it may have the focus.
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

// forget takes a run off the list, which stays where it is.
function forget(id) {
  changes++;
  show(runs.filter(run => run.id !== id));
  $("heading").focus();
}

// load reads the list anew, as far as it is shown. One answer is awaited at a
// time: of two, the older one may come last.
async function load() {
  wanted++;
  if (reading) return;
  reading = true;
  clearTimeout(retry);
  for (let turn = 0; turn !== wanted;) {
    turn = wanted;
    await read().catch(failed);
  }
  reading = false;
}

async function read() {
  const before = changes, fresh = [];
  let next = "";
  do {
    const page = await call(`/api/v1/runs?limit=${Math.min(rows - fresh.length, 500)}${next && `&before=${encodeURIComponent(next)}`}`, { signal: AbortSignal.timeout(60_000) });
    fresh.push(...page.runs);
    next = page.next || "";
  } while (next && fresh.length < rows);
  if (before !== changes) return; // it was asked for again since
  show(fresh);
  $("more").hidden = !next;
  $("none").hidden = fresh.length > 0;
  $("login").hidden = true;
  follow();
  showBox(fresh).then(() => { $("trouble").hidden = true; }, failed);
}

function failed(e) {
  if (e.status === 401) { $("box").hidden = $("leave").hidden = true; signIn(() => { $("leave").hidden = false; load(); }); return; }
  $("trouble").hidden = false;
  write($("trouble"), `The list could not be loaded: ${e.message}`);
  clearTimeout(retry);
  retry = setTimeout(load, 3000);
}

// showBox shows devices and the form, where runs can be started here.
async function showBox(runs) {
  if (!health.starts) return;
  box ||= await import("./box.js");
  await Promise.all([box.showDevices(say), box.showArchives(runs)]);
  $("box").hidden = $("certificate").hidden = false;
  clearTimeout(looking);
  looking = setTimeout(look, 3000);
}

// look keeps the devices and the health up to date, while somebody sees them.
async function look() {
  if ($("login").hidden) {
    try {
      if (!document.hidden) { await box.showDevices(say); showHealth(await askHealth()); }
    } catch { showHealth({ status: "not reached", parts: [] }); }
  }
  clearTimeout(looking); // the list may have been read meanwhile
  looking = setTimeout(look, 3000);
}

// askHealth reads the answer whatever its status is: it is the same when a part fails.
async function askHealth() { return (await fetch("/api/v1/health")).json(); }

function showHealth(health) {
  const failing = health.parts.filter(p => !p.ok).map(p => p.name);
  const warnings = health.warnings || [], well = health.status === "ok" && !warnings.length;
  const text = well ? "healthy" : [...(health.status === "ok" ? warnings : [health.status, ...failing, ...warnings])].join(": ");
  const old = $("health");
  if (old.textContent && old.textContent !== text) say(`The appliance: ${text}`);
  become(old, make("span", { id: "health", className: `state ${well ? "done" : "failed"}`, hidden: !health.parts.length && well, textContent: text }));
}

// follow shows the progress of runs that go on; the list is read again when one begins or ends.
function follow() {
  if (stream) return;
  stream = new EventSource("/api/v1/events");
  // What happened before the stream opened, or while it was away, is not told again: the list is read anew.
  stream.onopen = load;
  stream.onerror = e => {
    if (e.target !== stream || stream.readyState !== EventSource.CLOSED) return; // the browser tries again by itself
    stream = null;
    clearTimeout(retry);
    retry = setTimeout(load, 3000);
  };
  stream.addEventListener("progress", e => {
    const s = JSON.parse(e.data), run = runs?.find(run => run.id === s.run);
    if (s.state === "running") news.set(s.run, s);
    if (s.state !== "running" || run?.state !== "running") { busy ||= setTimeout(() => { busy = null; load(); }, 200); return; }
    const p = $("runs").querySelector(`[data-key="${CSS.escape(s.run)}"] .doing`);
    p.hidden = false;
    refresh(p, [...doing(s).childNodes]);
  });
}

$("runs").addEventListener("click", e => {
  const button = e.target.closest("button"), run = button && runs.find(run => run.id === button.closest("li").dataset.key);
  if (!run) return;
  const what = button.dataset.key; // now: the button may become another one before the answer
  ask(what, run, named(run), () => {
    if (what === "remove") forget(run.id);
    load();
  });
});
$("leave").addEventListener("click", async () => {
  await call("/api/v1/session", { method: "DELETE" });
  if (stream) stream.close();
  stream = null;
  changes++; // nothing comes after this that was asked for before
  show(null);
  load();
});
$("more").addEventListener("click", () => { rows += step; load(); });

const health = await askHealth();
write($("version"), health.version);
showHealth(health);
$("leave").hidden = !health.token;
load();
