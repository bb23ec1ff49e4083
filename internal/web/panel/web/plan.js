// A plan, as a form and as text. The plan is one object: the form shows the fields that it has inputs for, and
// leaves the others alone. The box reads and writes the text. All content is inserted as text, never as markup.
import { $, make, call, runOf, when } from "./common.js";
import { faults, placed, planOf } from "./faults.js";
import { visit, json, sends } from "./visit.js";
/** @import { Schema } from "../panel" */

// The verbs of a step, with an example of what follows each.
const verbs = { open: "https://www.shop.example/", click: "css #buy, 50%,40% or picture lamp.png", type: "a text", key: "Enter or Ctrl+L", scroll: "5", drag: "50%,80% to 50%,20%", pan: "50%,80% to 50%,20%",
  move: "50%,40%", wait: "500ms or still 1s", replay: "fling.jsonl", launch: "https://www.shop.example/", idle: "5s", mark: "a name" };
const query = new URLSearchParams(location.search);
let opening = false; // whether the plan is what the page was opened with
/** @type {Schema<"Plan">} */
let plan = {};
let sent = 0, waits = null, asks = null, flight = null, unread = false, kept = null, begun = false;

const parts = path => path.match(/[^.[\]]+/g);
const get = path => parts(path).reduce((at, name) => at?.[name], plan);

// put sets a field; undefined removes it.
function put(path, value) {
  const names = parts(path), last = names.pop();
  let at = plan;
  for (const name of names) at = at[name] ??= {};
  if (value === undefined) delete at[last]; else at[last] = value;
}

const inputs = () => [...$("form").querySelectorAll("[data-path]")];

// fill shows the plan in the form. An input with the focus keeps what is being written.
function fill() {
  steps();
  $("compares").checked = Boolean(plan.treatment);
  $("treatment").hidden = !plan.treatment;
  for (const input of inputs()) {
    const field = get(input.dataset.path), value = input.hasAttribute("data-list") && Array.isArray(field) ? field.join(", ") : field;
    const plain = value === undefined || typeof value !== "object";
    input.disabled = !plain;
    if (input !== document.activeElement) input.value = plain ? value ?? "" : "as in the text";
  }
}

const verbOf = step => Object.keys(verbs).find(verb => step[verb] !== undefined) || (step.steps ? "steps" : "click");

// steps draws the inputs of the steps anew if there are others than before.
function steps() {
  const all = plan.steps || [], shape = JSON.stringify(all.map(verbOf));
  $("no-steps").hidden = all.length > 0;
  if ($("steps").dataset.shape === shape) return;
  $("steps").dataset.shape = shape;
  $("steps").replaceChildren(...all.map((step, i) => {
    const verb = verbOf(step), at = `steps[${i}]`, label = (text, input) => make("label", {}, `${text} `, input);
    const field = (name, placeholder) => { const e = make("input", { placeholder, autocomplete: "off" }); e.dataset.path = `${at}.${name}`; return e; };
    const select = make("select", {}, ...Object.keys(verbs).map(value => make("option", { value, textContent: value })), ...verb === "steps" ? [make("option", { value: "steps", textContent: "steps within" })] : []);
    select.value = verb;
    select.dataset.verb = String(i);
    const what = verb === "steps" ? make("p", { className: "hint", textContent: `${step.steps.length} steps within, which are in the text.` }) : label("What", field(verb, verbs[verb]));
    const tool = (text, act, off) => { const b = make("button", { type: "button", textContent: text, ariaLabel: `${text}: step ${i + 1}`, disabled: off }); b.dataset.act = act; b.dataset.step = String(i); return b; };
    return make("li", {}, make("div", { className: "fields" }, label("Step", select), what, label("Name", field("name", "a named step is measured")), label("Ends", field("end", "when the screen is still"))),
      make("div", { className: "tools" }, tool("Up", "up", i === 0), tool("Down", "down", i === all.length - 1), tool("Remove", "remove", false)));
  }));
}

// check has the box read the text, or write that of the object, and shows what is wrong.
async function check(body) {
  const turn = ++sent;
  let answer;
  try { answer = await call("/api/v1/plan", json("POST", body)); } catch (problem) {
    if (turn !== sent) return;
    unread = true;
    problems([{ what: problem.message }]);
    return;
  }
  if (turn !== sent) return; // something was written meanwhile
  unread = !answer.plan;
  if (body.plan) $("yaml").value = answer.yaml;
  else if (answer.plan) { plan = answer.plan; fill(); }
  if (!opening) keepDraft();
  problems(answer.problems);
}

