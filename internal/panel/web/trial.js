// The frames of a trial: the curve of differences, the frame at the cursor, a region for a plan. The address holds
// run, trial, frame, region and zoom.
import { $, make, call, number, reportOf, signIn } from "./common.js";
import { Film, outlined } from "./film.js";
import { Curve, progressOf, shareOf } from "./curve.js";

const query = new URLSearchParams(location.search);
const run = query.get("run") || "", mostRows = 500;
const picture = $("picture").getContext("2d", { alpha: false }), marks = $("marks").getContext("2d");
const curve = new Curve($("curve"));
let list = null, film = null; // null until they are loaded
let pinned = 0, wanted = 0, stepping = null, drawing = null; // frames; the loop that shows the wanted one; a drag
let region = (sides => sides.length === 4 && sides.every(Number.isInteger) ? { x: sides[0], y: sides[1], w: sides[2], h: sides[3] } : null)((query.get("region") || "").split(",").map(Number)); // in pixels of the frame

const base = () => `/api/v1/runs/${encodeURIComponent(run)}/trials/${encodeURIComponent(query.get("trial") || "1")}/frames`;
const clamp = (v, low, high) => Math.min(Math.max(v, low), high);
const last = () => list.changed.length - 1;
const regionText = () => region && [region.x, region.y, region.w, region.h].join(",");

function failed(e) {
  $("busy").hidden = true;
  if (e.status === 401) { signIn(load); return; }
  $("trouble").hidden = false;
  $("trouble").textContent = `The frames cannot be shown: ${e.message}.`;
}

