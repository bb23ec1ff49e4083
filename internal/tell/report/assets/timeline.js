"use strict";
// What timelinework.js adds to it: search, ranges and what was clicked on. timelines is what it needs of the drawing.
const timelines = (() => {
/** @param {string} s @param {ParentNode} from */
const $ = (s, from = document) => from.querySelector(s);
/** @param {string} s @param {ParentNode} from */
const all = (s, from = document) => [...from.querySelectorAll(s)];
const make = (tag, props = {}, ...kids) => { const e = Object.assign(document.createElement(tag), props); e.append(...kids); return e; };
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const host = $("#timelines"), tip = make("div", { className: "tl-tip", hidden: true }), at = $("#at");
document.body.append(tip);

const theme = $("#theme"), system = matchMedia("(prefers-color-scheme: dark)");
const recall = () => { try { return localStorage.getItem("eidetic-theme"); } catch { return null; } };
const dark = () => (document.documentElement.dataset.theme || (system.matches ? "dark" : "light")) === "dark";
const label = () => { theme.textContent = dark() ? "Light" : "Dark"; theme.setAttribute("aria-label", `Switch to the ${dark() ? "light" : "dark"} theme`); };
if (["light", "dark"].includes(recall())) document.documentElement.dataset.theme = recall();
theme.hidden = false;
label();
theme.addEventListener("click", () => {
  document.documentElement.dataset.theme = dark() ? "light" : "dark";
  try { localStorage.setItem("eidetic-theme", document.documentElement.dataset.theme); } catch { /* not kept */ }
  label();
  shades();
  draw();
});
system.addEventListener("change", () => { label(); shades(); draw(); });

// ---- data -----------------------------------------------------------------
const NAME = 0, START = 1, END = 2, EARLY = 3, LATE = 4, LANE = 5, COLOUR = 6, PART = 7, FACTS = 8;
/** @type {Map<number, Held<"TimelineData"> | null>} */
const parsed = new Map();
const load = n => {
  if (!parsed.has(n)) {
    const e = document.getElementById("trial-" + n);
    parsed.set(n, e ? JSON.parse(e.textContent) : null);
  }
  return parsed.get(n);
};
/** @type {Shown[]} */
let shown = [];
let view = { from: 0, to: 1 }, whole = { from: 0, to: 1 }, folded = {}, cursor = null, shade = {};

const kinds = { frame: "--data", request: "--data", input: "--bad", step: "--accent", mark: "--data-2", annotation: "--warn", browser: "--data-2", memory: "--good", machine: "--good", link: "--ttfb" };
function shades() {
  shade = { ink: css("--ink"), soft: css("--soft"), line: css("--line"), card: css("--card"), ttfb: css("--ttfb"), font: `11px ${css("--sans")}` };
  for (const kind in kinds) shade[kind] = css(kinds[kind]);
}
const height = 16;
const rows = track => folded[track.kind] ? 1 : Math.min(track.lanes, 24);

// ---- pages of a trial -----------------------------------------------------
function build() {
  const chosen = all("select[data-arm]").map(s => ({ arm: s.dataset.arm, n: +s.value, word: s.parentElement.firstChild.textContent.trim() }));
  shown = chosen.map(c => ({ ...c, data: load(c.n), rows: [] })).filter(c => c.data);
  whole = { from: Math.min(0, ...shown.map(c => c.data.start)), to: Math.max(1, ...shown.map(c => c.data.end)) };
  const pad = (whole.to - whole.from) * 0.01;
  whole = { from: whole.from - pad, to: whole.to + pad };
  host.replaceChildren();
  for (const c of shown) {
    const box = make("section", { className: `tl ${c.arm}` });
    box.append(make("h2", {}, `${c.word === "Trial" ? "" : c.word + ", "}trial ${c.n}`));
    c.line = make("div", { className: "tl-line", hidden: true });
    c.film = make("div", { className: "tl-film" });
    c.images = [];
    if (c.data.thumbs.length) box.append(make("div", { className: "tl-row" }, make("span", { textContent: "Filmstrip" }), c.film));
    c.axis = make("canvas");
    c.axis.style.height = "20px"; // as of the rows: what lies below can be scrolled to before anything is drawn
    box.append(make("div", { className: "tl-row" }, make("span", { textContent: "ms" }), c.axis));
    c.rows = c.data.tracks.map(track => {
      const canvas = make("canvas");
      canvas.style.height = rows(track) * height + 4 + "px";
      canvas.setAttribute("role", "img");
      canvas.setAttribute("aria-label", `${track.name}: ${track.ev.length} events; a table is below`);
      const button = make("button", { type: "button", textContent: `${track.name} (${track.ev.length})`, title: track.name });
      button.setAttribute("aria-expanded", String(!folded[track.kind]));
      button.addEventListener("click", () => { folded[track.kind] = !folded[track.kind]; for (const o of shown) for (const r of o.rows) r.button.setAttribute("aria-expanded", String(!folded[r.track.kind])); draw(); });
      box.append(make("div", { className: "tl-row" }, button, canvas));
      const longest = track.ev.reduce((most, e) => Math.max(most, e[END] - e[START]), 0);
      return { c, track, canvas, button, longest, line: button.parentElement, seen: true, match: null };
    });
    c.range = make("div", { className: "tl-range", hidden: true });
    c.box = box;
    box.append(c.range, c.line);
    if (c.data.notes.length) box.append(make("div", { className: "tl-notes" }, ...c.data.notes.map(n => make("p", { textContent: n }))));
    host.append(box);
  }
  watcher.disconnect();
  rowOf.clear();
  for (const c of shown) for (const r of c.rows) { rowOf.set(r.canvas, r); watcher.observe(r.canvas); }
  tables();
  for (const f of built) f();
}
// Rows that are not in the window are not drawn.
const rowOf = new Map(), built = [], placed = [], drawn = [], clicked = [], ranged = [], keys = {};
const watcher = new IntersectionObserver(list => {
  for (const one of list) { const r = rowOf.get(one.target); if (r) r.seen = one.isIntersecting; }
  draw();
}, { rootMargin: "300px" });

function tables() {
  const to = $("#tables");
  to.replaceChildren();
  for (const c of shown) {
    to.append(make("h2", { textContent: `Tables of trial ${c.n}` }));
    to.append(csvButton(`trial-${c.n}-timeline`, () => [["track", "name", "start_ms", "lasts_ms", "start_may_be_earlier_by_ms", "start_may_be_later_by_ms", "facts"],
      ...c.data.tracks.flatMap(track => track.ev.map(e => [track.name, c.data.texts[e[NAME]], e[START], +(e[END] - e[START]).toFixed(3), -e[EARLY], e[LATE], facts(c, e).map(f => f.join(": ")).join(", ")]))],
    "Download all tracks as CSV"));
    for (const { track } of c.rows) {
      const body = make("tbody"), more = make("button", { type: "button", className: "quiet", hidden: true });
      let done = 0;
      const fill = () => {
        for (const e of track.ev.slice(done, done + 500)) {
          body.append(make("tr", {}, Object.assign(make("th", { textContent: c.data.texts[e[NAME]] }), { scope: "row" }), make("td", { textContent: e[START].toFixed(1) }),
            make("td", { textContent: e[END] > e[START] ? (e[END] - e[START]).toFixed(1) : "" }), make("td", { textContent: bounds(e) }), make("td", { textContent: facts(c, e).map(f => f.join(": ")).join(", ") })));
        }
        labelled(body.parentElement);
        done = Math.min(done + 500, track.ev.length);
        more.textContent = `${Math.min(500, track.ev.length - done)} more of ${track.ev.length}`;
        more.hidden = done >= track.ev.length;
      };
      more.addEventListener("click", fill);
      const head = make("tr", {}, ...["Name", "Start, ms", "Lasts, ms", "Known within, ms", "Facts"].map(t => Object.assign(make("th", { textContent: t }), { scope: "col" })));
      const details = make("details", {}, make("summary", { textContent: `${track.name} (${track.ev.length})` }), make("div", { className: "scroll" }, make("table", { className: "numbers" }, make("thead", {}, head), body)), more);
      details.addEventListener("toggle", () => { if (details.open && !done) fill(); });
      to.append(details);
    }
  }
}
const bounds = e => e[LATE] > e[EARLY] ? `${e[EARLY].toFixed(1)} to +${e[LATE].toFixed(1)}`.replace("+-", "−").replace("-", "−") : "";
/** @param {Shown} c */
function facts(c, e) {
  const list = [];
  for (let i = FACTS; i + 1 < e.length; i += 2) list.push([c.data.texts[e[i]], c.data.texts[e[i + 1]]]);
  return list;
}

// ---- drawing --------------------------------------------------------------
let asked = false;
function draw() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => { asked = false; for (const c of shown) { strip(c); axis(c); for (const r of c.rows) if (r.seen) row(c, r); else r.canvas.style.height = rows(r.track) * height + 4 + "px"; } place(); for (const f of drawn) f(); });
}
const scale = width => { const k = width / (view.to - view.from); return { k, x: t => (t - view.from) * k }; };

