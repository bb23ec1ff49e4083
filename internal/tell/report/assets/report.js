"use strict";
(() => {
/** @param {string} s @param {ParentNode} from */
const $ = (s, from = document) => from.querySelector(s);
/** @param {string} s @param {ParentNode} from */
const all = (s, from = document) => [...from.querySelectorAll(s)];
/** @type {Held<"Data">} */
const data = JSON.parse($("#data").textContent);
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const make = (tag, props = {}, ...kids) => { const e = Object.assign(document.createElement(tag), props); e.append(...kids); return e; };
const thousands = s => s.replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
const fixed = (v, digits) => { const [whole, part] = Math.abs(v).toFixed(digits).split("."); return (v < 0 ? "−" : "") + thousands(whole) + (part ? "." + part : ""); };

// Where the panel serves the report, there is a way back to it.
const back = $("#back");
if (/^https?:$/.test(location.protocol) && /^\/runs\/[^/]+\/(report|cell-\d+)\.html$/.test(location.pathname)) {
  const series = ["name", "page"].filter(kind => back.dataset[kind]).map(kind => [kind, back.dataset[kind]]);
  back.firstElementChild.href = "/";
  const run = location.pathname.split("/")[2];
  back.children[1].href = `/run?run=${run}${back.dataset.cell ? `&cell=${encodeURIComponent(back.dataset.cell)}` : ""}`;
  back.lastElementChild.href = `/history?${new URLSearchParams(series)}`;
  back.hidden = false;
  const formats = [["junit", "JUnit"], ["csv", "CSV"], ["markdown", "Markdown"], ["perfherder", "Perfherder"], ["picture", "Picture"]];
  formats.forEach(([format, textContent], i) => $("#exports").append(i ? ", " : "", make("a", { href: `/api/v1/runs/${run}/export?format=${format}&report=${encodeURIComponent(location.href.split("#")[0])}`, textContent })));
  $("#exports").hidden = false;
  document.querySelectorAll(".stepwise").forEach(p => { p.firstElementChild.href = `/trial?run=${run}&trial=${p.dataset.trial}`; p.hidden = false; });
}

// The theme follows the system until somebody chooses; the choice is kept where the browser allows it.
const theme = $("#theme");
const system = matchMedia("(prefers-color-scheme: dark)");
const recall = () => { try { return localStorage.getItem("eidetic-theme"); } catch { return null; } };
const dark = () => (document.documentElement.dataset.theme || (system.matches ? "dark" : "light")) === "dark";
const label = () => { theme.textContent = dark() ? "Light" : "Dark"; theme.setAttribute("aria-label", `Switch to the ${dark() ? "light" : "dark"} theme`); };
if (["light", "dark"].includes(recall())) document.documentElement.dataset.theme = recall();
theme.hidden = false;
label();

// ---- progress chart -------------------------------------------------------
// Only the median is a series of uPlot's: each trial has frame times of its
// own, and joining them onto one axis would multiply the points by the trials.
let plot = null, measure = "load", near = null;
const host = $("#chart");
const curves = () => data.curves.filter(c => c[measure]);
const colour = c => !c.valid ? css("--bad") : css(c.arm === "treatment" ? "--data-2" : "--data");

// index is the last step of c at or before x.
function index(c, x) {
  let low = 0, high = c.t.length - 1;
  while (low < high) { const mid = (low + high + 1) >> 1; if (c.t[mid] <= x) low = mid; else high = mid - 1; }
  return low;
}

function trace(u, c, width, alpha) {
  const { ctx } = u, v = c[measure];
  ctx.save();
  ctx.beginPath();
  ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
  ctx.clip();
  ctx.beginPath();
  for (let i = 0; i < v.length; i++) {
    const x = u.valToPos(c.t[i], "x", true), y = u.valToPos(v[i], "y", true);
    if (i === 0) ctx.moveTo(x, y); else { ctx.lineTo(x, u.valToPos(v[i - 1], "y", true)); ctx.lineTo(x, y); }
  }
  ctx.strokeStyle = c.ink || colour(c);
  ctx.globalAlpha = alpha;
  ctx.lineWidth = width * devicePixelRatio;
  const dash = c.valid ? c.dash : [5, 4];
  if (dash) ctx.setLineDash(dash.map(n => n * devicePixelRatio));
  ctx.lineJoin = "round";
  ctx.stroke();
  ctx.restore();
}

// nearest finds the trial whose line passes within 24 pixels of the pointer.
function nearest(u) {
  const { left, top } = u.cursor;
  if (left == null || left < 0) return null;
  const x = u.posToVal(left, "x");
  let best = null, reach = 24;
  for (const c of curves()) {
    const i = index(c, x), v = c[measure];
    const y = u.valToPos(v[i], "y");
    let d = Math.abs(y - top);
    // A riser is as near as its horizontal distance.
    for (const k of [i, i + 1]) {
      if (k < 1 || k >= v.length) continue;
      const a = u.valToPos(v[k - 1], "y"), b = u.valToPos(v[k], "y");
      if (top >= Math.min(a, b) && top <= Math.max(a, b)) d = Math.min(d, Math.abs(u.valToPos(c.t[k], "x") - left));
    }
    if (d < reach) { reach = d; best = { c, i, x }; }
  }
  return best;
}

function draw() {
  if (!host || typeof uPlot === "undefined") return;
  const zoom = plot && plot.zoomed ? [plot.scales.x.min, plot.scales.x.max] : null;
  if (plot) plot.destroy();
  near = null;
  const [median, other] = data.medians.map(m => m[measure]), list = curves();
  const end = Math.max(1, ...list.map(c => c.t[c.t.length - 1]));
  // Past the last change of all, nothing is to be seen; a little of it shows that.
  const last = Math.max(...list.map(c => { const v = c[measure]; let i = v.length - 1; while (i > 0 && v[i - 1] === v[v.length - 1]) i--; return c.t[i]; }));
  const right = Math.min(end, last * 1.06 + 20);
  const xs = median.t.slice(), ys = median.v.slice();
  if (xs.length && xs[xs.length - 1] < end) { xs.push(end); ys.push(ys[ys.length - 1]); }
  const tip = make("div", { className: "tip", hidden: true });
  const axis = { stroke: css("--soft"), font: `12px ${css("--sans")}`, grid: { stroke: css("--line"), width: 1 }, ticks: { stroke: css("--line"), width: 1, size: 5 } };
  const many = list.length > 24;
  plot = new uPlot({
    width: Math.max(260, host.clientWidth - 20), height: host.clientWidth < 600 ? 270 : 350,
    legend: { show: false },
    scales: { x: { time: false, range: (u, a, b) => u.zoomed ? [a, b] : [Math.min(0, ...list.map(c => c.t[0])), right] }, y: { range: [0, 102] } },
    axes: [
      { ...axis, values: (u, v) => v.map(t => thousands(String(t))), label: "ms since the start", labelFont: axis.font, labelSize: 22, size: 34 },
      { ...axis, values: (u, v) => v.map(p => p + " %"), size: 56 },
    ],
    series: [{}, { stroke: css("--ink"), width: 3, paths: uPlot.paths.stepped({ align: 1 }), points: { show: false } }],
    cursor: { y: false, points: { show: false }, drag: { x: true, y: false, setScale: true } },
    hooks: {
      drawAxes: [u => { for (const c of list) trace(u, c, 1.25, near && near.c === c ? 0 : many ? 0.35 : 0.6); }],
      // The treatment's median; the control's is a series.
      draw: [u => {
        if (other && other.t.length) trace(u, { t: [...other.t, end], [measure]: [...other.v, other.v[other.v.length - 1]], valid: true, ink: css("--ink"), dash: [11, 6] }, 3, 1);
        if (near) trace(u, near.c, 2.75, 1);
      }],
      setCursor: [u => {
        const was = near && near.c;
        near = nearest(u);
        if ((near && near.c) !== was) u.redraw(false);
        tip.hidden = !near;
        u.over.style.cursor = near ? "pointer" : "crosshair";
        if (near) {
          const { c, i, x } = near;
          tip.replaceChildren(make("b", { textContent: `Trial ${c.n}${other ? ` (${c.arm})` : ""}` }), ` · frame ${thousands(String(c.f[i]))}${c.valid ? "" : " · invalid"}`, make("br"), `${fixed(Math.max(x, c.t[i]), 0)} ms · ${fixed(c[measure][i], 1)} %`);
          const half = tip.offsetWidth / 2 || 60, left = Math.min(Math.max(u.cursor.left, half), u.over.clientWidth - half);
          tip.style.left = left + "px";
          tip.style.top = Math.max(u.cursor.top, 56) + "px";
        }
      }],
      setSelect: [u => { if (u.select.width > 2) u.zoomed = true; }],
      ready: [u => {
        u.over.append(tip);
        let down = null;
        u.over.addEventListener("mousedown", e => { down = [e.clientX, e.clientY]; });
        u.over.addEventListener("click", e => { if (near && down && Math.hypot(e.clientX - down[0], e.clientY - down[1]) < 3) show(near.c.n); });
        u.over.addEventListener("dblclick", () => { u.zoomed = false; u.setScale("x", { min: 0, max: right }); });
      }],
    },
  }, [xs, ys], host);
  if (zoom) { plot.zoomed = true; plot.setScale("x", { min: zoom[0], max: zoom[1] }); }
  host.dataset.drawn = list.length;
}

const choose = $(".switch");
if (choose && data.curves.some(c => c.load) && data.curves.some(c => c.visual)) {
  choose.hidden = false;
  choose.addEventListener("click", e => {
    const b = e.target.closest("button");
    if (!b) return;
    measure = b.dataset.measure;
    for (const o of all("button", choose)) o.setAttribute("aria-pressed", String(o === b));
    for (const p of all("[data-for]")) p.hidden = p.dataset.for !== measure;
    draw();
  });
}
if (host) { draw(); let width = host.clientWidth; new ResizeObserver(() => { if (host.clientWidth !== width) { width = host.clientWidth; draw(); } }).observe(host); }
const restyle = () => { label(); draw(); };
system.addEventListener("change", restyle);
theme.addEventListener("click", () => {
  const next = dark() ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  try { localStorage.setItem("eidetic-theme", next); } catch { /* a page from disk may not keep anything */ }
  restyle();
});

// ---- replay logs ----------------------------------------------------------
const START = 0, FIRST = 1, TOOK = 2, STATUS = 3, BYTES = 4, SCORE = 5, METHOD = 7, URL_ = 8, PROTOCOL = 9, STAGE = 10, NOTE = 11;
const text = i => data.texts[i] || "";
const bytes = n => n < 1000 ? n + " B" : n < 1e6 ? fixed(n / 1e3, n < 1e4 ? 1 : 0) + " kB" : fixed(n / 1e6, 2) + " MB";
const NS = "http://www.w3.org/2000/svg";

function fall(row, from, to) {
  const svg = document.createElementNS(NS, "svg");
  svg.setAttribute("width", "100%"); svg.setAttribute("height", "10"); svg.setAttribute("aria-hidden", "true");
  const x = v => 100 * (v - from) / (to - from || 1);
  const rect = (a, b, name) => {
    const r = document.createElementNS(NS, "rect");
    r.setAttribute("x", x(a).toFixed(2) + "%"); r.setAttribute("width", Math.max(0.6, x(b) - x(a)).toFixed(2) + "%");
    r.setAttribute("height", "10"); r.setAttribute("class", name); svg.append(r);
  };
  rect(row[START], row[START] + row[FIRST], "wait");
  rect(row[START] + row[FIRST], row[START] + Math.max(row[TOOK], row[FIRST]), "got");
  return svg;
}

function address(url) {
  const cell = make("td", { className: "url", title: url });
  const cut = /^(https?:\/\/[^/]*)(.*)$/.exec(url);
  if (cut) cell.append(make("i", { textContent: cut[1].replace(/^https?:\/\//, "") }), cut[2] || "/"); else cell.append(url);
  return cell;
}

function log(section) {
  const found = data.logs.find(l => l.n === Number(section.dataset.trial)), box = $(".log-table", section);
  if (!found || !box || box.dataset.done) return;
  box.dataset.done = "yes";
  const rows = found.rows.slice().sort((a, b) => a[START] - b[START]);
  const from = rows.reduce((m, r) => Math.min(m, r[START]), Infinity), to = rows.reduce((m, r) => Math.max(m, r[START] + r[TOOK], r[START] + r[FIRST]), -Infinity);
  const body = make("tbody");
  const heads = [["Start", "r"], ["Method"], ["URL"], ["Protocol"], ["Stage"], ["Score", "r"], ["Status", "r"], ["Bytes", "r"], ["First byte", "r"], ["Total", "r"], ["Waiting and receiving", "fall"]];
  box.replaceChildren(make("table", {}, make("thead", {}, make("tr", {}, ...heads.map(([t, c]) => make("th", { textContent: t, className: c || "", scope: "col" })))), body));
  const tools = $(".log-tools", section), chips = $(".chips", tools), input = $("input", tools), shown = $(".shown", tools);
  tools.hidden = false;
  const stages = new Map();
  for (const r of rows) stages.set(text(r[STAGE]), (stages.get(text(r[STAGE])) || 0) + 1);
  let stage = "";
  for (const [name, n] of stages) chips.append(make("button", { type: "button", textContent: `${name} ${n}`, value: name, ariaPressed: "false" }));
  const fill = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const kept = rows.filter(r => (!stage || text(r[STAGE]) === stage) && words.every(w => [METHOD, URL_, PROTOCOL, STAGE, NOTE].some(k => text(r[k]).toLowerCase().includes(w)) || String(r[STATUS]).startsWith(w)));
    const out = document.createDocumentFragment();
    for (const r of kept) {
      const bad = text(r[STAGE]) === "miss";
      const tr = make("tr", { className: bad ? "miss" : "" },
        make("td", { className: "r", textContent: fixed(r[START], 1) }), make("td", { textContent: text(r[METHOD]) }), address(text(r[URL_])), make("td", { textContent: text(r[PROTOCOL]) }),
        make("td", { textContent: text(r[STAGE]) }), make("td", { className: "r", textContent: r[SCORE] === 1 ? "1" : r[SCORE].toFixed(2) }), make("td", { className: "r", textContent: r[STATUS] || "–" }),
        make("td", { className: "r", textContent: bytes(r[BYTES]) }), make("td", { className: "r", textContent: fixed(r[FIRST], 1) }), make("td", { className: "r", textContent: fixed(r[TOOK], 1) }),
        make("td", { className: "fall" }, fall(r, from, to)));
      out.append(tr);
      if (text(r[NOTE])) out.append(make("tr", { className: bad ? "miss" : "" }, make("td", { className: "note", colSpan: heads.length, textContent: text(r[NOTE]) })));
    }
    body.replaceChildren(out);
    shown.textContent = `${kept.length} of ${rows.length} requests` + (found.more ? `; ${found.more} more are in the file` : "");
  };
  input.addEventListener("input", fill);
  chips.addEventListener("click", e => {
    const b = e.target.closest("button");
    if (!b) return;
    stage = stage === b.value ? "" : b.value;
    for (const o of all("button", chips)) o.ariaPressed = String(o.value === stage);
    fill();
  });
  box.after(csvButton(`trial-${found.n}-requests`, () => [["start_ms", "method", "url", "protocol", "stage", "score", "status", "bytes", "first_byte_ms", "total_ms", "note"],
    ...rows.map(r => [r[START], text(r[METHOD]), text(r[URL_]), text(r[PROTOCOL]), text(r[STAGE]), r[SCORE], r[STATUS], r[BYTES], r[FIRST], r[TOOK], text(r[NOTE])])]));
  if (found.note) box.before(make("p", { className: "alert warn", textContent: found.note }));
  fill();
}

// ---- files ----------------------------------------------------------------
const place = (what, rows, text) => $(`[data-csv="${what}"]`)?.append(csvButton(what, rows, text));
place("curves", () => [["trial", "arm", "valid", "frame", "time_ms", "load_percent", "visual_progress_percent"],
  ...data.curves.flatMap(c => c.t.map((t, i) => [c.n, c.arm, c.valid, c.f[i], t, c.load?.[i], c.visual?.[i]]))], "Download all curves as CSV");
place("trials", () => [["trial", "arm", "valid", ...data.metrics], ...data.trials.map(t => [t.n, t.arm, t.valid, ...t.values])], "Download all trials as CSV");
for (const s of data.steps) {
  $("figure", document.getElementById(s.anchor)).append(csvButton(s.anchor, () => [s.pinged ? ["arm", "answered_after_ms", "share_percent"] : ["trial", "arm", "valid", "time_ms", "load_percent"],
    ...s.curves.flatMap(c => c.t.map((t, i) => s.pinged ? [c.arm, t, c.v[i]] : [c.n, c.arm, c.valid, t, c.v[i]]))]));
}

// ---- films ----------------------------------------------------------------
// player shows the films of a figure on one clock, in ms since the start of each. A film begins a little before that, and an instant
// that one of them does not have is shown as its first or last picture, and said.
const FRAME = 1000 / 60;
function player(figure, strips) {
  figure.dataset.ready = "yes";
  const box = $(".controls", figure);
  const films = all(".one", figure).map((e, i) => ({
    e, video: $("video", e), still: $(".still", e), says: $(".says", e), lead: Number(e.dataset.lead), curve: data.curves.find(c => c.n === Number(e.dataset.film)),
    cells: strips[i] ? all("li[data-at]", strips[i]).map(li => ({ at: Number(li.dataset.at), img: $("img", li) })) : [],
  }));
  // The last point of a curve is where it ends, and changes nothing.
  const differs = (list, i) => list && list[i] !== list[i - 1];
  const changes = f => f.curve ? f.curve.t.filter((_, i) => i && (differs(f.curve.load, i) || differs(f.curve.visual, i))) : f.cells.filter(c => c.img).map(c => c.at);
  const lastOf = f => Math.max(0, ...changes(f));
  const from = -Math.max(...films.map(f => f.video ? f.lead : 0));
  let to = Math.max(...films.map(lastOf)) + 300, now = Math.min(...films.map(lastOf)) || to, playing = 0, rate = 1, touched = false;
  const button = (text, name, act) => { const b = make("button", { type: "button", textContent: text, onclick: act }); b.setAttribute("aria-label", name); return b; };
  const which = films.length > 1 ? "both films" : "the film";
  const scrub = make("input", { type: "range", min: from, max: to, step: FRAME, oninput: () => { pause(); seek(Number(scrub.value)); } });
  scrub.setAttribute("aria-label", `Time of ${which}, in ms since the start`);
  const play = button("▶", `Play ${which}`, () => playing ? pause() : start());
  const clock = make("output");
  const speeds = make("span", { className: "speeds" }, ...[1, 0.25, 0.1].map(v => { const b = button(v + "×", `Speed ${v}`, () => { rate = v; for (const o of speeds.children) o.ariaPressed = String(o === b); if (playing) start(); }); b.ariaPressed = String(v === 1); return b; }));
  const jump = on => { pause(); const times = films.flatMap(changes).sort((a, b) => a - b); const t = on > 0 ? times.find(v => v > now + 0.5) : times.filter(v => v < now - 0.5).pop(); seek(t ?? (on > 0 ? to : from)); };
  const step = on => { pause(); seek(now + on * FRAME); };
  box.append(play, scrub, clock, make("span", { className: "steps" }, button("«", "Previous change", () => jump(-1)), button("‹", "One frame back", () => step(-1)), button("›", "One frame on", () => step(1)), button("»", "Next change", () => jump(1))), speeds);
  box.hidden = false;

  function seek(t) {
    now = Math.min(Math.max(t, from), to);
    for (const f of films) {
      if (f.video && f.video.readyState) f.video.currentTime = Math.min(Math.max((now + f.lead) / 1000 + 0.001, 0), f.video.duration || 0);
      if (f.still) { const c = f.cells.filter(c => c.at <= now).pop(); f.still.hidden = !(c && c.img); if (c && c.img) f.still.src = c.img.src; }
    }
    tell();
  }
  function tell() {
    scrub.value = now;
    const text = `${fixed(now, 0)} ms`;
    clock.textContent = text;
    scrub.setAttribute("aria-valuetext", text);
    for (const f of films) {
      const c = f.curve, i = c ? index(c, now) : -1, measured = c && (c.load || c.visual);
      f.says.textContent = now < -f.lead - FRAME ? "before its film" : now < 0 ? "before the start" : !c ? "" : now < c.t[Math.min(1, c.t.length - 1)] ? "nothing yet"
        : now >= lastOf(f) ? `finished, frame ${thousands(String(c.f[i]))}` : `frame ${thousands(String(c.f[i]))}, ${fixed(measured[i], 0)} % as at the end`;
    }
  }
  function pause() {
    touched = true;
    if (!playing) return;
    cancelAnimationFrame(playing);
    playing = 0;
    play.textContent = "▶";
    play.setAttribute("aria-label", `Play ${which}`);
    for (const f of films) f.video?.pause();
    seek(now);
  }
  function start() {
    if (!touched || now >= to - FRAME) now = from;
    touched = true;
    cancelAnimationFrame(playing);
    play.textContent = "❚❚";
    play.setAttribute("aria-label", `Pause ${which}`);
    seek(now);
    let last = performance.now();
    const tick = at => {
      now = Math.min(now + (at - last) * rate, to);
      last = at;
      for (const f of films) {
        const video = f.video, want = (now + f.lead) / 1000;
        if (!video || !video.readyState) { if (f.still) { const c = f.cells.filter(c => c.at <= now).pop(); f.still.hidden = !(c && c.img); if (c && c.img && f.still.src !== c.img.src) f.still.src = c.img.src; } continue; }
        if (want < 0 || want >= video.duration) { video.pause(); continue; }
        if (video.paused) { video.playbackRate = rate; video.currentTime = want; video.play().catch(() => {}); } else if (Math.abs(video.currentTime - want) > 0.08) { video.playbackRate = rate; video.currentTime = want; }
      }
      tell();
      if (now >= to) pause(); else playing = requestAnimationFrame(tick);
    };
    for (const f of films) if (f.video) f.video.playbackRate = rate;
    playing = requestAnimationFrame(tick);
  }
  const area = $(".films", figure);
  area.tabIndex = 0;
  area.setAttribute("role", "group");
  area.setAttribute("aria-label", "Films: space plays, comma and full stop go one frame, brackets go to the changes, Home and End to the ends");
  figure.addEventListener("keydown", e => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const bare = e.target === area;
    const act = { k: () => play.click(), ",": () => step(-1), ".": () => step(1), "[": () => jump(-1), "]": () => jump(1),
      ...bare && { " ": () => play.click(), ArrowLeft: () => step(-1), ArrowRight: () => step(1), Home: () => { pause(); seek(from); }, End: () => { pause(); seek(to); } } }[e.key];
    if (act) { e.preventDefault(); act(); }
  });
  for (const strip of strips) strip.addEventListener("click", e => { const li = e.target.closest("li[data-at]"); if (li) { pause(); seek(Number(li.dataset.at)); } });
  for (const f of films) {
    if (!f.video) continue;
    if (f.video.preload === "none") f.video.preload = "auto";
    const ready = () => { to = Math.max(to, f.video.duration * 1000 - f.lead); scrub.max = to; seek(touched || lastOf(f) ? now : to); };
    if (f.video.readyState) ready(); else f.video.addEventListener("loadedmetadata", ready, { once: true });
  }
  tell();
}
const seen = $("#top .player");
if (seen) player(seen, all("#top ol.film"));

for (const table of all("table.numbers, .step-data table, .reach")) labelled(table);

// ---- trials ---------------------------------------------------------------
function open(section) {
  log(section);
  const events = $(".events", section);
  if (events && !$("[data-download]", events)) events.append(csvButton(`trial-${section.dataset.trial}-events`, () => tableRows($("table", events))));
  const figure = $(".player", section);
  if (figure && !figure.dataset.ready) player(figure, all("ol.film", section));
}
for (const section of all("details.trial")) section.addEventListener("toggle", () => { if (section.open) open(section); });
function show(n) {
  const section = document.getElementById("trial-" + n);
  if (!section) return;
  section.open = true;
  section.scrollIntoView();
  $("summary", section).focus({ preventScroll: true });
}
const follow = () => { const m = /^#trial-(\d+)$/.exec(location.hash); if (m) show(m[1]); };
addEventListener("hashchange", follow);
follow();
const button = $("#open-all");
if (button) {
  button.hidden = false;
  button.addEventListener("click", () => {
    const opening = button.textContent === "Open all";
    for (const section of all("details.trial")) section.open = opening;
    button.textContent = opening ? "Close all" : "Open all";
  });
}
})();