// keep writes what is seen into the address.
function keep() {
  query.set("frame", pinned);
  if (region) query.set("region", regionText()); else query.delete("region");
  if ($("region").elements.only.checked && region) query.set("only", "1"); else query.delete("only");
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
  film = new Film(list, base());
  for (const canvas of [$("picture"), $("marks")]) Object.assign(canvas, { width: list.width, height: list.height });
  $("report").href = `${reportOf(run)}#trial-${list.trial}`;
  $("trial").replaceChildren(...list.trials.map(n => make("option", { value: n, textContent: n, selected: n === list.trial })));
  $("facts").textContent = [run, list.arm, list.valid ? "valid" : "invalid", `${list.changed.length} frames of ${list.width} × ${list.height}`].filter(Boolean).join(" · ");
  $("curve").ariaValueMax = last();
  const biggest = list.changed.reduce((best, n, i) => i > list.start_frame && n > list.changed[best] ? i : best, Math.min(list.start_frame + 1, last()));
  pinned = query.has("frame") ? clamp(Math.round(Number(query.get("frame"))) || 0, 0, last()) : biggest;
  choose(inside(region) ? region : null);
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

// look shows a frame. One that comes while another is being shown waits, and only the newest waits.
function look(i) {
  wanted = i;
  curve.mark(i);
  $("readout").textContent = says(i);
  $("curve").ariaValueNow = i;
  $("curve").ariaValueText = says(i);
  $("png").href = `${base()}/${i}`;
  $("png").download = `${run}-trial-${list.trial}-frame-${i}.png`;
  return stepping ||= (async () => {
    try {
      for (let shown = -1; shown !== wanted;) {
        const i = wanted, one = film;
        const rects = await one.show(i, picture);
        if (one !== film) continue;
        shown = i;
        mark(rects);
        one.ahead(i);
        $("picture").ariaLabel = `The screen, ${says(i)}`;
        $("picture").dataset.frame = i;
      }
    } catch (e) { failed(e); } finally { stepping = null; }
  })();
}

// mark draws the boxes of what changed, at once; the outlines of the pixels when nobody steps on.
let later = null, changed = [];
function mark(rects = changed) {
  changed = rects;
  clearTimeout(later);
  const unit = Math.max(1, list.width / ($("picture").clientWidth || list.width));
  marks.clearRect(0, 0, list.width, list.height);
  const box = (r, colour, dash) => {
    marks.strokeStyle = colour;
    marks.lineWidth = 2 * unit;
    marks.setLineDash(dash.map(d => d * unit));
    marks.strokeRect(r.x - unit, r.y - unit, r.w + 2 * unit, r.h + 2 * unit);
  };
  if ($("outline").checked) {
    for (const r of rects) box(r, "#ff00c8", []);
    later = setTimeout(() => {
      for (const r of rects) marks.drawImage(bitmapOf(outlined(r, 0xffc800ff)), r.x, r.y);
      if (region) box(region, "#ff8a00", [6, 4]);
    }, 120);
  }
  if (region) box(region, "#ff8a00", [6, 4]);
}

// bitmapOf makes of an image what can be drawn over something else.
function bitmapOf(image) {
  const canvas = Object.assign(document.createElement("canvas"), { width: image.width, height: image.height });
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

function zoomed() {
  const zoom = Number($("zoom").value);
  $("sheet").classList.toggle("fit", !zoom);
  for (const canvas of [$("picture"), $("marks")]) {
    // One pixel of the frame is one of the screen, or several, whatever the scale of the page.
    canvas.style.width = zoom ? `${list.width * zoom / devicePixelRatio}px` : "";
    canvas.style.height = zoom ? `${list.height * zoom / devicePixelRatio}px` : "";
  }
  mark();
}

// beside is the nearest frame with a change in a direction.
function beside(way) {
  let i = pinned + way;
  while (i > 0 && i < last() && !list.changed[i]) i += way;
  return i;
}

const moves = {
  back: () => pinned - 1, on: () => pinned + 1, first: () => 0, last, before: () => beside(-1), after: () => beside(1),
};
const keys = { ArrowLeft: -1, ArrowRight: 1, Home: "first", End: "last", PageUp: "before", PageDown: "after" };

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
$("outline").addEventListener("change", () => mark());
$("trial").addEventListener("change", () => {
  query.set("trial", $("trial").value);
  query.delete("frame");
  load();
});

// The region.
const place = e => {
  const box = $("picture").getBoundingClientRect();
  return { x: clamp(Math.floor((e.clientX - box.left) / box.width * list.width), 0, list.width), y: clamp(Math.floor((e.clientY - box.top) / box.height * list.height), 0, list.height) };
};
$("sheet").addEventListener("pointerdown", e => {
  if (e.button || e.pointerType === "touch") return; // a finger scrolls
  drawing = place(e);
  $("sheet").setPointerCapture(e.pointerId);
});
$("sheet").addEventListener("pointermove", e => {
  if (!drawing) return;
  const to = place(e), [x, y] = [Math.min(drawing.x, to.x), Math.min(drawing.y, to.y)];
  const w = Math.abs(drawing.x - to.x), h = Math.abs(drawing.y - to.y);
  if (w > 2 && h > 2) choose({ x, y, w, h });
});
for (const end of ["pointerup", "pointercancel"]) $("sheet").addEventListener(end, () => { if (drawing) { drawing = null; chosen(); } });

const inside = box => box && [box.x, box.y, box.w, box.h].every(Number.isInteger) && box.x >= 0 && box.y >= 0 && box.w > 0 && box.h > 0 && box.x + box.w <= list.width && box.y + box.h <= list.height;

// choose takes a region and shows it; chosen follows when it will not change at once.
function choose(box) {
  region = box;
  const form = $("region").elements;
  for (const side of ["x", "y", "w", "h"]) form[side].value = box ? box[side] : "";
  $("refused").textContent = "";
  $("yaml").hidden = !box;
  write();
  mark();
}

function chosen() {
  keep();
  const now = query.has("only") ? query.get("region") : null, counted = list.pixels === list.width * list.height ? null : [list.region.x, list.region.y, list.region.width, list.region.height].join(",");
  if (now !== counted) load();
}

// write shows the region as lines of a plan, whose regions are relative to the content area.
function write() {
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
  if (!inside({ x, y, w, h })) {
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
