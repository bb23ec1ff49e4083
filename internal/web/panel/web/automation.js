// Workflows, schedules and webhooks: what the box does by itself. All content is inserted as text,
// never as markup.
import { $, make, call, address, when } from "./common.js";
import { refresh } from "./refresh.js";
import { visit, json, button, row, clicked, sure, sends } from "./visit.js";
/** @import { Schema } from "../panel" */

const at = /** @type {<const Of extends string, const Part extends string = "">(of: Of, name: string, part?: Part) => `/api/v1/${Of}/${string}${Part}`} */ ((collection, name, part = "") => `/api/v1/${collection}/${encodeURIComponent(name)}${part}`);
const say = text => { $("did").textContent = text; };
const report = id => make("a", { href: `/runs/${encodeURIComponent(id)}`, textContent: id });
const timesOf = s => s.every ? `every ${s.every}` : `${s.cron} (${s.zone || "UTC"})`;
/** @type {{ workflows: Schema<"Workflow">[], schedules: Schema<"Schedule">[], hooks: Schema<"Hook">[] }} */
let known = { workflows: [], schedules: [], hooks: [] };
let changing = null, open = null, most = 20;

// seal is by what a program knows the box again.
const { fingerprint } = await (await fetch("/api/v1/health")).json().catch(() => ({}));
const seal = fingerprint && location.protocol === "https:" ? ` EIDETIC_FINGERPRINT=${fingerprint}` : "";
const words = { waiting: "waits for the queue", run: "started", skipped: "left out: the last run had not ended", refused: "refused", clock: "the clock was put back" };

function workflows(all, me) {
  $("workflows-table").hidden = !all.length;
  $("no-workflows").hidden = all.length > 0;
  $("more-workflows").hidden = !all.length;
  if (all.length) $("build").textContent = `export EIDETIC_BOX=${location.origin}${seal} EIDETIC_TOKEN=…\nappliance run --workflow ${all[0].name}`;
  refresh($("workflows"), all.map(w => row(w.name, [
    make("a", { href: `/plan?workflow=${encodeURIComponent(w.name)}`, textContent: w.name }), w.page && address(w.page), [String(w.version), make("small", { textContent: `${when(w.changed)}, ${w.by}` })], w.tags.join(", "),
    [...me.may("run") ? [button("Run", `workflow ${w.name}`, "run")] : [], ...me.may("admin") ? [button("Remove", `workflow ${w.name}`, "remove")] : []],
  ])), $("workflows-head"));
}

function became(f) {
  if (!f) return "";
  return [`${when(f.due)}: `, f.run ? report(f.run) : words[f.state], f.run && f.state !== "run" ? ` (${words[f.state]})` : ""];
}

function schedules(all, flows, me) {
  $("schedules-table").hidden = !all.length;
  $("no-schedules").hidden = all.length > 0;
  refresh($("no-schedules"), flows.length ? [make("span", { textContent: "There are no schedules yet. Make one here." })]
    : [make("span", {}, "There are no schedules yet. ", make("a", { href: "/plan", textContent: "Keep a plan as a workflow" }), " first; then a schedule can start it.")]);
  $("schedule").hidden = !flows.length || !me.may("run");
  refresh($("schedules"), all.map(s => row(s.name, [
    s.name, [s.workflow, ...s.bisect ? [make("small", { textContent: `of ${s.bisect.repository}` })] : []], timesOf(s), s.next ? when(s.next) : s.paused ? "paused" : "never", became(s.last),
    [button("Times", `schedule ${s.name}`, "times"), ...me.may("run") ? [button(s.paused ? "Go on" : "Pause", `schedule ${s.name}`, "pause"), button("Change", `schedule ${s.name}`, "change")] : [],
      ...me.may("admin") ? [button("Remove", `schedule ${s.name}`, "remove")] : []],
  ])), $("schedules-head"));
  options($("schedule").elements.workflow, flows.map(w => [w.name, w.name]));
}

// repositories are those that a schedule may name: the configuration's.
function repositories(all) {
  const select = $("schedule").elements.repository;
  options(select, [["", "none"], ...all.map(r => [r.name, r.problem ? `${r.name} (cannot be used)` : r.name])]);
  select.closest("label").hidden = !all.length;
  kind();
}

// options fills a select, and keeps what is chosen.
function options(select, all) {
  const before = select.value;
  refresh(select, all.map(([value, textContent]) => { const o = make("option", { value, textContent }); o.dataset.key = value; return o; }));
  if (all.some(([value]) => value === before)) select.value = before;
}