// problems are shown at their fields, and all of them below the text.
function problems(all) {
  faults(inputs(), all);
  $("problems").replaceChildren(...all.map(p => make("li", { textContent: [p.line && `line ${p.line}`, p.field, p.what].filter(Boolean).join(": ") })));
}

// The draft survives a reload and the way back, in this tab alone: what is written may be secret. Each address has its own.
const draft = `draft ${location.search}`;
const keepDraft = () => { if ($("yaml").value.trim()) sessionStorage.setItem(draft, $("yaml").value); else sessionStorage.removeItem(draft); };

const soon = body => { clearTimeout(waits); sent++; asks = body; waits = setTimeout(() => settle().catch(() => {}), 250); };

// settle waits until the plan is what was written last, and fails if that cannot be read.
async function settle() {
  clearTimeout(waits);
  if (asks) flight = check(asks());
  asks = null;
  await flight;
  if (unread) throw new Error("the text cannot be read: mend it first");
}
const changed = () => { fill(); soon(() => ({ plan })); };

$("form").addEventListener("input", e => {
  const path = e.target.dataset.path;
  if (!path) return;
  const text = e.target.value;
  const list = e.target.hasAttribute("data-list") && text.split(",").map(one => one.trim()).filter(Boolean), number = e.target.type === "number" || e.target.hasAttribute("data-number");
  put(path, text === "" || list && !list.length ? undefined : list || (number ? Number(text) : text));
  if (plan.on && !Object.keys(plan.on).length) delete plan.on;
  if (path.startsWith("steps[") && text === "" && !/\.(name|end)$/.test(path)) put(path, ""); // a step keeps its verb
  soon(() => ({ plan }));
});
$("form").addEventListener("change", e => {
  const i = e.target.dataset.verb;
  if (i === undefined) return;
  const step = plan.steps[i], old = verbOf(step);
  const value = step[old];
  delete step[old];
  step[e.target.value] = typeof value === "string" ? value : "";
  changed();
  $("steps").querySelectorAll("select")[i].focus();
});
$("form").addEventListener("submit", e => e.preventDefault());
$("compares").addEventListener("change", e => { put("treatment", e.target.checked ? {} : undefined); changed(); });
$("add").addEventListener("click", () => {
  plan.steps ??= [];
  plan.steps.push(plan.steps.length ? { click: "" } : { open: plan.page || "" });
  changed();
  [...$("steps").querySelectorAll("select")].at(-1).focus();
});
$("steps").addEventListener("click", e => {
  const { act, step } = e.target.dataset, i = Number(step);
  if (!act) return;
  const [taken] = plan.steps.splice(i, 1), to = { up: i - 1, down: i + 1 }[act] ?? Math.min(i, plan.steps.length - 1);
  if (act !== "remove") plan.steps.splice(to, 0, taken);
  if (!plan.steps.length) delete plan.steps;
  $("steps").dataset.shape = "";
  changed();
  ($("steps").querySelectorAll("select")[to] || $("add")).focus();
});
$("yaml").addEventListener("input", () => soon(() => ({ yaml: $("yaml").value })));


// refused says why, at the field that an error names.
function refused(problem) {
  const [, field, what] = /^((?:steps|treatment)?[a-z_.[\]0-9]+): (.*)/s.exec(problem.message) || [];
  const known = placed(problem), all = known.length ? known : field && inputs().some(i => i.dataset.path === field) ? [{ field, what }] : [];
  if (all.length) problems(all);
  return problem.message;
}

let starting = false; // a second click must not start a second run
$("start").addEventListener("click", async () => {
  if (starting) return;
  starting = true;
  $("did").textContent = $("refused").textContent = "";
  try {
    await settle();
    const run = await call("/api/v1/runs", json("POST", plan));
    $("did").replaceChildren(`Run ${run.id} waits in the queue: `, make("a", { href: runOf(run.id), textContent: "watch it" }), ".");
  } catch (problem) { $("refused").textContent = `The run was not started: ${refused(problem)}`; }
  starting = false;
});

sends($("keep"), async f => {
  const name = f.name.value, every = f.every.value, tags = f.tags.value.split(/[\s,]+/).filter(Boolean);
  $("did").textContent = "";
  await settle();
  const known = kept?.name === name ? kept : await call(`/api/v1/workflows/${encodeURIComponent(name)}`).catch(problem => { if (problem.status === 404) return null; throw problem; });
  if (known && kept?.name !== name && !confirmed(name)) throw new Error(`There is a workflow ${name} already. Press Keep again to give it this plan as version ${known.version + 1}.`);
  try {
    kept = await call(`/api/v1/workflows/${encodeURIComponent(name)}`, json("PUT", { plan, tags }, known ? { "If-Match": `"${known.version}"` } : { "If-None-Match": "*" }));
  } catch (problem) {
    if (problem.status === 412 && await newer()) throw new Error("It was not kept: there is a newer version, which is shown above.");
    throw new Error(refused(problem));
  }
  $("newer").hidden = true;
  const said = [`The workflow ${name} has version ${kept.version}.`];
  if (every) {
    const s = await call(`/api/v1/schedules/${encodeURIComponent(name)}`, json("PUT", { workflow: name, every }, { "If-None-Match": "*" }));
    said.push(` The schedule ${s.name} starts it next ${when(s.next)}.`);
  }
  $("did").replaceChildren(...said, " A build starts it by ", make("code", { textContent: `appliance run --workflow ${name}` }), ". ",
    make("a", { href: "/automation", textContent: "Workflows and schedules" }));
});

