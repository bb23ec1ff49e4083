// The frames of a trial: the curve of differences, the frame at the cursor, a region for a plan. The address holds
// run, trial, frame, region and zoom.
import { $, make, call, number, reportOf, runOf, signIn } from "./common.js";
import { Sheet, regionOf, textOf } from "./sheet.js";
import { Curve, keys, progressOf, shareOf } from "./curve.js";
/** @import { Schema } from "../panel" */

const query = new URLSearchParams(location.search);
const run = query.get("run") || "", mostRows = 500;
const curve = new Curve($("curve"));
const sheet = new Sheet($("sheet"), {
  shown: i => { $("picture").ariaLabel = `The screen, ${says(i)}`; }, failed, drawn: choose, chosen,
});
/** @type {Schema<"TrialFrames">} */
let list = null; // until it is loaded
let pinned = 0; // the frame that is kept
sheet.region = regionOf(query.get("region"));

/** @type {() => `/api/v1/runs/${string}/trials/${string}/frames`} */
const base = () => `/api/v1/runs/${encodeURIComponent(run)}/trials/${encodeURIComponent(query.get("trial") || "1")}/frames`;
const clamp = (v, low, high) => Math.min(Math.max(v, low), high);
const last = () => list.changed.length - 1;

function failed(e) {
  $("busy").hidden = true;
  if (e.status === 401) { signIn(load); return; }
  $("trouble").hidden = false;
  $("trouble").replaceChildren(`The frames cannot be shown: ${e.message}. `, ...e.status === 404 || e.status === 409 ? [make("a", { href: "/", textContent: "All runs" })] : []);
}

// keep writes what is seen into the address.
function keep() {
  query.set("frame", String(pinned));
  if (sheet.region) query.set("region", textOf(sheet.region)); else query.delete("region");
  if ($("region").elements.only.checked && sheet.region) query.set("only", "1"); else query.delete("only");
  query.set("zoom", $("zoom").value);
  history.replaceState(null, "", `?${query}`);
}

let asked = 0;
async function load() {
  const turn = ++asked, only = query.has("only") && query.get("region");
  try {
    const fresh = await call(base() + (only ? `?region=${encodeURIComponent(only)}` : ""));
    if (turn !== asked) return;
    const other = !list || list.trial !== fresh.trial;
    list = fresh;
    $("busy").hidden = $("trouble").hidden = true;
    $("all").hidden = $("of").hidden = false;
    if (other) begin();
    curve.set(list);
    table();
    go(pinned);
  } catch (e) { if (turn === asked) failed(e); }
}

// begin shows another trial.
function begin() {
  sheet.use(list, base());
  $("report").hidden = Boolean(list.kind);
  $("report").href = `${reportOf(run)}#trial-${list.trial}`;
  $("whole").href = runOf(run);
  $("trial").replaceChildren(...list.trials.map(n => make("option", { value: n, textContent: n, selected: n === list.trial })));
  $("facts").textContent = [run, ...list.kind ? [list.kind] : [list.arm, list.valid ? "valid" : "invalid"], `${list.changed.length} frames of ${list.width} × ${list.height}`].filter(Boolean).join(" · ");
  $("curve").ariaValueMax = last();
  const biggest = list.changed.reduce((best, n, i) => i > list.start_frame && n > list.changed[best] ? i : best, Math.min(list.start_frame + 1, last()));
  pinned = query.has("frame") ? clamp(Math.round(Number(query.get("frame"))) || 0, 0, last()) : biggest;
  choose(sheet.holds(sheet.region) ? sheet.region : null);
  zoomed();
}

const says = i => `frame ${i}, ${number(list.time_ms[i])} ms, ${list.changed[i] ? `${list.changed[i]} pixels changed, ${share(i)} %` : "nothing changed"}` +
  (progressOf(list, i) === undefined ? "" : `, visual progress ${progressOf(list, i)} %`);
const share = i => { const v = shareOf(list, i); return v >= 0.01 || !v ? v.toFixed(2) : v.toPrecision(2); };

// go keeps a frame.
function go(i) {
  pinned = clamp(i, 0, last());
  look(pinned);
  keep();
}

// look shows a frame.
function look(i) {
  curve.mark(i);
  $("readout").textContent = says(i);
  $("curve").ariaValueNow = i;
  $("curve").ariaValueText = says(i);
  $("png").href = `${base()}/${i}`;
  $("png").download = `${run}-trial-${list.trial}-frame-${i}.png`;
  return sheet.show(i);
}

function zoomed() { sheet.zoomTo(Number($("zoom").value) || 0); }

// beside is the nearest frame with a change in a direction.
function beside(way) {
  let i = pinned + way;
  while (i > 0 && i < last() && !list.changed[i]) i += way;
  return i;
}

const moves = {
  back: () => pinned - 1, on: () => pinned + 1, first: () => 0, last, before: () => beside(-1), after: () => beside(1),
};

