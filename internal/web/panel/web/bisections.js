// The bisections: what each does, what it knows, and the runs that it rests on. All content from repositories and runs is inserted as
// text, never as markup.
import { $, make, call, number, when } from "./common.js";
import { refresh } from "./refresh.js";
import { visit, button, row, clicked, sure } from "./visit.js";
/** @import { Schema } from "../panel" */

const at = /** @type {<const Part extends string = "">(id: string, part?: Part) => `/api/v1/bisects/${string}${Part}`} */ ((id, part = "") => `/api/v1/bisects/${encodeURIComponent(id)}${part}`);
const isGoing = b => b.state === "waiting" || b.state === "running";
const short = name => name.length > 14 ? `${name.slice(0, 12)}…` : name;
const badges = { waiting: "queued", running: "running", failed: "failed", cancelled: "interrupted" };
const report = id => make("a", { href: `/runs/${encodeURIComponent(id)}`, textContent: id });
/** @type {Schema<"Bisect">[]} */
let known = [];
let whole = new Map(); // those whose evidence is open

// seen links the frame of a trial in which two revisions part.
const seen = (name, s) => make("a", { href: `/trial?${new URLSearchParams({ run: s.run, trial: s.trial, frame: s.frame })}`, textContent: name });

function evidence(b) {
  const shown = document.getElementById(b.id)?.querySelector("details"), full = whole.get(b.id), r = full?.result, kids = [];
  if (r?.revisions?.length) {
    const left = new Map(r.untestable.map(u => [u.revision.name, u.reason]));
    kids.push(make("div", { className: "scroll", tabIndex: 0, role: "region", ariaLabel: `Table: revisions of bisection ${b.id}` }, make("table", {},
      make("thead", {}, make("tr", {}, ...["Revision", "What", "Author", "Probability"].map(textContent => make("th", { scope: "col", textContent })))),
      make("tbody", {}, ...r.revisions.map(v => row(v.name, [
        make("code", { textContent: short(v.name), title: v.name }), [v.words || "", ...left.has(v.name) ? [make("small", { textContent: `left out: ${left.get(v.name)}` })] : []], v.author || "",
        [make("meter", { value: v.probability, max: 1, ariaLabel: `Probability of ${v.name}` }), ` ${number(100 * v.probability)} %`]]))))));
  }
  for (const s of r?.steps || []) {
    if (s.runs?.length) kids.push(make("p", {}, "Compared directly in ", ...s.runs.flatMap((id, i) => [i ? ", " : "", report(id)]), "."));
  }
  if (full?.parts) {
    const [before, after] = full.parts.shown;
    kids.push(make("p", {}, full.parts.text, " ", seen("Frame before", before), " · ", seen("frame after", after)));
  }
  if (full && !kids.length) kids.push(make("p", { textContent: "Nothing is known yet." }));
  return make("details", { open: Boolean(shown?.open) }, make("summary", { textContent: "Evidence" }), ...kids);
}

function card(b, me) {
  const on = `bisection ${b.name || b.id}`, r = b.result;
  const spent = r ? `${r.pairs} pairs, ${r.trials} trials in ${r.runs} runs, ${r.revisions_tried} revisions tried` : "";
  const says = b.error ? `Failed: ${b.error}` : b.state === "done" ? r?.text : b.doing;
  const acts = !me.may("run") ? [] : isGoing(b) ? [button("Stop", on, "stop")]
    : [...b.state === "failed" ? [button("Go on", on, "resume")] : [], button("Again", on, "again"), ...me.may("admin") ? [button("Delete", on, "remove")] : []];
  const li = make("li", { id: b.id },
    make("h2", {}, make("em", { className: `state ${badges[b.state] || "done"}`, textContent: b.state }), b.name || b.id),
    make("p", { className: "soft", textContent: [`${b.metric} between ${short(b.good)} and ${short(b.bad)}`, `${b.count} revisions`, b.repository ? `repository ${b.repository}` : `hook ${b.hook}`,
      `made ${when(b.made)} by ${b.by}`, ...b.ended ? [`ended ${when(b.ended)}`] : []].join(" · ") }),
    ...says ? [make("p", { textContent: says })] : [], ...b.run ? [make("p", {}, "Now: ", report(b.run))] : [],
    ...spent ? [make("p", { className: "soft", textContent: spent })] : [], evidence(b));
  if (acts.length) li.append(make("div", { className: "act" }, ...acts));
  li.dataset.key = b.id;
  return li;
}

let first = true;
const load = visit(async me => {
  known = (await call("/api/v1/bisects")).bisects;
  if (first && location.hash) whole.set(location.hash.slice(1), null);
  for (const id of [...whole.keys()]) {
    if (known.some(b => b.id === id)) whole.set(id, await call(at(id))); else whole.delete(id);
  }
  refresh($("list"), known.map(b => card(b, me)), $("head"));
  $("none").hidden = known.length > 0;
  const asked = first && location.hash && document.getElementById(location.hash.slice(1));
  first = false;
  if (!asked) return;
  asked.querySelector("details").open = true;
  asked.scrollIntoView();
});
setInterval(() => { if (!document.hidden && $("login").hidden && !$("sure").open) load(); }, 5000);
$("list").addEventListener("toggle", e => {
  const id = e.target.closest("[data-key]").dataset.key;
  if (!e.target.open) whole.delete(id); else if (!whole.get(id)) { whole.set(id, null); load(); }
}, true); // which does not bubble

const tried = async (what, act) => {
  try { $("did").textContent = await act(); } catch (problem) { $("did").textContent = `${what}: ${problem.message}.`; }
  await load();
};
const named = id => known.find(b => b.id === id)?.name || id;
clicked($("list"), {
  stop: id => sure(`Stop the bisection ${named(id)}?`, "Its run in progress is cancelled. What it knows stays to be seen.", "Stop",
    () => call(at(id), { method: "DELETE" }), async () => { $("did").textContent = "It is stopped."; await load(); }),
  resume: id => tried("It cannot go on", async () => { await call(at(id, "/resume"), { method: "POST" }); return "It goes on from what it knows."; }),
  again: id => tried("It cannot be made again", async () => `Bisection ${(await call(at(id, "/again"), { method: "POST" })).id} begins anew.`),
  remove: id => sure(`Delete the bisection ${named(id)}?`, "Its runs stay.", "Delete",
    () => call(at(id) + "?files=true", { method: "DELETE" }), async () => { $("did").textContent = "It is deleted."; await load(); $("head").focus(); }),
});
