// The alerts, as whoever looks after them needs them: what changed together, what was said of it, whose it is, and where it comes from.
// All content from runs and people is inserted as text, never as markup.
import { $, make, call, address, number, when } from "./common.js";
import { refresh } from "./refresh.js";
import { visit, json, button, row, clicked, sends } from "./visit.js";
import { searched, stateOf, change } from "./alerting.js";
/** @import { Schema } from "../panel" */

const seriesOf = r => `/history?${new URLSearchParams({ series: r.series, metric: r.metric, line: r.line })}`;
const placeOf = r => [r.name, r.page && address(r.page), r.link, r.device, r.browser].filter(Boolean).join(" · ");
const badges = { open: "bad", "acceptance is over": "bad", acknowledged: "running" };
/** @type {Schema<"Alert">[]} */
let known = [];
let most = 20, first = true;

const asked = new URLSearchParams(location.search).get("show");
if ([...$("which").options].some(o => o.value === asked)) $("which").value = asked;

// fills a select with what the alerts have, and keeps what is chosen.
function choices(select, all) {
  const chosen = select.value, values = [...new Set([chosen, ...all])].filter(Boolean).sort();
  refresh(select, ["", ...values].map(value => { const o = make("option", { value, textContent: value || "all" }); o.dataset.key = value; return o; }));
  select.value = chosen;
}

function rowsOf(a) {
  const shown = document.getElementById(`alert-${a.id}`)?.querySelector("details");
  const table = make("table", {}, make("thead", {}, make("tr", {}, ...["What", "Page", "Change", "95 % interval", "Since"].map(textContent => make("th", { scope: "col", textContent })))),
    make("tbody", {}, ...[a, ...a.rows].map(r => row(r.id, [
      [make("a", { href: seriesOf(r), textContent: r.label }), make("small", { textContent: r.line })], placeOf(r), change(r), `${number(r.low)} … ${number(r.high)} ${r.unit}`,
      make("a", { href: `/runs/${encodeURIComponent(r.run)}`, textContent: r.run })]))));
  const scroll = make("div", { className: "scroll", tabIndex: 0, role: "region", ariaLabel: `Table: what changed in alert ${a.id}` }, table);
  return make("details", { open: Boolean(shown?.open) }, make("summary", { textContent: a.rows.length === 1 ? "1 more changed with it" : `${a.rows.length} more changed with it` }), scroll);
}

function card(a, me) {
  const [state, says] = stateOf(a), on = `alert ${a.id}`;
  const more = [], near = a.near.flatMap(n => n.changed.map(f => `${f.name} from ${f.before} to ${f.after}`));
  if (near.length) more.push(make("p", { className: "soft", textContent: `Changed at the same time: ${near.join("; ")}` }));
  if (a.also?.length) more.push(make("p", { className: "soft", textContent: `Slower, too: ${a.also.join(", ")}` }));
  if (a.rows?.length) more.push(rowsOf(a));
  for (const b of [a, ...a.rows || []].map(r => r.bisection).filter(Boolean)) {
    more.push(make("p", {}, searched(b), ...b.id ? [" ", make("a", { href: `/bisections#${b.id}`, textContent: `Bisection ${b.id}` })] : []));
  }
  const whose = make("p", { className: "soft" }, a.owner ? `Owner: ${a.owner}` : "Nobody looks after it.");
  if (a.bug) whose.append(" · ", make("a", { href: a.bug, rel: "noreferrer", textContent: a.bug }));
  const acts = me.may("run") ? [...a.resolved ? [] : [...a.acknowledged ? [] : [button("Acknowledge", on, "ack")], button("Accept", on, "accept"), button("Resolve", on, "resolve")],
    button("Assign", on, "assign")] : [];
  const li = make("li", { id: `alert-${a.id}` },
    make("h2", {}, make("em", { className: `state ${badges[state] || "done"}`, textContent: state }), make("span", { className: a.trend, textContent: `Alert ${a.id}: ${a.text}` })),
    make("p", { className: "soft" }, make("a", { href: seriesOf(a), textContent: placeOf(a) || "history" }), ` · raised ${when(a.raised)}${a.tags.length ? ` · ${a.tags.join(", ")}` : ""}`),
    make("p", { className: "soft", textContent: says }), whose, ...more);
  if (acts.length) li.append(make("div", { className: "act" }, ...acts));
  li.dataset.key = a.id;
  return li;
}

