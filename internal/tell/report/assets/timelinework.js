"use strict";
// How a person works with timelines: search, rows by name, a range and what took its time, and what was clicked on
// with what it lies in, its call stack and its pictures.
(() => {
const { $, make, host, draw, move, say, facts, bounds, shown, at, built, placed, drawn, clicked, ranged, keys, scale, fold } = timelines;
const NAME = 0, START = 1, END = 2, LANE = 5, FACTS = 8;
const search = $("#tl-search"), found = $("#tl-found"), filter = $("#tl-filter"), dock = $("#dock"), taken = $("#taken"), picked = $("#picked");
const MOST_ROWS = 200, MOST_PICTURES = 12;
let range = null, current = null, hits = [], place = -1;

// ---- rows by name ---------------------------------------------------------
function filterRows() {
  const words = filter.value.toLowerCase().split(",").map(w => w.trim()).filter(Boolean);
  let left = 0;
  for (const c of shown()) for (const r of c.rows) {
    r.line.hidden = words.length > 0 && !words.some(w => r.track.name.toLowerCase().includes(w) || r.track.kind === w);
    if (!r.line.hidden) left++;
  }
  filter.setCustomValidity(left ? "" : "no row has such a name");
  draw();
  tell();
  if (search.value) look();
}
filter.addEventListener("input", filterRows);

// ---- search ---------------------------------------------------------------
// look finds the events whose name or facts have the text.
function look() {
  const text = search.value.trim().toLowerCase();
  hits = [];
  place = -1;
  for (const c of shown()) {
    const has = text ? Uint8Array.from(c.data.texts, t => Number(t.toLowerCase().includes(text))) : null;
    for (const r of c.rows) {
      r.match = null;
      if (!has || r.line.hidden) continue;
      r.match = new Uint8Array(r.track.ev.length);
      r.track.ev.forEach((e, i) => {
        let is = has[e[NAME]];
        for (let k = FACTS + 1; !is && k < e.length; k += 2) is = has[e[k]];
        if (is) { r.match[i] = 1; hits.push({ c, r, e }); }
      });
    }
  }
  hits.sort((a, b) => a.e[START] - b.e[START]);
  found.textContent = text ? `${hits.length} found` : "";
  draw();
}
let soon = 0;
search.addEventListener("input", () => { clearTimeout(soon); soon = setTimeout(look, 150); });
search.addEventListener("keydown", e => {
  if (e.key === "Enter") { e.preventDefault(); clearTimeout(soon); if (!hits.length || place < 0) look(); next(e.shiftKey ? -1 : 1); }
  if (e.key === "Escape" && search.value) { e.preventDefault(); search.value = ""; look(); host.focus(); }
});
// next shows the next thing that was found, or the previous one.
function next(on) {
  if (!hits.length) return;
  place = (place + on + hits.length) % hits.length;
  const { c, r, e } = hits[place];
  pick(c, r, e);
  found.textContent = `${place + 1} of ${hits.length}`;
}

// into brings an event into view.
function into(e) {
  const { from, to } = at(), span = to - from, long = e[END] - e[START];
  if (e[START] < from || e[START] > to || long > 0 && long < span / 400) {
    const wide = long > 0 ? Math.min(span, long * 12) : span;
    move(e[START] - wide / 3, e[START] + wide * 2 / 3);
  }
}

// ---- what was clicked on --------------------------------------------------
const ms = v => v.toFixed(v !== 0 && Math.abs(v) < 10 ? 3 : 1);
/** @param {Shown} [c] @param {Row} [r] @param {number[]} [e] @param {boolean} [stay] */
function pick(c, r, e, stay) {
  for (const o of shown()) o.picked = null;
  picked.replaceChildren();
  picked.hidden = !e;
  if (e) {
    c.picked = { r, e };
    current = r;
    fold(r.track.kind, false);
    if (!stay) into(e);
    say(e[START]);
    describe(c, r, e);
  }
  dockShown();
  if (e && !stay) r.line.scrollIntoView({ block: "nearest" }); // above the dock
  draw();
}
/** @param {Shown} c @param {Row} r */
function describe(c, r, e) {
  const name = c.data.texts[e[NAME]], list = make("dl");
  const fact = (k, v) => list.append(make("div", {}, make("dt", { textContent: k }), make("dd", { textContent: v })));
  fact("starts", `${ms(e[START])} ms`);
  if (e[END] > e[START]) fact("lasts", `${ms(e[END] - e[START])} ms`);
  if (bounds(e)) fact("known within", `${bounds(e)} ms`);
  for (const [k, v] of facts(c, e)) fact(k, v);
  const zoomTo = make("button", { type: "button", className: "quiet", textContent: "Zoom to it" }), inside = make("button", { type: "button", className: "quiet", textContent: "What took its time" });
  zoomTo.addEventListener("click", () => zoomInto(e[START], e[END]));
  inside.addEventListener("click", () => { range = { from: e[START], to: e[END] }; tell(); });
  picked.append(make("h2", { textContent: name || r.track.name }), make("p", { className: "tl-at", textContent: `${r.track.name}, ${c.word === "Trial" ? "" : c.word.toLowerCase() + ", "}trial ${c.n}` }), list);
  if (e[END] > e[START]) picked.append(make("p", { className: "tl-buttons" }, zoomTo, inside));
  const around = outer(r, e);
  if (around.length) picked.append(make("h3", { textContent: "Lies in" }), ordered(around.map(o => {
    const b = make("button", { type: "button", className: "link", textContent: `${c.data.texts[o[NAME]]}, ${ms(o[END] - o[START])} ms` });
    b.addEventListener("click", () => pick(c, r, o));
    return b;
  })));
  const i = r.track.ev.indexOf(e), stack = (r.track.stacks || {})[i];
  if (stack) picked.append(make("h3", { textContent: "Call stack, the innermost first" }), ordered(stack.map(n => c.data.texts[n])));
  pictures(c, r, e);
}
const ordered = list => make("ol", {}, ...list.map(one => make("li", {}, one)));
const contains = (o, e) => o !== e && o[LANE] < e[LANE] && o[START] <= e[START] && o[END] >= e[END];
// outer lists the events of the row that an event lies in, the innermost first.
/** @param {Row} r */
function outer(r, e) {
  const list = [];
  if (r.track.kind === "request") return list;
  let lane = e[LANE];
  for (let i = r.track.ev.indexOf(e) - 1; i >= 0 && lane > 0; i--) {
    const o = r.track.ev[i];
    if (o[LANE] < lane && contains(o, e)) { list.push(o); lane = o[LANE]; }
  }
  return list;
}

// same is what another trial has of an event: in the row of that name, the event of that name with the same number.
/** @param {Shown} c @param {Row} r */
function same(c, r, e, other) {
  const text = c.data.texts[e[NAME]], row = other.rows.find(o => o.track.kind === r.track.kind && o.track.name === r.track.name);
  if (!row) return null;
  const nth = r.track.ev.filter(o => o[NAME] === e[NAME]).indexOf(e), n = other.data.texts.indexOf(text);
  return row.track.ev.filter(o => o[NAME] === n)[nth] || null;
}

// pictures shows what the screen showed meanwhile, beside the other arm's.
/** @param {Shown} c @param {Row} r */
function pictures(c, r, e) {
  const films = [c, ...shown().filter(o => o !== c)].filter(o => o.data.thumbs.length).sort((a, b) => shown().indexOf(a) - shown().indexOf(b)).map(o => {
    const own = o === c ? e : same(c, r, e, o), [from, to] = own ? [own[START], own[END]] : [e[START], e[END]];
    const list = o.data.thumbs.filter(p => p.t > from && p.t <= to), before = o.data.thumbs.filter(p => p.t <= from).pop();
    if (before) list.unshift(before);
    const few = list.length <= MOST_PICTURES ? list : Array.from({ length: MOST_PICTURES }, (_, i) => list[Math.round(i * (list.length - 1) / (MOST_PICTURES - 1))]);
    const says = `${o.word === "Trial" ? "Trial" : o.word + ", trial"} ${o.n}: ` + (o === c ? "" : own ? "in its own, " : "it has none; at the same time, ") + `${ms(from)} to ${ms(to)} ms` + (few.length < list.length ? `, ${few.length} of ${list.length} pictures` : "");
    return make("figure", { className: o.arm }, make("figcaption", { textContent: says }), Object.assign(make("div", { className: "tl-shots", tabIndex: 0 },
      ...few.map(p => make("figure", {}, make("img", { src: p.u, alt: `screen at ${ms(p.t)} ms`, width: p.w, height: p.h }), make("figcaption", { textContent: `${ms(p.t)} ms, frame ${p.f}` })))), { role: "group", ariaLabel: says }));
  });
  if (films.length) picked.append(make("h3", { textContent: "Screen meanwhile" }), make("div", { className: "tl-films" }, ...films));
}
clicked.push((c, r, e) => pick(c, r, e, true));

// ---- a range, and what took its time --------------------------------------
ranged.push((from, to, done) => { range = { from, to }; if (done) tell(); placeRange(); });
function placeRange() {
  for (const c of shown()) {
    const { from, to } = at(), w = c.axis.clientWidth, { x } = scale(w);
    c.range.hidden = !range || range.to < from || range.from > to;
    if (c.range.hidden) continue;
    const a = Math.max(x(range.from), 0), b = Math.min(x(range.to), w);
    c.range.style.left = c.axis.offsetLeft + a + "px";
    c.range.style.width = Math.max(b - a, 1) + "px";
  }
}
placed.push(placeRange);

// sums adds up the events of a trial in the range: how often, how long, and without what lies in them on their row.
/** @param {Shown} c */
function sums(c) {
  const out = new Map();
  for (const r of c.rows) {
    if (r.line.hidden || ["frame", "memory", "machine", "link"].includes(r.track.kind)) continue; // they are always there
    const nest = ["step", "annotation", "browser", "mark"].includes(r.track.kind), open = [];
    for (let i = timelines.first(r.track.ev, range.from - r.longest); i < r.track.ev.length; i++) {
      const e = r.track.ev[i];
      if (e[START] > range.to) break;
      if (e[END] < range.from) continue;
      const key = r.track.name + "\n" + c.data.texts[e[NAME]];
      let one = out.get(key);
      if (!one) out.set(key, one = { row: r.track.name, name: c.data.texts[e[NAME]], times: 0, total: 0, self: 0 });
      let long = Math.min(e[END], range.to) - Math.max(e[START], range.from);
      const rests = r.track.rests && r.track.rests[i] || [];
      for (let k = 0; k < rests.length; k += 2) long -= Math.max(Math.min(rests[k + 1], range.to) - Math.max(rests[k], range.from), 0);
      one.times++;
      one.total += long;
      one.self += long;
      if (!nest) continue;
      while (open.length && !contains(open[open.length - 1].e, e)) open.pop();
      if (open.length) open[open.length - 1].one.self -= long;
      open.push({ e, one });
    }
  }
  return out;
}

function tell() {
  placeRange();
  taken.replaceChildren();
  taken.hidden = !range;
  dockShown();
  if (!range) return;
  const of = shown().map(c => ({ c, sums: sums(c) })), both = of.length > 1, rows = new Map();
  of.forEach(({ sums }, k) => { for (const [key, one] of sums) { if (!rows.has(key)) rows.set(key, { row: one.row, name: one.name, of: [] }); rows.get(key).of[k] = one; } });
  const list = [...rows.values()].sort((a, b) => Math.max(...b.of.map(o => o ? o.self : 0)) - Math.max(...a.of.map(o => o ? o.self : 0)));
  const zoomTo = make("button", { type: "button", className: "quiet", textContent: "Zoom to it" });
  zoomTo.addEventListener("click", () => zoomInto(range.from, range.to));
  const heads = ["Row", "Name", ...of.flatMap(({ c }) => { const w = both ? c.word + ": " : ""; return [w + "times", w + "ms", w + "by itself, ms"]; }), ...both ? ["Difference, ms"] : []];
  const cells = one => [...of.flatMap((_, k) => { const o = one.of[k]; return o ? [String(o.times), o.total.toFixed(1), o.self.toFixed(1)] : ["", "", ""]; }),
    ...both ? [((one.of[1] || { total: 0 }).total - (one.of[0] || { total: 0 }).total).toFixed(1).replace("-", "−")] : []];
  const table = make("table", { className: "numbers" }, make("thead", {}, make("tr", {}, ...heads.map(t => Object.assign(make("th", { textContent: t }), { scope: "col" })))),
    make("tbody", {}, ...list.slice(0, MOST_ROWS).map(one => make("tr", {}, make("td", { textContent: one.row }), Object.assign(make("th", { textContent: one.name }), { scope: "row" }), ...cells(one).map(t => make("td", { textContent: t }))))));
  labelled(table);
  taken.append(make("h2", { textContent: `What took the time from ${ms(range.from)} to ${ms(range.to)} ms` }),
    make("p", { className: "tl-at", textContent: `${ms(range.to - range.from)} ms; requests and other rows may overlap${list.length > MOST_ROWS ? `; ${MOST_ROWS} of ${list.length} names, the file has all` : ""}` }),
    make("p", { className: "tl-buttons" }, zoomTo), Object.assign(make("div", { className: "scroll", tabIndex: 0 }, table), { role: "group", ariaLabel: "Table of the range" }));
  taken.append(csvButton("range", () => [heads, ...list.map(one => [one.row, one.name, ...cells(one).map(t => t.replace("−", "-"))])]));
}
function zoomInto(from, to) { const pad = Math.max(to - from, 0.02) * 0.03; move(from - pad, to + pad); }
function dockShown() { dock.hidden = taken.hidden && picked.hidden; }
function clear() { range = null; tell(); pick(); }
$("#dock-close").addEventListener("click", () => { clear(); host.focus(); });
const selector = $("#tl-select");
selector.addEventListener("click", () => {
  const on = selector.getAttribute("aria-pressed") !== "true";
  selector.setAttribute("aria-pressed", String(on));
  timelines.select(on);
});

// ---- arrows ---------------------------------------------------------------
// Messages lead from row to row; of a request or a picture that was clicked on, an arrow leads to what belongs to it.
const MOST_ARROWS = 400;
// flowsOf are a trial's flows as rows and events, in the order of their beginnings.
/** @param {Shown} c */
const flowsOf = c => c.data.flows.map(f => {
  const a = c.rows[f[0]], b = c.rows[f[2]], e = a.track.ev[f[1]], o = b.track.ev[f[3]];
  return { a, b, e, o, low: Math.min(e[START], o[START]), high: Math.max(e[START], o[START]) };
}).sort((f, g) => f.low - g.low);
function arrows() {
  const { from, to } = at();
  for (const c of shown()) {
    if (!c.flows) {
      c.flows = flowsOf(c);
      c.messages = c.flows.filter(f => f.a.track.kind === "annotation" && f.b.track.kind === "annotation");
      c.own = { of: null, list: [] };
    }
    const p = c.picked;
    if (c.own.of !== p) c.own = { of: p, list: p ? c.flows.filter(f => f.e === p.e || f.o === p.e) : [] };
    const own = c.own.list;
    if (!c.arrows && !c.messages.length && !own.length) continue;
    if (!c.arrows) {
      c.arrows = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      c.arrows.setAttribute("class", "tl-arrows");
      c.arrows.setAttribute("aria-hidden", "true");
      for (const kind of ["line", "head"]) c.arrows.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "path")).setAttribute("class", kind);
      c.box.append(c.arrows);
    }
    const { x } = scale(c.axis.clientWidth), left = c.axis.offsetLeft;
    let line = "", head = "", n = 0;
    for (const { a, b, e, o, low, high } of own.length ? own : c.messages) {
      if (low > to) break;
      if (a.line.hidden || b.line.hidden || high < from) continue;
      if (++n > MOST_ARROWS) break;
      const start = a.track.kind === "request" ? e[END] : e[START], x1 = left + x(start), x2 = left + x(o[START]), y1 = timelines.top(a, e), y2 = timelines.top(b, o);
      const long = Math.hypot(x2 - x1, y2 - y1) || 1, ux = (x2 - x1) / long * 7, uy = (y2 - y1) / long * 7;
      line += `M${x1.toFixed(1)} ${y1.toFixed(1)}L${x2.toFixed(1)} ${y2.toFixed(1)}`;
      head += `M${x2.toFixed(1)} ${y2.toFixed(1)}l${(-ux - uy / 2).toFixed(1)} ${(-uy + ux / 2).toFixed(1)}l${uy.toFixed(1)} ${(-ux).toFixed(1)}Z`;
    }
    c.arrows.children[0].setAttribute("d", line);
    c.arrows.children[1].setAttribute("d", head);
    c.arrows.style.clipPath = `inset(0 0 0 ${left}px)`;
  }
}
drawn.push(arrows);

