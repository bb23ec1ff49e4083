// Recordings: those that were uploaded, those that runs made, and what is in one. All content is inserted as
// text, never as markup: a page that was recorded chooses its addresses.
import { $, make, call, number, address, csv, when } from "./common.js";
import { svg } from "./svg.js";
import { refresh } from "./refresh.js";
import { sorting } from "./sorting.js";
import { changing } from "./recordingedit.js";
import { visit, button, row, clicked, sure, sends } from "./visit.js";
/** @import { Schema } from "../panel" */

const query = new URLSearchParams(location.search);
/** @type {(name: string) => `/api/v1/archives/${string}`} */
const at = name => `/api/v1/archives/${encodeURIComponent(name)}`;
const size = bytes => bytes >= 1e6 ? `${number(bytes / 1e6)} MB` : `${number(bytes / 1e3)} kB`;
const say = text => { $("did").textContent = text; };
const few = 200; // requests that are drawn before somebody asks for all
/** @type {Schema<"ArchiveContents">} */
let contents = null;
/** @type {Schema<"Archive">[]} */
let uploads = [];
let open = "", everything = false, runs = 10;
/** @type {(scope: string) => boolean} */
let may = () => false;

const linkOf = name => make("a", { href: `?${new URLSearchParams({ name })}`, textContent: name });
const save = (href, name, text = "Download") => make("a", { href, download: name, textContent: text, ariaLabel: `Download ${name}` });

const load = visit(async me => {
  const [{ archives }, list] = await Promise.all([call("/api/v1/archives"), call(`/api/v1/runs?limit=${runs}`)]);
  uploads = archives;
  may = me.may;
  $("uploads-table").hidden = !archives.length;
  $("no-uploads").hidden = archives.length > 0;
  $("upload").hidden = !me.may("run");
  refresh($("uploads"), archives.map(a => row(a.name, [linkOf(a.name), size(a.bytes), when(a.modified),
    [save(at(a.name), a.name), " ", ...me.may("run") ? [button("Rename", `recording ${a.name}`, "rename")] : [], ...me.may("admin") ? [button("Delete", `recording ${a.name}`, "remove")] : []]])), $("kept-head"));
  const done = list.runs.filter(r => r.state === "done");
  $("runs-table").hidden = !done.length;
  $("no-runs").hidden = done.length > 0;
  $("more").hidden = !list.next || runs >= 500;
  refresh($("made"), done.map(r => row(r.id, [make("a", { href: `?${new URLSearchParams({ name: r.id })}`, textContent: address(r.page) || r.id }),
    make("a", { href: `/runs/${encodeURIComponent(r.id)}`, textContent: r.name || r.id }), when(r.wall),
    save(`/api/v1/runs/${encodeURIComponent(r.id)}/artifacts/archive.wacz`, `${r.id}.wacz`)])));
  if (query.get("name") && query.get("name") !== open) await look(query.get("name"));
});

// look shows what is in a recording.
async function look(name) {
  open = name;
  contents = null;
  $("one").hidden = $("busy").hidden = false;
  $("inside").hidden = true;
  $("unread").textContent = "";
  $("one-head").textContent = name;
  try {
    const c = await call(`${at(name)}/contents`);
    if (open !== name) return; // another was chosen meanwhile
    contents = c;
    show(c);
  } catch (problem) {
    if (problem.status === 401) throw problem;
    $("unread").textContent = `The recording could not be read: ${problem.message}.`;
  } finally { $("busy").hidden = open === name; }
}

function show(c) {
  $("facts").textContent = [`${c.exchanges} requests to ${c.hosts.length === 1 ? "one host" : `${c.hosts.length} hosts`}`, size(c.bytes), c.pages.map(p => address(p.url)).slice(0, 3).join(", ")].filter(Boolean).join(" · ");
  const grave = c.quality.problems.filter(p => p.grave).length, gaps = c.quality.problems.filter(p => p.gap).length;
  $("quality").replaceChildren(make("strong", { className: grave ? "bad" : "", textContent: grave ? "It is not fit for a measurement: " : gaps ? "It can be replayed, with gaps: " : "It is complete: " }),
    grave || gaps ? `${Math.floor(100 * c.quality.score)} % of what a replay needs is there.` : "all that the page shows is there.");
  refresh($("problems"), [...c.quality.problems.slice(0, 50).map(p => make("li", { className: p.grave ? "bad" : "" }, [p.url && address(p.url), p.what].filter(Boolean).join(": "))),
    ...c.warnings.slice(0, 50).map(text => make("li", { textContent: text }))]);
  const l = c.last;
  $("last").replaceChildren(...l ? ["Last replayed in ", make("a", { href: `/runs/${encodeURIComponent(l.run)}`, textContent: l.run }),
    `, ${when(l.wall)}: ${l.misses ? `${l.misses} of ${l.requests} requests had no answer in it` : `it answered all ${l.requests} requests`}, and ${l.faulty ? `${l.faulty} of ${l.trials} trials were faulty.` : `none of ${l.trials} trials was faulty.`}`]
    : ["None of the last hundred runs replayed it."]);
  const run = uploads.every(a => a.name !== open);
  Object.assign($("file"), { href: run ? `/api/v1/runs/${encodeURIComponent(open)}/artifacts/archive.wacz` : at(open), download: run ? `${open}.wacz` : open });
  $("use").href = `/plan?${new URLSearchParams({ archive: open, page: c.pages[0]?.url || "" })}`;
  $("csv").href = csv([["order", "method", "url", "status", "protocol", "type", "bytes", "start_ms", "first_byte_ms", "end_ms", "truncated"],
    ...c.requests.map(r => [r.order, r.method, r.url, r.status, r.protocol, r.type, r.bytes, r.start_ms, r.first_byte_ms, r.end_ms, r.truncated || ""])]);
  change.show(open, run ? null : uploads.find(a => a.name === open), c, may("run"));
  $("inside").hidden = false;
  everything = false;
  $("find").value = query.get("find") || "";
  fall();
}