const load = visit(async me => {
  const which = new URLSearchParams({ state: $("which").value, limit: String(most) });
  if ($("tag").value) which.set("tag", $("tag").value);
  known = (await call(`/api/v1/alerts?${which}`)).alerts;
  choices($("tag"), known.flatMap(a => a.tags));
  choices($("owner"), known.map(a => a.owner));
  const shown = known.filter(a => !$("owner").value || a.owner === $("owner").value);
  refresh($("list"), shown.map(a => card(a, me)), $("head"));
  $("none").hidden = shown.length > 0;
  $("none").textContent = $("tag").value || $("owner").value ? "No alert is as chosen: choose all to see the others."
    : $("which").value === "all" ? "There are no alerts. The box looks for changes after each run; it can tell one from chance from ten runs of a page on, and in a scheduled comparison at once."
      : "There is nothing to look after. Choose all to see what is over.";
  $("older").hidden = known.length < most || most >= 500;
  if (first && location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
  first = false;
});
setInterval(() => { if (!document.hidden && $("login").hidden && !$("answer").open) load(); }, 5000);
for (const select of [$("which"), $("tag"), $("owner")]) select.addEventListener("change", () => { most = 20; load(); });
$("older").addEventListener("click", () => { most = Math.min(most * 3, 500); load(); });

// What can be said of an alert: the fields that it has, what it means, and how it is posted.
const answers = {
  ack: { verb: "Acknowledge", fields: ["note"], means: "Somebody knows of it. A gate still stops at it.", post: f => ["/acknowledgement", json("POST", { note: f.note.value })], did: "acknowledged" },
  accept: { verb: "Accept", fields: ["note", "until"], note: "Why it may stay", means: "A gate does not stop at it until that day, at most a year ahead.", post: f => ["/acceptance", json("POST", { reason: f.note.value, until: new Date(`${f.until.value}T00:00:00`).toISOString() })], did: "accepted" },
  resolve: { verb: "Resolve", fields: ["note"], means: "It was mended, or is none. If the same is found again, there is another alert.", post: f => ["/resolution", json("POST", { note: f.note.value })], did: "resolved" },
  assign: { verb: "Assign", fields: ["owner", "bug"], means: "Who looks after it, and where it is written about.", post: f => ["", json("PATCH", { owner: f.owner.value, bug: f.bug.value })], did: "assigned" },
};
let asking = null;
function ask(what, id) {
  const a = answers[what], alert = known.find(k => String(k.id) === id), form = $("answer").querySelector("form");
  asking = { ...a, id };
  form.reset();
  form.querySelector("[role=alert]").textContent = "";
  $("answering").textContent = `${a.verb} alert ${id}`;
  $("means").textContent = a.means;
  $("noted").textContent = a.note || "Note";
  $("do").textContent = a.verb;
  for (const label of form.querySelectorAll("[data-for]")) {
    label.hidden = !a.fields.includes(label.dataset.for);
    label.querySelector("input,textarea").required = !label.hidden && what === "accept";
  }
  form.elements.owner.value = alert?.owner || "";
  form.elements.bug.value = alert?.bug || "";
  $("answer").showModal();
}
clicked($("list"), Object.fromEntries(Object.keys(answers).map(what => [what, id => ask(what, id)])));
$("not").addEventListener("click", () => $("answer").close());
sends($("answer").querySelector("form"), async f => {
  const { id, did, post } = asking, [part, options] = post(f);
  await call(`/api/v1/alerts/${id}${part}`, options);
  $("answer").close();
  $("did").textContent = `Alert ${id} is ${did}.`;
  load().then(() => $("head").focus());
});
