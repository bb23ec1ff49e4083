// The boxes of a fleet: what each does and how well it measures, and how another one joins. What a box says of
// itself is inserted as text, never as markup.
import { $, make, call, address, when } from "./common.js";
import { refresh, write } from "./refresh.js";
import { visit, json, sure, sends } from "./visit.js";
import { level, numbersOf } from "./levels.js";
/** @import { Schema } from "../panel" */

const query = new URLSearchParams(location.search);
const at = /** @type {<const Part extends string = "">(name: string, part?: Part) => `/api/v1/boxes/${string}${Part}`} */ ((name, part = "") => `/api/v1/boxes/${encodeURIComponent(name)}${part}`);
const ofDevice = /** @type {<const Part extends string>(name: string, device: string, part: Part) => `/api/v1/boxes/${string}/devices/${string}/${Part}`} */ ((name, device, part) => `${at(name)}/devices/${encodeURIComponent(device)}/${part}`);
const tone = { good: "done", drifting: "drifting", bad: "failed", maintenance: "running", unknown: "plain", idle: "plain", reserved: "running", running: "running", lost: "failed" };
const pill = (text, what) => make("em", { className: `state ${tone[text] || "plain"}`, textContent: text === "unknown" ? "health unknown" : text, title: what });
const state = (d, what) => d.ready ? d.run ? pill("running", what) : make("em", { className: "state plain", textContent: "ready" }) : make("em", { className: "state failed", textContent: "not ready" });
const labelsOf = labels => Object.entries(labels || {}).map(([key, value]) => `${key}=${value}`);
/** @type {(scope: string) => boolean} */
let may = () => false;
/** @type {Schema<"Box">[]} */
let boxes = [];
/** @type {Schema<"BoxReadings">} */
let readings = null;
let wanted = "";

// heard is how long ago something was, for people.
function heard(time) {
  const s = Math.max(0, (Date.now() - Date.parse(time)) / 1000);
  return s < 90 ? "a moment ago" : s < 5400 ? `${Math.round(s / 60)} minutes ago` : s < 129600 ? `${Math.round(s / 3600)} hours ago` : `${Math.round(s / 86400)} days ago`;
}

function device(d) {
  const facts = d.ready ? [d.screen, (d.browsers || []).join(", "), d.controls, ...labelsOf(d.labels)] : [d.problem];
  const li = make("li", { className: d.ready ? "" : "mend" }, make("strong", { textContent: d.name }), state(d, "What the device does"));
  if (d.ready && d.health !== "unknown") li.append(pill(d.health, "What its measurements of the reference say"));
  if (d.run) li.append(make("span", {}, make("a", { href: "/", textContent: d.run }), d.doing ? `, ${d.doing}` : ""));
  li.append(make("p", { className: "hint", textContent: facts.filter(Boolean).join(" · ") }));
  li.dataset.key = d.name;
  return li;
}

function item(b) {
  const li = make("li", { className: "card box" });
  li.dataset.key = b.name;
  const open = make("a", { href: `/boxes?box=${encodeURIComponent(b.name)}`, textContent: b.name });
  if (b.name === wanted) open.ariaCurrent = "true";
  li.append(make("h2", {}, open, " ", pill(b.state, "What the box does"), pill(b.health, "How well it measures")));
  if (b.reason) li.append(make("p", { className: b.health === "bad" ? "bad" : "", textContent: b.reason }));
  li.append(make("p", { className: "hint", textContent: [`heard of ${heard(b.seen)}`, `${b.cores} cores`, `${Math.round(b.memory_bytes / 2 ** 30)} GB`, b.software, ...labelsOf(b.labels)].filter(Boolean).join(" · ") }),
    b.devices.length ? make("ul", { className: "devices" }, ...b.devices.map(device))
      : make("p", { textContent: "It has no device, and so gets no runs: connect one, or write one into the configuration of the box." }));
  return li;
}

// rollout shows an update of the boxes that goes on or was stopped.
function rollout(r) {
  $("rollout").hidden = !r || r.state === "done";
  if (!r) return;
  write($("rollout"), `Update to ${r.version}: ${r.doing}.`);
  $("rollout").className = r.state === "stopped" ? "bad" : "";
}