function prepare(canvas, h) {
  const w = canvas.clientWidth, ratio = devicePixelRatio || 1;
  if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(h * ratio)) {
    canvas.width = Math.round(w * ratio);
    canvas.height = Math.round(h * ratio);
    canvas.style.height = h + "px";
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, w, h);
  pen.font = shade.font;
  pen.textBaseline = "middle";
  return { pen, w };
}

const steps = span => { const rough = span / 9, ten = 10 ** Math.floor(Math.log10(rough)); return ten * [1, 2, 5, 10].find(m => m * ten >= rough); };
/** @param {Shown} c */
function axis(c) {
  const { pen, w } = prepare(c.axis, 20), { x } = scale(w), step = steps((view.to - view.from) * Math.max(1, 700 / Math.max(w, 1)));
  for (let t = Math.ceil(view.from / step) * step; t <= view.to; t += step) {
    pen.fillStyle = shade.line;
    pen.fillRect(Math.round(x(t)), 13, 1, 7);
    pen.fillStyle = shade.soft;
    pen.fillText(String(+t.toFixed(3)), x(t) + 3, 8);
  }
}

// first is the first event that may reach into the view: those of a track are in the order of their starts.
function first(list, from) {
  let low = 0, high = list.length;
  while (low < high) { const mid = (low + high) >> 1; if (list[mid][START] < from) low = mid + 1; else high = mid; }
  return low;
}

