// The suites: each can be measured, and what its results say, with the runs and films that they rest on. All content from suites and
// runs is inserted as text, never as markup.
import { $, make, call, number, when, runOf } from "./common.js";
import { refresh } from "./refresh.js";
import { percents } from "./dots.js";
import { visit, button, clicked, sure, sends, json } from "./visit.js";
/** @import { Schema } from "../panel" */

const at = /** @type {<const Part extends string = "">(id: string, part?: Part) => `/api/v1/suite-results/${string}${Part}`} */ ((id, part = "") => `/api/v1/suite-results/${encodeURIComponent(id)}${part}`);
/** @type {(name: string) => `/api/v1/suites/${string}`} */
const suiteAt = name => `/api/v1/suites/${encodeURIComponent(name)}`;
const isGoing = r => r.state === "waiting" || r.state === "running";
const badges = { waiting: "queued", running: "running", failed: "failed", cancelled: "interrupted" };
const list = text => text.split(",").map(part => part.trim()).filter(Boolean);
/** @type {Schema<"SuiteResult">[]} */
let known = [];
/** @type {Schema<"Suite">[]} */
let suites = [];
let whole = new Map(), shut = new Set(); // those that are shown with their tables, or were closed

const th = (textContent, props = {}) => make("th", { scope: "col", textContent, ...props });
const td = (content, className = "") => make("td", { className }, ...[content ?? ""].flat());
const scrolled = (name, table) => make("div", { className: "scroll", tabIndex: 0, role: "region", ariaLabel: `Table: ${name}` }, table);
const three = v => v.toFixed(3);

// finding says what is found of a ratio; the server has corrected its p-value.
function finding(r) {
  if (!r || !r.confidence) return ["unknown", "too few trials"];
  if (r.p_adjusted > 0.05) return ["none", "no difference found"];
  return r.value > 1 ? ["slower", "slower"] : ["faster", "faster"];
}

const signs = { slower: "▲ ", faster: "▼ ", none: "= ", unknown: "" };
const found = r => { const [name, words] = finding(r); return make("span", { className: name }, make("span", { ariaHidden: "true", textContent: signs[name] }), words); };
const range = r => r?.confidence ? `${three(r.low)} … ${three(r.high)}` : "–";

// film is a mark, which leads to the frames of the trial in the middle.
function film(entries, browser, text) {
  for (const e of entries) {
    const f = (e.films || []).find(one => one.browser === browser);
    if (f && text !== "–") return make("a", { href: `/trial?${new URLSearchParams({ run: e.run, trial: f.trial })}`, textContent: text, ariaLabel: `${text}, film of ${browser} on ${e.entry}` });
  }
  return text;
}

function marks(r) {
  const t = r.table, others = t.browsers.slice(1);
  if (!t.rows.length) return [];
  const head = make("tr", {}, th("Entry", { rowSpan: 2 }), th("Type", { rowSpan: 2 }), ...t.browsers.map(b => th(b, { colSpan: 2, scope: "colgroup" })),
    ...others.map(b => th(`${b} ÷ ${t.browsers[0]}`, { colSpan: 3, scope: "colgroup" })), th("Run", { rowSpan: 2 }));
  const parts = make("tr", {}, ...t.browsers.flatMap(() => [th("visual", { className: "n" }), th("interactive", { className: "n" })]),
    ...others.flatMap(() => [th("times", { className: "n" }), th("95 % interval"), th("finding")]));
  const body = t.rows.map(row => {
    const own = r.entries.filter(e => e.entry === row.entry), mark = v => v === null || v === undefined ? "–" : number(v);
    return make("tr", {}, make("th", { scope: "row", textContent: row.entry }), td(row.type),
      ...t.browsers.flatMap((b, i) => [td(film(own, b, mark(row.visual?.[i])), "n"), td(film(own, b, mark(row.interactive?.[i])), "n")]),
      ...others.flatMap((_, i) => { const one = row.ratios[i + 1]; return [td(one ? three(one.value) : "–", "n"), td(range(one)), td(found(one))]; }),
      td(own.map(e => make("a", { href: runOf(e.run), textContent: "run", ariaLabel: `Run of ${e.entry}` }))));
  });
  const score = i => { const s = t.scores[i]; return s ? `${number(s.value)}${s.confidence ? ` ± ${(50 * (s.high - s.low) / s.value).toFixed(1)} %` : ""}` : "–"; };
  const foot = make("tr", {}, make("th", { scope: "row", textContent: "Geometric mean" }), td(),
    ...t.browsers.map((_, i) => make("td", { className: "n", colSpan: 2, textContent: score(i) })),
    ...others.flatMap((_, i) => { const one = t.ratios[i + 1]; return [td(one ? three(one.value) : "–", "n"), td(range(one)), td(found(one))]; }), td());
  return [scrolled(`marks of ${r.suite}`, make("table", { className: "marks" }, make("thead", {}, head, parts), make("tbody", {}, ...body), make("tfoot", {}, foot))),
    make("p", { className: "hint", textContent: "Marks are medians, of times in ms, of rates in frames/s; each leads to a film. A ratio above 1 is slower. Findings are corrected by Holm's method." })];
}