// one shows the box that the address names.
function one(b) {
  $("one").hidden = !b;
  if (!b) return;
  write($("one-head"), b.name);
  refresh($("one-state"), [pill(b.state, "What the box does"), pill(b.health, "How well it measures"), make("span", { textContent: b.reason || "" })]);
  const facts = [["Joined", when(b.joined)], ["Heard of", `${heard(b.seen)}, ${when(b.seen)}`], ["Software", b.software], ["Fingerprint of its certificate", b.fingerprint], ["Labels", labelsOf(b.labels).join(", ") || "none"]];
  refresh($("facts"), facts.flatMap(([name, value]) => [make("dt", { textContent: name }), make("dd", { textContent: value })]));
  $("reading").hidden = !b.devices.length;
  options($("of-device"), b.devices.map(d => [d.name, d.name]));
  $("acts").hidden = !may("run");
  $("own").hidden = !may("admin");
  $("measure").hidden = !may("run");
  write($("maintenance").querySelector("button"), b.health === "maintenance" ? "End maintenance" : "Begin maintenance");
  write($("bad").querySelector("button"), b.health === "bad" ? "Accept this box again" : "Call this box bad");
  if (!$("labels").contains(document.activeElement) && $("labels").dataset.of !== b.name) {
    $("labels").dataset.of = b.name;
    $("labels").elements.labels.value = labelsOf(b.labels).join("\n");
  }
}

// options fills a select, and keeps what is chosen.
function options(select, all) {
  const before = select.value;
  refresh(select, all.map(([value, textContent]) => { const o = make("option", { value, textContent }); o.dataset.key = value; return o; }));
  if (all.some(([value]) => value === before)) select.value = before;
}

let drawn = "";
// measured shows what the chosen device measured of the reference.
async function measured(b) {
  const device = $("of-device").value;
  if (!b || !device) return;
  readings = await call(ofDevice(b.name, device, "readings"));
  const metrics = readings.metrics;
  options($("of-metric"), metrics.map(m => [m.metric, m.label]));
  write($("why"), `${readings.why || `Its health is ${readings.health}.`}${readings.since ? ` Since ${when(readings.since)}.` : ""}`);
  refresh($("changed"), readings.changed.map(text => make("li", { textContent: `Changed then: ${text}` })));
  $("of-metric").parentNode.hidden = !metrics.length;
  $("accept").hidden = $("accept-help").hidden = !may("admin") || !metrics.length;
  draw();
}

// draw draws the chart anew only if there is something new: a person may be walking through it.
function draw() {
  const metric = $("of-metric").value, now = JSON.stringify([readings, metric, Boolean(current)]);
  if (drawn === now) return;
  drawn = now;
  if (!metric) {
    $("levels").replaceChildren(make("p", { className: "hint none", textContent: `It has not measured the reference yet: ${current ? "“Measure now” starts a run of it" : "set one below, and all devices measure it"}.` }));
    return;
  }
  const { label } = readings.metrics.find(m => m.metric === metric);
  $("levels").replaceChildren(level(readings, metric, label), numbersOf(readings, metric, label, when));
}

/** @type {Schema<"Reference">} */
let current = null; // the reference, or null
async function reference() {
  current = await call("/api/v1/reference").catch(problem => { if (problem.status === 404) return null; throw problem; });
  const p = current?.plan;
  write($("reference-now"), p ? `Each device measures ${address(p.page || "")}${p.name ? ` (${p.name})` : ""} with the recording ${p.archive} every ${current.every}.` : `There is no reference yet, so the health of the boxes is unknown. ${may("admin") ? "Choose a page and its recording." : "A token of the scope admin sets one."}`);
  $("reference").hidden = !may("admin");
  $("no-reference").hidden = !current;
  const form = $("reference");
  if (form.contains(document.activeElement) || form.dataset.of === JSON.stringify(current)) return;
  form.dataset.of = JSON.stringify(current);
  for (const field of ["page", "archive", "link", "trials"]) form.elements[field].value = p?.[field] ?? "";
  form.elements.browser.value = typeof p?.browser === "object" ? p.browser.name ?? "" : p?.browser ?? "";
  form.elements.every.value = current?.every ?? "";
}

const chosen = () => boxes.find(b => b.name === wanted);
const offered = new Set();

const load = visit(async me => {
  may = me.may;
  wanted = query.get("box") || "";
  const fleet = await call("/api/v1/boxes");
  boxes = fleet.boxes;
  rollout(fleet.rollout);
  $("none").hidden = boxes.length > 0;
  $("none-small").hidden = $("join").hidden = may("admin");
  $("join").hidden = !may("admin");
  refresh($("boxes"), boxes.map(item), $("boxes-head"));
  one(chosen());
  await reference(); // what is said of a device that has not measured it depends on it
  await measured(chosen());
  if (!may("admin") || offered.size) return;
  offered.add("all");
  const [a, d] = await Promise.all([call("/api/v1/archives").catch(() => ({ archives: [] })), call("/api/v1/devices").catch(() => ({ links: [] }))]);
  const option = value => make("option", { value });
  $("archives").replaceChildren(...a.archives.map(a => option(a.name)));
  $("links").replaceChildren(...d.links.map(option));
});
setInterval(() => { if (!document.hidden && $("login").hidden && !$("sure").open) load(); }, 5000);