// onBar is the ink on a bar of a kind's colour, which is #rgb or #rrggbb.
const onBar = kind => readable(parseInt((shade[kind] || "#000").slice(1).padEnd(6, "0"), 16));
const colour = n => "#" + n.toString(16).padStart(6, "0");
const readable = n => (n >> 16) * 0.299 + (n >> 8 & 255) * 0.587 + (n & 255) * 0.114 > 140 ? "#000" : "#fff";

/** @param {Shown} c @param {Row} r */
function row(c, r) {
  const { pen, w } = prepare(r.canvas, rows(r.track) * height + 4);
  pen.save();
  if (r.match) { // what was not found is pale, and never before what was
    pen.pale = 0.25;
    bars(c, r, pen, w, i => !r.match[i]);
    pen.pale = 1;
    bars(c, r, pen, w, i => r.match[i]);
  } else { pen.pale = 1; bars(c, r, pen, w, null); }
  pen.restore();
  if (c.picked && c.picked.r === r) {
    const e = c.picked.e, { x } = scale(w), a = Math.max(x(e[START]), -2), b = Math.min(Math.max(x(e[END]), a + 3), w + 2);
    pen.strokeStyle = shade.ink;
    pen.lineWidth = 2;
    if (b > 0 && a < w) pen.strokeRect(a, 2 + laneOf(r, e) * height, b - a, height - 1);
  }
}
/** @param {Row} r */
const laneOf = (r, e) => folded[r.track.kind] ? 0 : Math.min(e[LANE], rows(r.track) - 1);