function answers(r) {
  if (!r.known?.length) return [];
  const of = v => v === null || v === undefined ? "–" : v.toFixed(2);
  const wrong = r.known.filter(k => k.measured !== undefined && !k.holds).length;
  return [make("details", { open: Boolean(document.getElementById(r.id)?.querySelector(".answers")?.open), className: "answers" },
    make("summary", { textContent: `Known answers: ${r.known.filter(k => k.holds).length} of ${r.known.length} hold${wrong ? `, ${wrong} ${wrong === 1 ? "does" : "do"} not` : ""}` }),
    scrolled(`known answers of ${r.suite}`, make("table", { className: "marks" },
      make("thead", {}, make("tr", {}, ...["Entry", "Metric", "Browser", "Knob", "Page did", "Measured", "Worst trial", "Bound", "Holds"].map(name => th(name)))),
      make("tbody", {}, ...r.known.map(k => make("tr", {}, make("th", { scope: "row", textContent: k.entry }), td(k.metric), td(k.browser), td(String(k.asked), "n"), td(of(k.did), "n"), td(of(k.measured), "n"),
        td(k.measured === undefined ? "–" : k.off.toFixed(2), "n"), td(`± ${k.within}${k.blur_ms ? ` + ${Math.round(k.blur_ms)}` : ""}`),
        td(k.measured === undefined ? [make("small", { textContent: k.why || "no trial" })] : make("span", { className: k.holds ? "faster" : "bad", textContent: k.holds ? "yes" : "no" })))))))) ];
}

function evidence(r) {
  const full = whole.get(r.id), kids = [];
  if (full) {
    kids.push(...marks(full), ...answers(full));
    const lost = full.entries.filter(e => e.state !== "done" && e.state !== "begun");
    if (lost.length) kids.push(make("p", { className: "bad", textContent: "These have failed:" }), make("ul", {}, ...lost.map(e => make("li", {}, make("a", { href: runOf(e.run), textContent: e.entry }), ` ${e.state}${e.error ? `: ${e.error}` : ""}`))));
    const missing = (full.table.missing || []).filter(m => !lost.some(e => m.startsWith(`${e.entry}:`)) && full.entries.some(e => e.state !== "begun" && m.startsWith(`${e.entry}:`)));
    if (missing.length) kids.push(make("p", { textContent: "Not in the table:" }), make("ul", {}, ...missing.map(textContent => make("li", { textContent }))));
    if (full.table.unmeasured?.length && kids.length) kids.push(make("p", { className: "hint", textContent: `Not measured: ${full.table.unmeasured.join(", ")}.` }));
    if (!kids.length) kids.push(make("p", { textContent: "Nothing is known yet." }));
  }
  return make("details", { className: "says", open: Boolean(full) }, make("summary", { textContent: "What it says" }), ...kids);
}

function card(r, me) {
  const on = `result ${r.id} of ${r.suite}`;
  const acts = !me.may("run") ? [] : isGoing(r) ? [button("Stop", on, "stop")]
    : [...r.state !== "done" || r.failed ? [button("Go on", on, "resume")] : [], ...me.may("admin") ? [button("Delete", on, "remove")] : []];
  const li = make("li", { id: r.id },
    make("h3", {}, make("em", { className: `state ${badges[r.state] || "done"}`, textContent: r.state }), `${r.suite}: ${r.browsers.join(", ")}`),
    make("p", { className: "soft", textContent: [`${r.done} of ${r.runs} runs done`, ...r.failed ? [`${r.failed} failed`] : [], ...r.trials ? [`${r.trials} trials of each`] : [], ...r.only ? [`only ${r.only.join(", ")}`] : [],
      ...r.device ? [`device ${r.device}`] : [], `seed ${r.seed}`, `made ${when(r.made)} by ${r.by}`, ...r.ended ? [`ended ${when(r.ended)}`] : []].join(" · ") }),
    ...isGoing(r) ? [make("progress", { max: r.runs, value: r.done + r.failed, ariaLabel: `Runs of ${on}` })] : [],
    ...r.error ? [make("p", { className: "bad", textContent: `Failed: ${r.error}` })] : r.doing ? [make("p", { textContent: r.doing })] : [],
    ...r.now?.length ? [make("p", {}, "Now: ", ...r.now.flatMap((id, i) => [i ? ", " : "", make("a", { href: runOf(id), textContent: id })]))] : [],
    evidence(r),
    make("p", { className: "links" }, make("a", { href: at(r.id, "/file"), download: `${r.suite}-${r.id}.json`, textContent: "suite.json", ariaLabel: `suite.json of ${on}` })));
  if (acts.length) li.append(make("div", { className: "act" }, ...acts));
  li.dataset.key = r.id;
  return li;
}