const say = text => { $("did").textContent = text; };
// tried does something that the page says the result of.
const tried = async (what, act) => {
  try { say(await act()); } catch (problem) { say(`${what}: ${problem.message}.`); }
  await load();
};
const change = async body => { const b = await call(at(wanted), json("PATCH", body)); load(); return b; };

$("boxes").addEventListener("click", async e => {
  const a = e.target.closest("h2 a");
  if (!a || e.ctrlKey || e.metaKey || e.shiftKey) return;
  e.preventDefault();
  query.set("box", a.closest("[data-key]").dataset.key);
  history.replaceState(null, "", `?${query}`);
  await load();
  $("one-head").focus();
});
$("of-device").addEventListener("change", () => tried("The readings could not be loaded", async () => { await measured(chosen()); return ""; }));
$("of-metric").addEventListener("change", draw);
$("measure").addEventListener("click", () => tried("The reference could not be measured", async () => {
  const run = await call(ofDevice(wanted, $("of-device").value, "measurements"), { method: "POST" });
  return `Run ${run.id} measures the reference on ${wanted}/${$("of-device").value}.`;
}));
$("accept").addEventListener("click", () => {
  const device = $("of-device").value, name = wanted;
  sure(`Accept the level of ${name}/${device}?`, "What it measures now is its baseline from now on. Its older numbers are not changed; comparisons across this point say so.", "Accept",
    () => call(ofDevice(name, device, "level"), { method: "PUT" }), async () => { say(`The level of ${name}/${device} is its baseline now.`); await load(); $("one-head").focus(); });
});
sends($("maintenance"), async f => {
  const on = chosen()?.health !== "maintenance", reason = f.reason.value;
  await change({ maintenance: on, ...on && reason && { reason } });
  f.reason.value = "";
  say(on ? `${wanted} is in maintenance.` : `${wanted} gets runs again.`);
});
sends($("bad"), async () => {
  const on = chosen()?.health !== "bad";
  await change({ bad: on });
  say(on ? `${wanted} gets no runs until somebody accepts it again.` : `${wanted} gets runs again.`);
});
sends($("labels"), async f => {
  const labels = {};
  for (const line of f.labels.value.split("\n").map(l => l.trim()).filter(Boolean)) {
    const [key, ...value] = line.split("=");
    if (!value.length) throw new Error(`${line}: write KEY=VALUE, such as room=2.14.`);
    labels[key] = value.join("=");
  }
  await change({ labels });
  say(`The labels of ${wanted} are kept.`);
});
$("remove").addEventListener("click", () => {
  const name = wanted;
  sure(`Remove ${name} from the fleet?`, "Its certificate is worth nothing from then on. What it carries out goes back into the queue; runs that it finished stay. To come back it needs a new link.", "Remove",
    () => call(at(name), { method: "DELETE" }), async () => {
      say(`${name} is removed.`);
      query.delete("box");
      history.replaceState(null, "", location.pathname);
      await load();
      $("boxes-head").focus();
    });
});

$("code").addEventListener("click", async () => {
  $("code-wrong").textContent = "";
  try {
    const made = await call("/api/v1/boxes/codes", { method: "POST" });
    $("command").textContent = `appliance join '${made.link}'`;
    $("expires").textContent = when(made.expires);
    $("copy").textContent = "Copy";
    $("made").hidden = false;
  } catch (problem) { $("code-wrong").textContent = problem.message; }
});
$("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText($("command").textContent);
    $("copy").textContent = "Copied";
  } catch { getSelection().selectAllChildren($("command")); } // without TLS a page has no clipboard
});

sends($("reference"), async f => {
  const plan = { ...current?.plan }; // what the form has no field for stays
  for (const field of ["page", "archive", "link", "browser"]) if (f[field].value) plan[field] = f[field].value; else delete plan[field];
  if (f.trials.value) plan.trials = Number(f.trials.value); else delete plan.trials;
  const set = await call("/api/v1/reference", json("PUT", { plan, every: f.every.value }));
  say(`The reference is measured every ${set.every}.`);
  document.activeElement.blur();
  load();
});
$("no-reference").addEventListener("click", () => sure("Remove the reference?", "No device measures it any more, and nobody is told when one drifts. What was measured stays.", "Remove",
  () => call("/api/v1/reference", { method: "DELETE" }), async () => { say("There is no reference any more."); await load(); $("reference-head").focus(); }));