const bad = r => r.status >= 400 || r.truncated;
// keep holds what is looked for and the order in the page's address.
const keep = (name, value) => { if (value) query.set(name, value); else query.delete(name); history.replaceState(null, "", `?${query}`); };
const order = sorting([...document.querySelectorAll("#fall th:not(#scale)")], next => { keep("sort", next); fall(); }, {
  start: query.get("sort") || "", column: (r, i) => [address(r.url), r.status, r.type, r.bytes, r.start_ms, Math.max(r.first_byte_ms, r.end_ms)][i],
});

// fall draws the waterfall: a row for each request that is looked for.
function fall() {
  const text = $("find").value.toLowerCase();
  const found = contents.requests.filter(r => [r.method, r.url, r.status, r.type, r.protocol, r.truncated || ""].join(" ").toLowerCase().includes(text));
  const ends = r => r.start_ms + Math.max(r.first_byte_ms, r.end_ms), first = Math.min(...contents.requests.map(r => r.start_ms)), last = Math.max(first + 1, ...contents.requests.map(ends));
  $("scale").textContent = contents.requests.length ? `When (${number(first)} to ${number(last)} ms)` : "When";
  $("count").textContent = `${found.length} of ${contents.exchanges} requests.${found.length || !text ? "" : " Search for less of the address, or for nothing, to see the others."}`;
  const ordered = order(found), drawn = everything ? ordered : ordered.slice(0, few);
  $("requests").replaceChildren(...drawn.map(r => {
    const tr = row(r.id, [[`${r.method === "GET" ? "" : `${r.method} `}${address(r.url)}`, ...r.truncated ? [make("small", { textContent: `cut off: ${r.truncated}` })] : []],
      String(r.status), r.type, number(r.bytes).replace(/\.0+$/, ""), number(r.start_ms), number(Math.max(r.first_byte_ms, r.end_ms)), bars(r, first, last)], bad(r) ? "bad" : "");
    return tr;
  }));
  $("rest").hidden = drawn.length === found.length;
  $("rest").textContent = `Show all ${found.length}`;
}

function bars(r, begin, last) {
  const part = (from, to, name) => svg("rect", { class: name, x: `${100 * (from - begin) / (last - begin)}%`, width: `${Math.max(0.3, 100 * (to - from) / (last - begin))}%`, y: 3, height: 11 });
  const first = r.start_ms + r.first_byte_ms;
  return svg("svg", { "aria-hidden": "true" }, part(r.start_ms, first, "wait"), part(first, Math.max(first, r.start_ms + r.end_ms), "take"));
}

$("find").addEventListener("input", () => {
  keep("find", $("find").value);
  fall();
});
$("rest").addEventListener("click", () => { everything = true; fall(); });
$("more").addEventListener("click", () => { runs = Math.min(runs * 3, 500); load(); });
// become looks at a recording that has just been made or renamed.
async function become(name, text) {
  say(text);
  query.delete("find");
  query.set("name", name);
  history.replaceState(null, "", `?${query}`);
  open = "";
  await load();
  $("one-head").focus();
}
const change = changing({ at, become, size });

clicked($("uploads"), {
  async rename(name) {
    if (open !== name) await become(name, "");
    $("rename").elements.name.focus();
  },
  remove: name => sure(`Delete the recording ${name}?`, "Plans that name it can no longer be run. This cannot be undone.", "Delete",
    () => call(at(name), { method: "DELETE" }), async () => { say(`${name} is deleted.`); if (open === name) $("one").hidden = true; await load(); $("kept-head").focus(); }),
});
$("upload").elements.file.addEventListener("change", e => {
  const name = $("upload").elements.name, [file] = e.target.files;
  if (file) name.value = `${file.name.replace(/(\.(wacz|har|warc|wprgo|json|gz|zst|zip))+$/i, "").replace(/[^A-Za-z0-9._-]+/g, "-").replace(/^[^A-Za-z0-9]+/, "") || "recording"}.wacz`;
});
sends($("upload"), async f => {
  const [file] = f.file.files, name = f.name.value || file.name;
  say(`${name}, ${size(file.size)}, is on its way …`);
  try {
    const a = await call(at(name), { method: "PUT", headers: { "Content-Type": "application/wacz", ...f.replace.checked && { "If-Match": "*" } }, body: file });
    f.name.form.reset();
    await become(name, [`${a.name} is stored`, ...(a.warnings || []).slice(0, 20)].join("; ") + ".");
  } catch (problem) { say(""); throw problem; }
});