// releases fills in the series of a suite's browsers: each release against the one before it.
function releases(name, all) {
  const change = r => r.ratio?.confidence ? { value: 100 * (r.ratio.value - 1), low: 100 * (r.ratio.low - 1), high: 100 * (r.ratio.high - 1) } : null;
  const called = r => r.version || r.browser, later = all.filter(change);
  if (!all.length) return [make("p", { textContent: "No browser has a valid trial of every entry: there is no geometric mean." })];
  const rows = all.map((r, i) => make("tr", {}, make("th", { scope: "row", textContent: called(r) }), td(when(r.begun)), td(number(r.score.value), "n"),
    td(r.ratio ? three(r.ratio.value) : "–", "n"), td(range(r.ratio)), td(r.ratio ? found(r.ratio) : "first")));
  return [...later.length ? [percents(`Releases in ${name}`, () => later.map(r => ({ name: called(r), range: change(r), says: `${called(r)}, ${when(r.begun)}: takes ${three(r.ratio.value)} times as long as the one before` })))] : [],
    scrolled(`releases in ${name}`, make("table", { className: "marks" },
      make("thead", {}, make("tr", {}, th("Release"), th("Result of"), th("Geometric mean", { className: "n" }), th("Times the one before", { className: "n" }), th("95 % interval"), th("Finding"))), make("tbody", {}, ...rows))),
    make("p", { className: "hint", textContent: "Findings are corrected by Holm's method. Results of different days also differ by what the machine was like; versions that take turns in one result do not." })];
}

// series shows for which suites there are several results, and fetches what those say that are open, when it has changed.
async function series() {
  const parts = new Map([...$("series").children].map(part => [part.dataset.suite, part]));
  for (const s of suites) {
    const results = known.filter(r => r.suite_sha256 === s.sha256 && !isGoing(r)), of = results.map(r => `${r.id} ${r.ended}`).join();
    let part = parts.get(s.name);
    if (results.length < 2) continue;
    parts.delete(s.name);
    if (!part) {
      part = make("details", {}, make("summary", { textContent: s.name }));
      part.dataset.suite = s.name;
      part.addEventListener("toggle", () => { if (part.open) load(); });
      $("series").append(part);
    }
    if (!part.open || part.dataset.of === of) continue;
    const { releases: all } = await call(suiteAt(s.name) + "/releases");
    part.dataset.of = of;
    part.replaceChildren(part.firstChild, ...releases(s.name, all));
  }
  for (const gone of parts.values()) gone.remove();
  $("releases").hidden = !$("series").children.length;
}

function suiteCard(s, me) {
  const li = make("li", {}, make("h3", { textContent: s.name }),
    make("p", { className: "soft", textContent: [...s.about ? [s.about] : [], `${s.entries.length} entries`, s.shipped ? "of this program" : `uploaded ${when(s.changed)} by ${s.by}`].join(" · ") }),
    make("details", {}, make("summary", { textContent: "Entries" }), scrolled(`entries of ${s.name}`, make("table", { className: "marks" },
      make("thead", {}, make("tr", {}, ...["Entry", "Type", "Visual mark", "Interactive mark", "Weight", "Answers"].map(name => th(name)))),
      make("tbody", {}, ...s.entries.map(e => make("tr", {}, make("th", { scope: "row", textContent: e.name }), td(e.type), td(e.visual || "–"), td(e.interactive || "–"), td(String(e.weight), "n"), td(String(e.answers), "n"))))))));
  if (!s.shipped && me.may("admin")) li.append(make("div", { className: "act" }, button("Remove", `the suite ${s.name}`, "remove")));
  li.dataset.key = s.name;
  return li;
}

// choices fills in what the form offers.
function choices(devices) {
  const form = $("measure").elements, options = (select, names) => refresh(select, names.map(n => { const o = make("option", { value: n, textContent: n }); o.dataset.key = n; return o; }));
  options(form.suite, suites.map(s => s.name));
  options(form.device, devices.map(d => d.name));
  about();
  const chosen = devices.find(d => d.name === form.device.value), names = [...new Set([...chosen?.browsers || [], ...suites.find(s => s.name === form.suite.value)?.browsers || []])];
  const box = $("browsers"), ticked = new Set([...box.querySelectorAll("input:checked")].map(i => i.value)), fresh = !box.querySelector("input");
  refresh(box, [box.querySelector("legend").cloneNode(true), ...names.map((n, i) => {
    const label = make("label", {}, make("input", { type: "checkbox", name: "browser", value: n, defaultChecked: fresh ? i === 0 : ticked.has(n) }), ` ${n}`);
    label.dataset.key = n;
    return label;
  })]);
}
const about = () => { $("about").textContent = suites.find(s => s.name === $("measure").elements.suite.value)?.about || ""; };