/** @param {Shown} c @param {Row} r */
function bars(c, r, pen, w, only) {
  const { track } = r, n = rows(track), { x } = scale(w), pale = pen.pale;
  const flat = folded[track.kind];
  const ends = new Float64Array(n).fill(-1);
  for (let i = first(track.ev, view.from - r.longest); i < track.ev.length; i++) {
    const e = track.ev[i];
    if (e[START] + e[EARLY] > view.to) break;
    const a = x(e[START]), b = x(e[END]), lane = flat ? 0 : Math.min(e[LANE], n - 1), top = 2 + lane * height;
    if (e[END] > e[START] ? b < 0 : a < -20) continue;
    if (b <= ends[lane] || only && !only(i)) continue; // its pixels are drawn
    ends[lane] = Math.max(b, a + 0.5);
    pen.globalAlpha = pale;
    const own = e[COLOUR] >= 0;
    pen.fillStyle = own ? colour(e[COLOUR]) : shade[track.kind];
    if (e[END] > e[START]) {
      if (e[PART] >= 0) {
        pen.fillStyle = shade.ttfb;
        pen.fillRect(a, top + 1, Math.max(x(e[PART]) - a, 0.7), height - 3);
        pen.fillStyle = shade[track.kind];
        pen.fillRect(x(e[PART]), top + 1, Math.max(b - x(e[PART]), 0.7), height - 3);
      } else {
        pen.globalAlpha = pale * (own ? 1 : track.kind === "frame" ? 0.25 : 0.45);
        pen.fillRect(a, top + 1, Math.max(b - a, 1), height - 3);
        pen.globalAlpha = pale;
        pen.fillRect(a, top + 1, 1.5, height - 3);
      }
      const rests = track.rests && track.rests[i] || [];
      for (let k = 0; k < rests.length; k += 2) { // paused: a thin line
        const from = x(rests[k]), wide = Math.max(x(rests[k + 1]) - from, 0.7);
        pen.clearRect(from, top, wide, height - 1);
        pen.fillRect(from, top + height / 2 - 1, wide, 1);
      }
      if (flat) continue;
      // The name stands on the longer part of a request.
      const cut = Math.max(x(e[PART]), 0), later = e[PART] >= 0 && b - cut > cut - a, left = later ? cut : Math.max(a, 0), right = Math.min(e[PART] >= 0 && !later ? cut : b, w);
      words(pen, c.data.texts[e[NAME]], left + 4, top + height / 2, right - left - 6, later ? onBar(track.kind) : own && e[PART] < 0 ? readable(e[COLOUR]) : shade.ink);
    } else {
      const low = x(e[START] + e[EARLY]), high = x(e[START] + e[LATE]);
      pen.globalAlpha = pale * 0.3;
      pen.fillRect(low, top + 3, Math.max(high - low, 1), height - 7);
      pen.globalAlpha = pale;
      pen.fillRect(a - 1, top + 1, 2, height - 3);
      const next = track.ev[i + 1];
      if (!flat) words(pen, c.data.texts[e[NAME]], a + 5, top + height / 2, Math.min(next && next[LANE] === e[LANE] ? x(next[START]) : w, w) - a - 8, shade.ink);
    }
  }
}

