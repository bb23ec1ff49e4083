// The list of runs. Everything that comes from a run is put in as text.
export const $ = id => document.getElementById(id);
export const make = (tag, props = {}, ...kids) => { const e = Object.assign(document.createElement(tag), props); e.append(...kids); return e; };
const shown = new Map(); // run id → list item
let next = "", stream = null, busy = null, box = null, looking = null;

export const call = async (path, options) => {
  const answer = await fetch(path, { credentials: "same-origin", ...options });
  if (answer.ok) return answer.status === 204 ? null : answer.json();
  const problem = await answer.json().catch(() => ({}));
  const places = (problem.errors || []).map(e => `${e.location}: ${e.message}`);
  throw Object.assign(new Error([problem.detail || answer.statusText, ...places].join("; ")), { status: answer.status });
};

const number = v => Math.abs(v) >= 100 ? Math.round(v).toString().replace(/\B(?=(\d{3})+$)/g, "\u202f") : v.toFixed(1);
const headline = [["time_to_stable_ms", "looks finished"], ["speed_index_ms", "SpeedIndex"]];

function figure(run, [metric, label]) {
  const s = (run.summary || []).find(s => s.metric === metric && s.n > 0);
  return make("div", { className: "number" }, ...(s ? [`${number(s.median)} ms`, make("small", { textContent: label })] : []));
}

function item(run) {
  const li = make("li", { className: "run" });
  const title = make("h2");
  const name = run.page ? run.page.replace(/^https?:\/\//, "").replace(/\/$/, "") : run.id;
  title.append(run.report ? make("a", { href: `/runs/${encodeURIComponent(run.id)}/report.html`, textContent: name }) : name);
  const when = make("time", { dateTime: run.wall, textContent: new Date(run.wall).toLocaleString() });
  const facts = make("p", {}, make("em", { className: `state ${run.state}`, textContent: run.state }), when);
  if (run.name) facts.append(` · ${run.name}`);
  if (run.trials) facts.append(` · ${run.valid} of ${run.trials} trials valid`);
  const left = make("div", {}, title, facts);
  if (run.error) left.append(make("p", { textContent: run.error }));
  left.append(make("p", { className: "doing", hidden: true }));
  li.append(left, ...headline.map(h => figure(run, h)));
  return li;
}

function put(run, last) {
  const li = item(run), old = shown.get(run.id);
  if (old) old.replaceWith(li); else if (last) $("runs").append(li); else $("runs").prepend(li);
  shown.set(run.id, li);
}

async function load(before = "") {
  try {
    const page = await call(`/api/v1/runs?limit=50${before ? `&before=${encodeURIComponent(before)}` : ""}`);
    if (!before) { shown.clear(); $("runs").replaceChildren(); }
    for (const run of page.runs) put(run, true);
    next = page.next || "";
    $("more").hidden = !next;
    $("none").hidden = shown.size > 0;
    $("login").hidden = $("trouble").hidden = true;
    follow();
    await showBox(page.runs);
  } catch (e) {
    if (e.status === 401) { $("login").hidden = false; $("box").hidden = $("leave").hidden = true; $("token").focus(); return; }
    $("trouble").hidden = false;
    $("trouble").textContent = `The list could not be loaded: ${e.message}`;
  }
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
  looking = setTimeout(look, 3000);
}

// askHealth reads the answer whatever its status is: it is the same when a part fails.
async function askHealth() { return (await fetch("/api/v1/health")).json(); }

function showHealth(health) {
  const failing = health.parts.filter(p => !p.ok).map(p => p.name);
  $("health").hidden = !health.parts.length && health.status === "ok";
  $("health").className = `state ${health.status === "ok" ? "done" : "failed"}`;
  $("health").textContent = health.status === "ok" ? "healthy" : [health.status, ...failing].join(": ");
}

// follow shows the progress of runs that go on; the list is read again when one begins or ends.
function follow() {
  if (stream) return;
  stream = new EventSource("/api/v1/events");
  stream.addEventListener("progress", e => {
    const s = JSON.parse(e.data), li = shown.get(s.run);
    if (!li || s.state !== "running") { clearTimeout(busy); busy = setTimeout(load, 200); return; }
    const doing = li.querySelector(".doing");
    doing.hidden = false;
    doing.replaceChildren(`${s.doing || "running"}${s.of ? `, trial ${s.trial || 1} of ${s.of}` : ""}`, ...(s.of ? [make("progress", { max: s.of, value: Math.max(0, (s.trial || 1) - 1), ariaLabel: "Trials done" })] : []));
  });
}

$("login").addEventListener("submit", async e => {
  e.preventDefault();
  try {
    await call("/api/v1/session", { method: "POST", headers: { "Content-Type": "text/plain" }, body: $("token").value });
    $("token").value = $("wrong").textContent = "";
    $("leave").hidden = false;
    load();
  } catch (problem) { $("wrong").textContent = problem.message; }
});
$("leave").addEventListener("click", async () => { if (stream) stream.close(); stream = null; await call("/api/v1/session", { method: "DELETE" }); $("runs").replaceChildren(); load(); });
$("more").addEventListener("click", () => load(next));

const health = await askHealth();
$("version").textContent = health.version;
showHealth(health);
$("leave").hidden = !health.token;
load();