// ---- keys -----------------------------------------------------------------
const visible = () => shown().flatMap(c => c.rows.filter(r => !r.line.hidden));
function row(on) {
  const list = visible(), i = list.indexOf(current);
  if (!list.length) return;
  current = list[i < 0 ? on > 0 ? 0 : list.length - 1 : Math.min(Math.max(i + on, 0), list.length - 1)];
  current.line.scrollIntoView({ block: "nearest" });
  for (const r of list) r.line.classList.toggle("current", r === current);
  $("#at").textContent = `${current.track.name}, trial ${current.c.n}: ${current.track.ev.length} events`;
}
function event(on) {
  if (!current) row(1);
  if (!current) return;
  const list = current.track.ev, p = current.c.picked, i = p && p.r === current ? list.indexOf(p.e) + on : Math.max(timelines.first(list, at().cursor === null ? at().from : at().cursor), 0);
  if (list[i]) pick(current.c, current, list[i]);
}
function edge(which) {
  const t = at().cursor;
  if (t === null) return;
  range = range ? { ...range, [which]: t } : { from: at().from, to: at().to, [which]: t };
  if (range.from > range.to) range = { from: range.to, to: range.from };
  tell();
}
Object.assign(keys, { "/": () => search.focus(), n: () => next(1), N: () => next(-1), ArrowDown: () => row(1), ArrowUp: () => row(-1), "<": () => event(-1), ">": () => event(1),
  "[": () => edge("from"), "]": () => edge("to"), Escape: clear,
  z: () => { const p = shown().map(c => c.picked).find(Boolean); if (range) zoomInto(range.from, range.to); else if (p) zoomInto(p.e[START], p.e[END]); } });
built.push(() => { range = null; current = null; taken.hidden = picked.hidden = dock.hidden = true; filterRows(); look(); });
built[0]();
// #12&range=100-400&find=app.js&rows=app in the address selects that range, the first event that is found, and rows;
// view=100-400 only shows a time. Times before the start are negative: range=-50-400.
const said = new URLSearchParams(location.hash.replace(/^#\d*&?/, "")), ofHash = name => (/^(-?[\d.]+)-(-?[\d.]+)$/.exec(said.get(name)) || []).slice(1).map(Number);
const [from, to] = ofHash("range"), [left, right] = ofHash("view");
if (said.get("rows")) { filter.value = said.get("rows"); filterRows(); }
if (said.get("find")) { search.value = said.get("find"); look(); next(1); }
if (to > from) { range = { from, to }; tell(); zoomInto(from, to); }
if (right > left) move(left, right);
})();