function words(pen, text, x, y, room, ink) {
  if (room < 18 || !text) return;
  let shown = text.replace(/^GET https?:\/\//, "");
  const most = Math.floor(room / 5.6);
  if (shown.length > most) shown = shown.slice(0, Math.max(most - 1, 1)) + "…";
  pen.save();
  pen.beginPath();
  pen.rect(x - 1, y - height, room + 1, 2 * height);
  pen.clip();
  pen.fillStyle = ink;
  pen.fillText(shown, x, y);
  pen.restore();
}

// strip puts pictures on the axis: each slot shows the picture of its left edge.
/** @param {Shown} c */
function strip(c) {
  const list = c.data.thumbs, w = c.film.clientWidth;
  if (!list.length || !w) return;
  const { k } = scale(w), wide = (c.film.clientHeight - 8) * (list[0].w || 4) / (list[0].h || 3) + 1;
  let used = 0;
  for (let left = Math.max(0, (list[0].t - view.from) * k); left < w; left += wide) {
    const thumb = pictureAt(c, view.from + left / k);
    const img = c.images[used] || (c.images[used] = c.film.appendChild(make("img", { alt: "", loading: "lazy", draggable: false })));
    if (img.dataset.u !== thumb.u) { img.src = thumb.u; img.dataset.u = thumb.u; }
    img.style.left = left + "px";
    img.style.width = wide - 1 + "px";
    img.hidden = false;
    used++;
  }
  for (let i = used; i < c.images.length; i++) c.images[i].hidden = true;
}
/** @param {Shown} c */
function pictureAt(c, t) {
  let best = c.data.thumbs[0];
  for (const one of c.data.thumbs) if (one.t <= t + 0.01) best = one;
  return best;
}
/** @param {Shown} c */
function frameAt(c, t) {
  const track = c.data.tracks.find(o => o.kind === "frame");
  if (!track) return null;
  const i = first(track.ev, t + 0.0005) - 1;
  return i >= 0 ? track.ev[i] : null;
}

// ---- pointer and keys -----------------------------------------------------
function place() {
  for (const c of shown) {
    const left = c.axis.offsetLeft, w = c.axis.clientWidth;
    c.line.hidden = cursor === null || cursor < view.from || cursor > view.to;
    if (!c.line.hidden) c.line.style.left = left + scale(w).x(cursor) + "px";
  }
  for (const f of placed) f();
}
function move(from, to) {
  const span = Math.min(Math.max(to - from, 0.05), whole.to - whole.from);
  from = Math.min(Math.max(from, whole.from), whole.to - span);
  view = { from, to: from + span };
  draw();
}
function zoom(factor, around) {
  const t = around === undefined ? cursor !== null && cursor >= view.from && cursor <= view.to ? cursor : (view.from + view.to) / 2 : around;
  move(t - (t - view.from) * factor, t + (view.to - t) * factor);
}
function say(t) {
  cursor = t;
  place();
  at.textContent = `${t.toFixed(1)} ms` + shown.map(c => { const f = frameAt(c, t); return `; trial ${c.n}: ${f ? c.data.texts[f[NAME]] : "before the first change"}`; }).join("");
}
const target = e => {
  for (const c of shown) {
    if (c.film.contains(e.target) || e.target === c.axis) return { c, r: null, box: (c.film.contains(e.target) ? c.film : c.axis).getBoundingClientRect() };
    const r = c.rows.find(o => o.canvas === e.target);
    if (r) return { c, r, box: r.canvas.getBoundingClientRect() };
  }
  return null;
};
/** @param {Shown} c @param {Row} r */
function hit(c, r, t, y, k) {
  const lane = folded[r.track.kind] ? -1 : Math.floor((y - 2) / height), n = rows(r.track), reach = 5 / k;
  let best = null, distance = Infinity;
  for (let i = first(r.track.ev, t - r.longest - reach); i < r.track.ev.length; i++) {
    const e = r.track.ev[i];
    if (e[START] > t + reach) break;
    if (lane >= 0 && Math.min(e[LANE], n - 1) !== lane) continue;
    const d = t < e[START] ? e[START] - t : t > e[END] ? t - e[END] : 0;
    if (d <= reach && d <= distance) { best = e; distance = d; }
  }
  return best;
}

const fingers = new Map();
let drag = null, selecting = false;
// grip begins to drag what lies under a finger or the pointer. Only one that neither moved nor was one of two clicks.
function grip(on, x, more) {
  const k = (view.to - view.from) / on.box.width, [a, b] = [...fingers.values()];
  drag = { on, x, range: false, from: view.from + (x - on.box.left) * k, moved: fingers.size > 1, view: { ...view }, k, gap: fingers.size === 2 ? Math.abs(a - b) : 0, ...more };
}
host.addEventListener("pointerdown", e => {
  const on = target(e);
  if (!on || e.button !== 0) return;
  fingers.set(e.pointerId, e.clientX);
  grip(on, e.clientX, { range: (e.shiftKey || selecting) && fingers.size === 1 });
});
addEventListener("pointermove", e => {
  if (fingers.has(e.pointerId)) {
    fingers.set(e.pointerId, e.clientX);
    const [a, b] = [...fingers.values()];
    if (fingers.size === 2 && drag.gap > 0) {
      const f = drag.gap / Math.max(Math.abs(a - b), 1), mid = (drag.view.from + drag.view.to) / 2, half = (drag.view.to - drag.view.from) / 2 * f;
      move(mid - half, mid + half);
    } else if (fingers.size === 1 && drag.range) {
      const { box } = drag.on, to = view.from + (e.clientX - box.left) / box.width * (view.to - view.from);
      drag.moved = drag.moved || Math.abs(drag.x - e.clientX) > 2;
      if (drag.moved) for (const f of ranged) f(Math.min(drag.from, to), Math.max(drag.from, to), false);
    } else if (fingers.size === 1) {
      drag.moved = drag.moved || Math.abs(drag.x - e.clientX) > 2;
      const d = (drag.x - e.clientX) * drag.k;
      if (Math.abs(drag.x - e.clientX) > 2) move(drag.view.from + d, drag.view.to + d);
    }
  }
  const on = target(e);
  if (!on) { tip.hidden = true; return; }
  const { k } = scale(on.box.width), t = view.from + (e.clientX - on.box.left) / k;
  say(t);
  const found = on.r && hit(on.c, on.r, t, e.clientY - on.box.top, k), lines = [];
  if (found) {
    lines.push(make("b", { textContent: on.c.data.texts[found[NAME]] }));
    lines.push(`${found[START].toFixed(1)} ms` + (found[END] > found[START] ? `, lasts ${(found[END] - found[START]).toFixed(1)} ms` : ""));
    if (bounds(found)) lines.push(make("br"), make("i", { textContent: `known within ${bounds(found)} ms` }));
    for (const [name, value] of facts(on.c, found)) lines.push(make("br"), make("i", { textContent: name + " " }), value);
  } else lines.push(`${t.toFixed(1)} ms`);
  if (on.c.data.thumbs.length) {
    const thumb = pictureAt(on.c, t), f = frameAt(on.c, t);
    lines.push(make("img", { src: thumb.u, alt: "", width: thumb.w, height: thumb.h }), make("i", { textContent: `screen: ${f ? on.c.data.texts[f[NAME]] : "before the first change"}; picture of ${thumb.t.toFixed(0)} ms` }));
  }
  tip.replaceChildren(...lines);
  tip.hidden = false;
  tip.style.left = Math.min(e.clientX + 14, innerWidth - tip.offsetWidth - 8) + "px";
  tip.style.top = Math.min(e.clientY + 16, innerHeight - tip.offsetHeight - 8) + "px";
});
for (const kind of ["pointerup", "pointercancel"]) addEventListener(kind, e => {
  if (!fingers.delete(e.pointerId)) return;
  if (fingers.size > 0) grip(drag.on, [...fingers.values()][0], { moved: true }); // the other finger moves on from here
  if (kind === "pointercancel" || fingers.size > 0) return;
  const { on } = drag, { k } = scale(on.box.width), to = view.from + (e.clientX - on.box.left) / k;
  if (drag.range && drag.moved) for (const f of ranged) f(Math.min(drag.from, to), Math.max(drag.from, to), true);
  else if (!drag.moved && on.r) for (const f of clicked) f(on.c, on.r, hit(on.c, on.r, to, e.clientY - on.r.canvas.getBoundingClientRect().top, k));
});
host.addEventListener("pointerleave", () => { tip.hidden = true; });
host.addEventListener("wheel", e => {
  const on = target(e);
  if (!on || !(e.ctrlKey || e.metaKey)) return;
  e.preventDefault();
  zoom(Math.exp(Math.min(Math.max(e.deltaY, -200), 200) / 300), view.from + (e.clientX - on.box.left) / on.box.width * (view.to - view.from));
}, { passive: false });
host.addEventListener("dblclick", e => { if (target(e)) move(whole.from, whole.to); });
const foldAll = () => { const on = Object.keys(kinds).some(k => !folded[k]); for (const k in kinds) folded[k] = on; for (const c of shown) for (const r of c.rows) r.button.setAttribute("aria-expanded", String(!on)); draw(); };
// step goes to the next or previous picture of any trial that is shown.
function step(on) {
  const t = cursor === null ? (on > 0 ? -Infinity : Infinity) : cursor;
  const times = shown.flatMap(c => (c.data.tracks.find(o => o.kind === "frame") || { ev: [] }).ev.map(e => e[START])).sort((a, b) => a - b);
  const to = on > 0 ? times.find(v => v > t + 0.001) : times.filter(v => v < t - 0.001).pop();
  if (to === undefined) return;
  if (to < view.from || to > view.to) { const half = (view.to - view.from) / 2; move(to - half, to + half); }
  say(to);
}
host.addEventListener("keydown", e => {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  const span = view.to - view.from;
  const act = { "+": () => zoom(0.7), "=": () => zoom(0.7), "-": () => zoom(1 / 0.7), ArrowLeft: () => move(view.from - span / 6, view.to - span / 6), ArrowRight: () => move(view.from + span / 6, view.to + span / 6),
    Home: () => move(whole.from, whole.from + span), End: () => move(whole.to - span, whole.to), 0: () => move(whole.from, whole.to), ",": () => step(-1), ".": () => step(1), f: foldAll, ...keys }[e.key];
  if (act) { e.preventDefault(); act(); }
});
for (const b of all("[data-zoom]")) b.addEventListener("click", () => ({ in: () => zoom(0.6), out: () => zoom(1 / 0.6), all: () => move(whole.from, whole.to) })[b.dataset.zoom]());
for (const s of all("select[data-arm]")) s.addEventListener("change", () => { build(); move(view.from, view.to); });
// #12 in the address shows that trial; timelinework.js reads what may follow.
const wanted = /^#(\d+)(?:&|$)/.exec(location.hash);
if (wanted) for (const s of all("select[data-arm]")) if ([...s.options].some(o => o.value === wanted[1])) s.value = wanted[1];
const graph = $(".run-graph table");
if (graph) labelled(graph);
if (graph) graph.parentElement.after(csvButton("run-graph", () => {
  const rows = tableRows(graph).slice(1), of = arm => ["total_ms", "self_ms", "times"].map(what => arm + what), both = rows[0].length > 4;
  const apart = text => (text.match(/[+−]?[\d.]+/g) || []).map(v => Number(v.replace("−", "-"))); // a difference and its interval
  return [["name", ...both ? [...of("control_"), ...of("treatment_"), "difference_ms", "low_ms", "high_ms"] : of("")], ...rows.map(r => both ? [...r.slice(0, 7), ...apart(r[7])] : r)];
}));
addEventListener("resize", draw);
$(".tl-tools").hidden = false;
shades();
build();
// What follows the last change of the screen is seldom looked for.
const last = Math.max(0, ...shown.flatMap(c => (c.data.tracks.find(o => o.kind === "frame") || { ev: [] }).ev.map(e => e[START])));
move(whole.from, last > 0 ? Math.min(whole.to, last * 1.08 + 30) : whole.to);
return { $, all, make, host, draw, move, say, facts, bounds, first, shown: () => shown, at: () => ({ ...view, cursor, whole }), built, placed, drawn, clicked, ranged, keys, scale, top: (r, e) => r.canvas.offsetTop + 2 + laneOf(r, e) * height + height / 2,
  fold: (kind, on) => { folded[kind] = on; for (const c of shown) for (const r of c.rows) if (r.track.kind === kind) r.button.setAttribute("aria-expanded", String(!on)); }, select: on => { selecting = on; } };
})();
