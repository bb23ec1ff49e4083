// The list of runs. Everything that comes from a run is put in as text.
import { $, make, call, number, address, found, reportOf, signIn } from "./common.js";

const shown = new Map(), known = new Map(); // run id → list item, and the run
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

function item(run) {
  const li = make("li", { className: "run" });
  const title = make("h2");
  const name = run.page ? address(run.page) : run.id;
  title.append(run.report ? make("a", { href: reportOf(run.id), textContent: name }) : name);
  const when = make("time", { dateTime: run.wall, textContent: new Date(run.wall).toLocaleString() });
  const facts = make("p", {}, make("em", { className: `state ${run.state}`, textContent: run.state }), when);
  if (run.name) facts.append(` · ${run.name}`);
  if (run.trials) facts.append(` · ${run.valid} of ${run.trials} trials valid`);
  if (run.state === "done") facts.append(" · ", make("a", { href: historyOf(run), textContent: "history" }));
  const left = make("div", {}, title, facts);
  if (run.comparison) left.append(found(run.comparison));
  if (run.error) left.append(make("p", { textContent: run.error }));
  left.append(make("p", { className: "doing", hidden: true }));
  // One that waits or goes on is cancelled, which is another thing.
  if (health.starts && run.state !== "queued" && run.state !== "running") {
    const remove = make("button", { type: "button", className: "remove", textContent: "Delete", ariaLabel: `Delete run ${run.id}` });
    remove.addEventListener("click", () => askDelete(run, name));
    facts.append(" · ", remove);
  }
  li.append(left, ...headline.map(h => figure(run, h)));
  return li;
}

// askDelete asks, and deletes: nothing brings a run back.
function askDelete(run, name) {
  $("which").textContent = `${name}, ${new Date(run.wall).toLocaleString()}${run.name ? `, ${run.name}` : ""} (${run.id})`;
  $("kept").textContent = "";
  $("sure").onsubmit = async e => {
    e.preventDefault();
    $("yes").disabled = true;
    try {
      await call(`/api/v1/runs/${encodeURIComponent(run.id)}?files=true`, { method: "DELETE" });
      $("sure").close();
      forget(run.id);
      $("heading").focus();
    } catch (problem) { $("kept").textContent = `The run could not be deleted: ${problem.message}.`; }
    $("yes").disabled = false;
  };
  $("sure").showModal();
}

// forget takes a run off the list, which stays where it is.
function forget(id) {
  changes++;
  shown.get(id)?.remove();
  shown.delete(id);
  known.delete(id);
  load();
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
  const before = changes, runs = [];
  let next = "";
  do {
    const page = await call(`/api/v1/runs?limit=${Math.min(rows - runs.length, 500)}${next && `&before=${encodeURIComponent(next)}`}`, { signal: AbortSignal.timeout(60_000) });
    runs.push(...page.runs);
    next = page.next || "";
  } while (next && runs.length < rows);
  if (before !== changes) return; // it was asked for again since
  show(runs);
  $("more").hidden = !next;
  $("none").hidden = shown.size > 0;
  $("login").hidden = true;
  follow();
  showBox(runs).then(() => { $("trouble").hidden = true; }, failed);
}

// show puts runs into the list. What stays as it is is not touched: it may have
// the focus, or tell what the run is doing.
function show(runs) {
  const items = new Map(shown), were = new Map(known), list = $("runs");
  shown.clear();
  known.clear();
  for (const run of runs) {
    const same = JSON.stringify(were.get(run.id)) === JSON.stringify(run);
    shown.set(run.id, same ? items.get(run.id) : item(run));
    known.set(run.id, run);
  }
  const now = new Set(shown.values());
  for (const li of [...list.children]) if (!now.has(li)) li.remove();
  let at = list.firstElementChild;
  for (const li of now) if (li === at) at = at.nextElementSibling; else list.insertBefore(li, at);
}

function failed(e) {
  if (e.status === 401) { $("box").hidden = $("leave").hidden = true; signIn(() => { $("leave").hidden = false; load(); }); return; }
  $("trouble").hidden = false;
  $("trouble").textContent = `The list could not be loaded: ${e.message}`;
  clearTimeout(retry);
  retry = setTimeout(load, 3000);
}

// showBox shows devices and the form, where runs can be started here.
async function showBox(runs) {
  if (!health.starts) return;
  box ||= await import("./box.js");
  await Promise.all([box.showDevices(), box.showArchives(runs)]);
  $("box").hidden = $("certificate").hidden = false;
  clearTimeout(looking);
  looking = setTimeout(look, 3000);
}

// look keeps the devices and the health up to date, while somebody sees them.
async function look() {
  if ($("login").hidden) {
    try {
      if (!document.hidden) { await box.showDevices(); showHealth(await askHealth()); }
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
  $("health").hidden = !health.parts.length && well;
  $("health").className = `state ${well ? "done" : "failed"}`;
  $("health").textContent = well ? "healthy" : [...(health.status === "ok" ? warnings : [health.status, ...failing, ...warnings])].join(": ");
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
    const s = JSON.parse(e.data), li = shown.get(s.run);
    if (!li || s.state !== "running") { busy ||= setTimeout(() => { busy = null; load(); }, 200); return; }
    const doing = li.querySelector(".doing");
    doing.hidden = false;
    doing.replaceChildren(`${s.doing || "running"}${s.of ? `, trial ${s.trial || 1} of ${s.of}` : ""}`, ...(s.of ? [make("progress", { max: s.of, value: Math.max(0, (s.trial || 1) - 1), ariaLabel: "Trials done" })] : []));
  });
}

$("leave").addEventListener("click", async () => {
  await call("/api/v1/session", { method: "DELETE" });
  if (stream) stream.close();
  stream = null;
  changes++; // nothing comes after this that was asked for before
  show([]);
  load();
});
$("no").addEventListener("click", () => $("sure").close());
$("more").addEventListener("click", () => { rows += step; load(); });

const health = await askHealth();
$("version").textContent = health.version;
showHealth(health);
$("leave").hidden = !health.token;
load();