async function firings() {
  if (!open) return;
  const { firings } = await call(at("schedules", open, "/firings?limit=100"));
  $("firings").hidden = false;
  $("firings-head").textContent = `Times of ${open}`;
  $("no-times").hidden = firings.length > 0;
  refresh($("times"), firings.map(f => row(f.due, [when(f.due), [words[f.state], f.missed ? `; ${f.missed} times before it passed while the box was off` : ""], [f.run ? report(f.run) : "", f.reason || ""]])));
}

function hooks(all) {
  $("hooks-table").hidden = !all.length;
  $("no-hooks").hidden = all.length > 0;
  refresh($("hooks"), all.map(h => row(h.id, [
    h.name, h.url, h.events.join(", ") || "everything", h.paused ? ["paused", ...h.reason ? [make("small", { textContent: h.reason })] : []] : "active",
    [button("Test", `webhook ${h.name}`, "test"), button(h.paused ? "Go on" : "Pause", `webhook ${h.name}`, "pause"), button("Remove", `webhook ${h.name}`, "remove")],
  ])), $("hooks-head"));
  options($("of-hook"), [["", "all"], ...all.map(h => [h.id, h.name])]);
}

async function deliveries() {
  const which = new URLSearchParams({ webhook: $("of-hook").value, limit: String(most) });
  if ($("of-state").value) which.set("state", $("of-state").value);
  const { deliveries } = await call(`/api/v1/deliveries?${which}`);
  const name = id => known.hooks.find(h => h.id === id)?.name || id;
  $("deliveries-table").hidden = !deliveries.length;
  $("no-deliveries").hidden = deliveries.length > 0;
  $("no-deliveries").textContent = $("of-hook").value || $("of-state").value ? "No delivery is as chosen: choose all to see the others." : "Nothing was posted yet: press Test at a webhook, or wait for the end of a run.";
  $("older").hidden = deliveries.length < most || most >= 500;
  refresh($("deliveries"), deliveries.map(d => {
    const body = make("details", {}, make("summary", { textContent: d.event }), make("pre", { textContent: JSON.stringify(d.body, null, 1) }));
    const shown = $("deliveries").querySelector(`[data-key="${d.number}"] details`);
    body.open = Boolean(shown?.open);
    const answer = [d.status ? `status ${d.status}` : "", d.error].filter(Boolean).join(": ") || (d.attempts ? "accepted" : "");
    const next = d.next ? [make("small", { textContent: `tried ${d.attempts ? "again " : ""}${when(d.next)}` })] : [];
    return row(d.number, [when(d.made), body, name(d.webhook), [make("em", { className: `state ${{ waiting: "queued", failed: "failed" }[d.state] || "done"}`, textContent: d.state }), ...next], String(d.attempts), answer]);
  }));
}

const load = visit(async me => {
  const [w, s, r] = await Promise.all([call("/api/v1/workflows"), call("/api/v1/schedules"), call("/api/v1/repositories").catch(() => ({ repositories: [] }))]);
  known = { ...known, workflows: w.workflows, schedules: s.schedules };
  repositories(r.repositories);
  workflows(w.workflows, me);
  schedules(s.schedules, w.workflows, me);
  if (open && !s.schedules.some(s => s.name === open)) { open = null; $("firings").hidden = true; }
  await firings();
  $("hooks-small").hidden = me.may("admin");
  $("hooks-all").hidden = !me.may("admin");
  if (!me.may("admin")) return;
  known.hooks = (await call("/api/v1/webhooks")).webhooks;
  hooks(known.hooks);
  await deliveries();
});
setInterval(() => { if (!document.hidden && $("login").hidden && !$("sure").open) load(); }, 5000);

// tried does something that the page says the result of.
const tried = async (what, act) => {
  try { say(await act()); } catch (problem) { say(`${what}: ${problem.message}.`); }
  await load();
};
const remove = (collection, name, id, says, head) => sure(`Remove ${name}?`, says, "Remove",
  () => call(at(collection, id), { method: "DELETE" }), async () => { say(`${name} is removed.`); await load(); $(head).focus(); });