// newer shows the version of the workflow that somebody else kept meanwhile, and how it differs from the plan here.
let fresh = null;
async function newer() {
  const now = await call(`/api/v1/workflows/${encodeURIComponent(kept.name)}`).catch(() => null);
  if (!now || now.version <= kept.version) return false;
  if (fresh?.version === now.version && !$("newer").hidden) return true;
  fresh = now;
  const [{ yaml }, { difference }] = await Promise.all([call("/api/v1/plan", json("POST", { plan: without(now.plan) })), import("./difference.js")]);
  $("newer-says").textContent = `${now.by ? `${now.by} kept` : "There is"} version ${now.version} of ${now.name}; you began with version ${kept.version}. Lines with + are in the newer version alone, lines with − in yours.`;
  $("newer-lines").replaceChildren(...difference($("yaml").value, yaml));
  $("newer").hidden = false;
  return true;
}
addEventListener("focus", () => { if (kept && !document.hidden) newer().catch(() => {}); });
$("theirs").addEventListener("click", async () => {
  kept = fresh;
  plan = without(fresh.plan);
  $("keep").elements.tags.value = kept.tags.join(", ");
  $("newer").hidden = true;
  fill();
  await check({ plan });
  $("yaml").focus();
});
$("mine").addEventListener("click", () => {
  kept = { ...kept, version: fresh.version };
  $("newer").hidden = true;
  $("did").textContent = `Keep makes version ${fresh.version + 1} of the plan here.`;
  $("keep").querySelector("button").focus();
});

// without is a plan without what the box noted in it: who keeps it again has a scope of their own.
/** @type {(plan: any) => Schema<"Plan">} */
const without = ({ scope: _scope, opened: _opened, from: _from, ...rest }) => rest;

// confirmed says whether somebody has been told that the name is taken.
let told = "";
function confirmed(name) {
  if (told === name) return true;
  told = name;
  return false;
}

const option = value => make("option", { value });

visit(async me => {
  $("start").disabled = !me.may("run");
  const [d, a, r] = await Promise.all([call("/api/v1/devices").catch(() => ({ devices: [], links: [] })), call("/api/v1/archives").catch(() => ({ archives: [] })), call("/api/v1/runs?limit=50")]);
  $("devices").replaceChildren(...d.devices.map(d => option(d.name)));
  $("links").replaceChildren(...d.links.map(option));
  const browsers = new Set([...$("browsers").options].map(o => o.value).concat(d.devices.flatMap(d => d.browsers || [])));
  $("browsers").replaceChildren(...[...browsers].map(option));
  $("archives").replaceChildren(...a.archives.map(a => option(a.name)), ...r.runs.filter(r => r.state === "done").map(r => make("option", { value: r.id, textContent: `of ${r.name || r.page}, ${when(r.wall)}` })));
  if ($("boxes")) $("boxes").replaceChildren(...(await call("/api/v1/boxes")).boxes.map(b => option(b.name)));
  if (begun) return;
  begun = true;
  if (query.get("workflow")) {
    kept = await call(`/api/v1/workflows/${encodeURIComponent(query.get("workflow"))}`);
    plan = without(kept.plan);
    $("keep").elements.name.value = kept.name;
    $("keep").elements.tags.value = kept.tags.join(", ");
  } else if (query.get("run")) {
    plan = await planOf(query.get("run"));
  } else plan = { link: "cable" }; // as appliance measure and the short form
  for (const field of ["page", "archive"]) if (query.get(field)) plan[field] = query.get(field);
  const text = sessionStorage.getItem(draft);
  $("draft").hidden = text === null;
  opening = true;
  if (text !== null) {
    $("yaml").value = text;
    await check({ yaml: text });
  } else {
    fill();
    await check({ plan });
    if (!plan.page && !plan.steps) problems([]); // nothing was written yet
  }
  opening = false;
});
$("anew").addEventListener("click", () => { sessionStorage.removeItem(draft); location.reload(); });