let first = true;
const load = visit(async me => {
  const [results, all, devices] = await Promise.all([call("/api/v1/suite-results"), call("/api/v1/suites"), call("/api/v1/devices").catch(() => ({ devices: [] }))]);
  known = results.results;
  suites = all.suites;
  if (first) choices(devices.devices);
  const asked = first && location.hash.slice(1);
  for (const id of [asked, known[0]?.id]) if (id && !shut.has(id) && !whole.has(id)) whole.set(id, null);
  for (const id of [...whole.keys()]) {
    const now = known.find(r => r.id === id);
    if (!now) { whole.delete(id); continue; }
    if (isGoing(now) || whole.get(id)?.state !== now.state || !whole.get(id)) whole.set(id, { entries: [], ...await call(at(id)) });
  }
  refresh($("list"), known.map(r => card(r, me)), $("head"));
  refresh($("suites"), suites.map(s => suiteCard(s, me)), $("suites-head"));
  await series();
  $("none").hidden = known.length > 0;
  $("measure").hidden = $("upload").hidden = !me.may("run");
  first = false;
  if (asked) document.getElementById(asked)?.scrollIntoView();
});
setInterval(() => { if (!document.hidden && $("login").hidden && !$("sure").open) load(); }, 5000);
$("measure").elements.suite.addEventListener("change", about);
$("list").addEventListener("toggle", e => {
  if (!e.target.classList.contains("says")) return;
  const id = e.target.closest("[data-key]").dataset.key;
  if (!e.target.open) { if (whole.get(id)) { whole.delete(id); shut.add(id); } } else if (!whole.has(id)) { shut.delete(id); whole.set(id, null); load(); }
}, true); // which does not bubble

sends($("measure"), async form => {
  const body = { suite: form.suite.value, seed: Number(form.seed.value) || 1 };
  const browsers = [...new Set([...document.querySelectorAll("#browsers input:checked")].map(i => i.value).concat(list(form.more.value)))];
  if (browsers.length) body.browsers = browsers;
  if (form.device.value) body.device = form.device.value;
  if (form.trials.value) body.trials = Number(form.trials.value);
  if (list(form.only.value).length) body.only = list(form.only.value);
  if (form.spread?.value) body.spread = Number(form.spread.value);
  const made = await call("/api/v1/suite-results", json("POST", body, { "Idempotency-Key": crypto.randomUUID?.() || String(Math.random()).slice(2) }));
  $("did").textContent = `${made.suite} is measured: ${made.runs} ${made.runs === 1 ? "run" : "runs"}.`;
  load();
});
sends($("upload"), async form => {
  const name = /^suite:\s*["']?([^\s"'#]+)/m.exec(form.yaml.value)?.[1];
  if (!name) throw new Error("Its text has no line suite: NAME.");
  const there = suites.find(s => s.name === name), put = match => call(suiteAt(name), json("PUT", { yaml: form.yaml.value }, match ? { "If-Match": match } : {}));
  await put(there && !there.shipped ? `"${there.sha256}"` : "");
  form.yaml.value = "";
  $("did").textContent = `The suite ${name} is kept.`;
  first = true;
  load();
});

clicked($("list"), {
  stop: id => sure("Stop measuring this suite?", "Its run in progress is cancelled. What it knows stays to be seen, and it can go on.", "Stop",
    () => call(at(id), { method: "DELETE" }), async () => { $("did").textContent = "It is stopped."; await load(); }),
  resume: async id => {
    try { await call(at(id, "/resume"), { method: "POST" }); $("did").textContent = "It goes on."; } catch (problem) { $("did").textContent = `It cannot go on: ${problem.message}.`; }
    await load();
  },
  remove: id => sure("Delete this result?", "Its runs stay.", "Delete",
    () => call(at(id) + "?files=true", { method: "DELETE" }), async () => { $("did").textContent = "It is deleted."; await load(); $("results-head").focus(); }),
});
clicked($("suites"), {
  remove: name => sure(`Remove the suite ${name}?`, "Its results stay.", "Remove",
    () => call(suiteAt(name), { method: "DELETE" }), async () => { $("did").textContent = "It is removed."; first = true; await load(); $("suites-head").focus(); }),
});