clicked($("workflows"), {
  run: name => tried("The run could not be started", async () => `Run ${(await call(at("workflows", name, "/runs"), json("POST", {}))).id} waits in the queue.`),
  remove: name => remove("workflows", `the workflow ${name}`, name, "Its versions are removed; its runs stay.", "workflows-head"),
});
clicked($("schedules"), {
  times: async name => { open = name; await firings(); $("firings-head").focus(); },
  pause: name => tried("The schedule could not be changed", async () => {
    const { workflow, every, cron, zone, bisect, paused, revision } = known.schedules.find(s => s.name === name);
    await call(at("schedules", name), json("PUT", { workflow, every, cron, zone, bisect, paused: !paused }, { "If-Match": `"${revision}"` }));
    return paused ? `${name} goes on.` : `${name} is paused.`;
  }),
  change: name => {
    const s = known.schedules.find(s => s.name === name), form = $("schedule").elements;
    changing = s;
    for (const field of ["name", "workflow", "every", "cron", "zone"]) form[field].value = s[field] || "";
    for (const field of ["repository", "pairs", "minutes"]) form[field].value = s.bisect?.[field] || "";
    form.kind.value = s.cron ? "cron" : "every";
    form.name.readOnly = true;
    kind();
    form.every.form.querySelector("[type=reset]").hidden = false;
    form.every.form.querySelector(".act button:last-child").textContent = `Change ${name}`;
    (s.cron ? form.cron : form.every).focus();
  },
  remove: name => remove("schedules", `the schedule ${name}`, name, "Its history is removed; the runs that it started stay.", "schedules-head"),
});
clicked($("hooks"), {
  test: id => tried("The test could not be posted", async () => {
    const d = await call(at("webhooks", id, "/test"), { method: "POST" });
    return `Delivery ${d.number} is on its way: see the deliveries below.`;
  }),
  pause: id => tried("The webhook could not be changed", async () => {
    const h = known.hooks.find(h => h.id === id);
    await call(at("webhooks", id), json("PUT", { paused: !h.paused }));
    return h.paused ? `${h.name} goes on: what waited is posted now.` : `${h.name} is paused; events that come meanwhile wait.`;
  }),
  remove: id => remove("webhooks", `the webhook ${known.hooks.find(h => h.id === id).name}`, id, "Events are no longer posted to it, and those that wait are dropped.", "hooks-head"),
});

// kind shows the fields of the chosen kind of times.
function kind() {
  const form = $("schedule").elements;
  for (const label of $("schedule").querySelectorAll("[data-kind]")) label.hidden = label.dataset.kind !== form.kind.value;
  for (const label of $("schedule").querySelectorAll("[data-bisects]")) label.hidden = !form.repository.value;
}
function fresh() {
  changing = null;
  $("schedule").elements.name.readOnly = false;
  $("schedule").querySelector("[type=reset]").hidden = true;
  $("schedule").querySelector(".act button:last-child").textContent = "Make schedule";
  $("schedule").querySelector("[role=alert]").textContent = "";
}
for (const field of ["kind", "repository"]) $("schedule").elements[field].addEventListener("change", kind);
$("schedule").addEventListener("reset", () => { fresh(); setTimeout(kind); });
sends($("schedule"), async f => {
  const timing = { workflow: f.workflow.value, paused: Boolean(changing?.paused) };
  for (const field of f.kind.value === "cron" ? ["cron", "zone"] : ["every"]) if (f[field].value) timing[field] = f[field].value;
  if (f.repository.value) {
    timing.bisect = { repository: f.repository.value };
    for (const field of ["pairs", "minutes"]) if (f[field].value) timing.bisect[field] = Number(f[field].value);
  }
  const s = await call(at("schedules", f.name.value), json("PUT", timing, changing ? { "If-Match": `"${changing.revision}"` } : { "If-None-Match": "*" }));
  f.name.form.reset();
  say(`${s.name} ${s.next ? `is due next ${when(s.next)}` : "is kept"}.`);
  load();
});
sends($("hook"), async f => {
  const events = [...f.name.form.querySelectorAll("[name=events]:checked")].map(e => e.value);
  const h = await call("/api/v1/webhooks", json("POST", { name: f.name.value, url: f.url.value, ...events.length && { events }, ...f.secret.value && { secret: f.secret.value } }));
  f.name.form.reset();
  $("made-name").textContent = h.name;
  $("secret").textContent = h.secret;
  $("made").hidden = false;
  load();
});
for (const select of [$("of-hook"), $("of-state")]) select.addEventListener("change", () => { most = 20; load(); });
$("older").addEventListener("click", () => { most = Math.min(most * 3, 500); load(); });
kind();