addEventListener("keydown", e => {
  const step = keys[e.key], busy = e.target.closest?.("input, select, textarea, dialog, summary, .wide-table, pre");
  if (step === undefined || !list || busy || e.altKey || e.ctrlKey || e.metaKey) return;
  if (e.target === $("view") && $("view").scrollWidth > $("view").clientWidth && typeof step === "number" && !e.shiftKey) return; // it scrolls
  e.preventDefault();
  go(typeof step === "number" ? pinned + step * (e.shiftKey ? 10 : 1) : moves[step]());
});
document.querySelector(".tools").addEventListener("click", e => {
  const to = e.target.dataset.to;
  if (to) go(moves[to]());
});

$("curve").addEventListener("pointermove", e => look(curve.under(e.clientX)));
$("curve").addEventListener("pointerleave", () => look(pinned));
$("curve").addEventListener("click", e => go(curve.under(e.clientX)));

$("zoom").addEventListener("change", () => { zoomed(); keep(); });
$("outline").addEventListener("change", () => { sheet.outline = $("outline").checked; sheet.mark(); });
$("trial").addEventListener("change", () => {
  query.set("trial", $("trial").value);
  query.delete("frame");
  load();
});

// choose takes a region and shows it; chosen follows when it will not change at once.
function choose(box) {
  sheet.region = box;
  const form = $("region").elements;
  for (const side of ["x", "y", "w", "h"]) form[side].value = box ? box[side] : "";
  $("refused").textContent = "";
  $("yaml").hidden = !box;
  write();
  sheet.mark();
}

function chosen() {
  keep();
  const now = query.has("only") ? query.get("region") : null, counted = list.pixels === list.width * list.height ? null : [list.region.x, list.region.y, list.region.width, list.region.height].join(",");
  if (now !== counted) load();
}

// write shows the region as lines of a plan, whose regions are relative to the content area.
function write() {
  const { region } = sheet;
  if (!region) return;
  const { content } = list, text = [region.x - content.x, region.y - content.y, region.w, region.h].join(",");
  const outside = content.width > 0 && (region.x < content.x || region.y < content.y || region.x + region.w > content.x + content.width || region.y + region.h > content.y + content.height);
  $("text").textContent = outside ? "# The region is not inside the content area, of which a plan speaks.\n" : {
    ignore: `measure:\n  ignore: ["${text}"]\n`,
    region: `measure:\n  regions:\n    - name: region\n      area: ${text}\n`,
    end: `steps:\n  - wait: still 1s in ${text}\n`,
    mask: `steps:\n  - wait: still 1s\n    mask: ["${text}"]\n`,
  }[$("kind").value];
}

$("region").addEventListener("change", () => {
  const form = $("region").elements, [x, y, w, h] = ["x", "y", "w", "h"].map(side => Number(form[side].value || NaN));
  if ([x, y, w, h].some(Number.isNaN)) return; // not all are entered yet
  if (!sheet.holds({ x, y, w, h })) {
    $("refused").textContent = `The region is not inside the frame of ${list.width} × ${list.height} pixels.`;
    return;
  }
  choose({ x, y, w, h });
  chosen();
});
$("region").addEventListener("submit", e => e.preventDefault());
$("region").addEventListener("reset", () => setTimeout(() => { choose(null); chosen(); }));
$("kind").addEventListener("change", write);
$("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText($("text").textContent);
    $("copied").textContent = "Copied.";
  } catch { // without TLS a page may not write there
    getSelection().selectAllChildren($("text"));
    $("copied").textContent = "Selected: copy it with the keyboard.";
  }
});

// table lists the frames that changed.
function table() {
  const all = list.changed.flatMap((n, i) => n ? [i] : []), shown = all.slice(0, mostRows);
  $("count").textContent = all.length > shown.length ? `The first ${shown.length} of ${all.length} frames with changes.` : `${all.length} frames with changes.`;
  $("csv").href = `${base()}.csv${query.has("only") ? `?region=${encodeURIComponent(query.get("region"))}` : ""}`;
  $("rows").replaceChildren(...shown.map(i => make("tr", {},
    make("th", { scope: "row" }, make("button", { type: "button", value: i, textContent: i, ariaLabel: `Show frame ${i}` })),
    ...[list.time_ms[i].toFixed(1), list.changed[i], share(i), progressOf(list, i) ?? "–"].map(textContent => make("td", { textContent })))));
}
$("rows").addEventListener("click", e => { if (e.target.value) { go(Number(e.target.value)); $("curve").scrollIntoView({ block: "nearest" }); } });

if (query.has("zoom")) $("zoom").value = query.get("zoom");
if (!$("zoom").value) $("zoom").value = "fit";
$("region").elements.only.checked = query.has("only");
if (run) load();
else {
  $("busy").hidden = true;
  $("none").hidden = false;
}
