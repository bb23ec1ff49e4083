// The room on the disk, what of old runs is deleted, and what is held. All content is inserted as text, never as markup.
import { $, make, call, number, csv, when } from "./common.js";
import { refresh } from "./refresh.js";
import { visit, button, row, clicked, sure, sends, json } from "./visit.js";
/** @import { Schema } from "../panel" */

const query = new URLSearchParams(location.search);
const bounds = ["keep_days", "keep_gb", "keep_free_gb"];
const size = bytes => bytes >= 1e9 ? `${number(bytes / 1e9)} GB` : bytes >= 1e6 ? `${number(bytes / 1e6)} MB` : `${number(bytes / 1e3)} kB`;
const say = text => { $("did").textContent = text; };
const runs = n => n === 1 ? "one run" : `${n} runs`;
const linkTo = id => make("a", { href: `/runs/${encodeURIComponent(id)}/report.html`, textContent: id });
/** @type {(run: string) => `/api/v1/runs/${string}/pin`} */
const pinOf = id => `/api/v1/runs/${encodeURIComponent(id)}/pin`;
/** @type {Schema<"Retention">} */
let shown = null;

// words says what a policy means.
function words(p) {
  const parts = [p.keep_days && `evidence that is older than ${p.keep_days} days`, p.keep_gb && `the oldest evidence while all runs together take more than ${p.keep_gb} GB`,
    p.keep_free_gb && `the oldest evidence while less than ${p.keep_free_gb} GB are free`].filter(Boolean);
  return parts.join("; ");
}

const load = visit(async me => {
  const asked = new URLSearchParams(bounds.filter(name => query.get(name)).map(name => [name, query.get(name)]));
  const [own, got, { archives }] = await Promise.all([call("/api/v1/retention"), asked.size ? call(`/api/v1/retention?${asked}`) : null, call("/api/v1/archives")]);
  shown = got || own;
  for (const name of bounds) $("try").elements[name].value = query.get(name) || "";
  room(own, archives.reduce((sum, a) => sum + a.bytes, 0));
  $("policy").textContent = words(own.policy) ? `Deleted every hour and when the disk is tight: ${words(own.policy)}.`
    : "Nothing is deleted by itself: there is no policy. Try one here; then write it into the configuration of the box (retention), or start the head of a fleet with it (--keep-days, --keep-gb, --keep-free-gb).";
  const count = shown.delete.length + (shown.more || 0);
  const which = got ? "With these numbers" : "Now";
  $("means").textContent = !words(shown.policy) ? "" : count ? `${which} the evidence of ${runs(count)} would go, ${size(shown.frees)}.` : `${which} nothing would be deleted.`;
  if (shown.short > 0) $("means").textContent += ` ${size(shown.short)} more would have to go, and are needed or no evidence.`;
  $("deletes").hidden = !count;
  $("rest").textContent = shown.more ? `And ${shown.more} more.` : "";
  $("apply").hidden = !me.may("admin");
  refresh($("delete"), shown.delete.map(d => row(d.run, [linkTo(d.run), when(d.wall), size(d.bytes), d.why, me.may("run") ? button("Pin", `run ${d.run}`, "pin") : ""])), $("policy-head"));
  $("delete-csv").href = csv([["run", "started", "bytes", "why"], ...shown.delete.map(d => [d.run, d.wall, d.bytes, d.why])]);
  $("keeps").hidden = !shown.kept.length;
  refresh($("needed"), shown.kept.map(k => row(k.run, [linkTo(k.run), size(k.bytes), k.needed])));
  $("held-table").hidden = !shown.held.length;
  $("no-held").hidden = shown.held.length > 0;
  refresh($("held"), shown.held.map(k => row(k.run, [linkTo(k.run), size(k.bytes), k.needed, me.may("run") && k.needed.startsWith("it is pinned") ? button("Unpin", `run ${k.run}`, "unpin") : ""])), $("held-head"));
  $("pin").hidden = !me.may("run");
  if (me.may("run")) call("/api/v1/runs?limit=50").then(list => $("runs").replaceChildren(...list.runs.map(r => make("option", { value: r.id }))));
});

// room draws what the disk holds; the table has the same.
function room(got, uploads) {
  const other = Math.max(0, got.disk - got.free - got.bytes - uploads);
  const parts = [["runs", "Runs", got.bytes], ["uploads", "Uploaded recordings", uploads], ["other", "Everything else", other], ["free", "Free", got.free]];
  const share = bytes => `${(100 * bytes / Math.max(got.disk, 1)).toFixed(1)} %`;
  let at = 0;
  $("bar").replaceChildren(...parts.map(([name, , bytes]) => {
    const rect = document.createElementNS("http://www.w3.org/2000/svg", "rect"), width = 100 * bytes / Math.max(got.disk, 1);
    for (const [key, value] of Object.entries({ class: name, x: `${at}%`, width: `${width}%`, height: "100%", ...name === "free" && { fill: "none" } })) rect.setAttribute(key, value);
    at += width;
    return rect;
  }));
  $("room").replaceChildren(...parts.map(([name, text, bytes]) => row(name, [[make("span", { className: `key ${name}`, ariaHidden: "true" }), text], size(bytes), share(bytes)])));
  $("room-csv").href = csv([["what", "bytes"], ...parts.map(([, text, bytes]) => [text, bytes])]);
}

$("try").addEventListener("submit", e => {
  e.preventDefault();
  for (const name of bounds) if (e.target.elements[name].value) query.set(name, e.target.elements[name].value); else query.delete(name);
  history.replaceState(null, "", query.size ? `?${query}` : location.pathname);
  load();
});
$("apply").addEventListener("click", () => {
  const policy = new URLSearchParams(bounds.filter(name => shown.policy[name]).map(name => [name, String(shown.policy[name])]));
  const key = crypto.getRandomValues(new Uint32Array(4)).join("-");
  let done = null;
  sure(`Delete the evidence of ${runs(shown.delete.length + (shown.more || 0))}?`, `${size(shown.frees)} of films, pictures, recordings and logs are deleted. Numbers and reports stay. This cannot be undone.`, "Delete",
    async () => { done = await call(`/api/v1/retention?${policy}`, { method: "POST", headers: { "Idempotency-Key": key } }); },
    async () => { say(`The evidence of ${runs(done.delete.length + (done.more || 0))} is deleted: ${size(done.frees)}.`); await load(); $("policy-head").focus(); });
});
const pin = async (run, why) => { await call(pinOf(run), json("PUT", why ? { why } : {})); say(`${run} is pinned.`); await load(); };
clicked($("delete"), { pin: run => pin(run).catch(problem => say(`That did not work: ${problem.message}.`)) });
clicked($("held"), { unpin: async run => {
  try { await call(pinOf(run), { method: "DELETE" }); say(`${run} is no longer pinned.`); } catch (problem) { say(`That did not work: ${problem.message}.`); }
  await load();
} });
sends($("pin"), async f => { await pin(f.run.value, f.why.value); f.run.form.reset(); });
