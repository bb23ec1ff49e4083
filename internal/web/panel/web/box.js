// The devices, and the form that starts a run. All content from devices and recordings
// is inserted as text, never as markup.
import { $, make, call, runOf, textsOf, when } from "./common.js";
import { faults, placed } from "./faults.js";
import { refresh, write } from "./refresh.js";

function device(d) {
  const facts = d.ready ? [d.host, d.address, d.screen] : [d.problem];
  if (d.port) facts.unshift(`port ${d.port}`);
  const join = d.wifi ? [make("p", {}, "Wi-Fi ", make("b", { className: "ssid", textContent: d.wifi.ssid }), " · passphrase ", make("code", { textContent: d.wifi.passphrase }))] : [];
  const li = make("li", { className: d.ready ? "ready" : "" },
    make("strong", {}, make("a", { href: `/device?name=${encodeURIComponent(d.name)}`, textContent: d.name })),
    make("em", { className: `state ${d.ready ? "done" : "queued"}`, textContent: d.ready ? "ready" : "not ready" }),
    make("p", { textContent: facts.filter(Boolean).join(" · ") }), ...join, ...(d.parts || []).map(part));
  li.dataset.key = d.name;
  return li;
}

// part says what a device's screen is seen by, or what gives it input, and how to mend it.
function part(p) {
  return make("p", { className: p.ready ? "" : "mend" }, `${p.part}: ${p.use}`,
    ...[p.state, p.ready ? "" : p.problem].filter(Boolean).map(text => ` · ${text}`));
}

// plugged is a part that is plugged in, by the name that a configuration calls it.
function plugged(p) {
  const li = make("li", { className: p.ready ? "" : "mend" }, `${p.kind} `, make("code", { textContent: p.use }),
    [p.name, p.ready ? p.state : p.problem].filter(Boolean).map(text => ` · ${text}`).join(""));
  li.dataset.key = p.use;
  return li;
}

// choose fills a select and keeps the chosen option, even if it is no longer offered:
// a person's choice must not change by itself.
function choose(select, options) {
  const before = select.value, [kept] = select.selectedOptions;
  if (before && !options.some(([value]) => value === before)) options.push([before, kept.textContent]);
  refresh(select, options.map(([value, textContent]) => {
    const option = make("option", { value, textContent });
    option.dataset.key = value;
    return option;
  }));
  if (kept && select.value !== before) select.value = before;
}

// reached says which addresses a run may record.
const reached = {
  public: "Any public address will do. The box’s admin opens others: with network.allow_private in the configuration, or appliance serve --allow-private.",
  pages: "Any address that this machine reaches will do, also one on localhost.",
  private: "Any address that this machine reaches will do, also one on localhost or in a private network.",
};

const ready = new Map(); // name of a device → whether it was ready

let wanted = new URLSearchParams(location.search).get("device"); // the page of a device leads here

// showDevices lists the devices, and announces which became ready or ceased to be.
export async function showDevices(say) {
  const { devices, links, parts, reaches } = await call("/api/v1/devices");
  for (const d of devices) if (ready.size && ready.get(d.name) !== d.ready) say(d.ready ? `${d.name} is ready` : `${d.name} is not ready: ${d.problem}`);
  ready.clear();
  for (const d of devices) ready.set(d.name, d.ready);
  refresh($("devices"), devices.map(device));
  refresh($("plugged"), parts.map(plugged));
  $("no-devices").toggleAttribute("hidden", devices.length > 0); // which changes nothing that is so already
  $("parts").toggleAttribute("hidden", !parts.length);
  choose($("new").elements.device, devices.map(d => [d.name, d.ready ? d.name : `${d.name} (not ready)`]));
  if (wanted && devices.some(d => d.name === wanted)) {
    form.elements.device.value = wanted;
    form.elements.device.closest("details").open = true;
    wanted = null;
  }
  if ($("reaches")) write($("reaches"), reached[reaches]);
  refresh($("links"), links.map(value => make("option", { value })));
}

let asked = 0;

// showArchives lists uploaded recordings, then those made by runs.
export async function showArchives(runs) {
  const turn = ++asked;
  const { archives } = await call("/api/v1/archives");
  if (turn !== asked) return; // a newer call has been made
  choose($("new").elements.archive, [["", "record the page first"],
    ...archives.map(a => [a.name, `${a.name}, ${(a.bytes / 1e6).toFixed(1)} MB`]),
    ...runs.filter(r => r.state === "done").map(r => [r.id, `of ${r.name || "run"} ${when(r.wall)}`])]);
}

const form = $("new"), inputs = () => [...form.querySelectorAll("[data-path]")];

// planOf is the plan that the form asks for.
function planOf() {
  const { other, treatment, ...given } = Object.fromEntries(Object.entries(textsOf(form)).map(([name, value]) => [name, value.trim()]).filter(([, value]) => value !== ""));
  const arm = { ...other && { page: other }, ...treatment && { link: treatment } };
  return { ...given, trials: Number(given.trials || 10), ...given.traces && { traces: Number(given.traces) }, ...Object.keys(arm).length && { treatment: arm } };
}

let turn = 0, waits = 0, told = [];
// check has the box check the plan while it is written. It is false if something was written meanwhile, whose answer counts.
async function check() {
  clearTimeout(waits);
  const mine = ++turn;
  if (!form.elements.page.value.trim()) { show([]); return true; }
  const answer = await call("/api/v1/plan", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ plan: planOf() }) });
  if (mine !== turn) return false;
  show(answer.problems);
  return true;
}

function show(all) {
  told = all;
  $("refused").textContent = faults(inputs(), all).map(fault => [fault.field, fault.what].filter(Boolean).join(": ")).join("; ");
  for (const input of inputs()) if (input.ariaInvalid && input.closest("details")) input.closest("details").open = true;
}

// complete takes the address that the box takes an incomplete one for, and says whether there was one.
function complete() {
  const inputs = [form.elements.page, form.elements.other], before = inputs.map(input => input.value).join();
  for (const input of inputs) {
    const meant = told.map(fault => fault.field === input.dataset.path && /; did you mean (\S+)\?$/.exec(fault.what)).find(Boolean);
    if (meant) input.value = meant[1];
  }
  return inputs.map(input => input.value).join() !== before;
}

// finish completes what was written, unless somebody goes on writing.
async function finish() { while (await check() && complete()); }

form.addEventListener("input", () => { clearTimeout(waits); turn++; waits = setTimeout(() => check().catch(() => {}), 300); });
form.addEventListener("change", async e => {
  if (e.target !== form.elements.page && e.target !== form.elements.other) return;
  await finish().catch(() => {}); // the run that is started says what is wrong
});

let starting = false; // prevents a second run by a second click
form.addEventListener("submit", async e => {
  e.preventDefault();
  if (starting) return;
  starting = true;
  try {
    if (!form.elements.page.value.trim()) throw Object.assign(new Error("give the address of a page"), { errors: [{ location: "body.page", message: "Give the address of a page" }] });
    await finish();
    if (told.length) { inputs().find(input => input.ariaInvalid)?.focus(); starting = false; return; }
    const run = await call("/api/v1/runs", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(planOf()) });
    location.href = runOf(run.id);
  } catch (problem) {
    show(placed(problem));
    if (!told.length) $("refused").textContent = problem.message;
    inputs().find(input => input.ariaInvalid)?.focus();
  }
  starting = false;
});
