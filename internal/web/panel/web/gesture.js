// A person's gesture, recorded as a plan's step replay reads it: JSON lines, the size of the
// field and then one place a line. Nothing leaves the browser but the file that is saved.
import { $ } from "./common.js";

const pad = $("pad"), picture = pad.firstElementChild;
const mostSamples = 60000, longest = 60000; // as control/gesture reads them
let made = null; // { id, start, width, height, samples }

const place = e => { const box = pad.getBoundingClientRect(); return { at: e.timeStamp, x: e.clientX - box.left, y: e.clientY - box.top }; };
const round = v => Math.round(v * 100) / 100;
const inside = (v, size) => round(Math.min(Math.max(v, 0), size - 1));

function svg(tag, attributes) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
  return e;
}

function draw() {
  const { samples } = made, last = samples.at(-1);
  picture.replaceChildren(svg("path", { d: `M${samples.map(s => `${round(s.x)} ${round(s.y)}`).join("L")}` }), svg("circle", { cx: last.x, cy: last.y, r: 7 }));
}

// text is the file. Times count from the first place, and never go back.
function text() {
  const { samples, width, height } = made;
  /** @type {object[]} */
  const lines = [{ gesture: 1, width, height }];
  let before = 0;
  for (const s of samples) {
    before = Math.max(before, round(s.at - samples[0].at));
    lines.push({ t_ms: before, x: inside(s.x, width), y: inside(s.y, height) });
  }
  return lines.map(line => JSON.stringify(line) + "\n").join("");
}

function offer() {
  const name = ($("name").value.trim() || "fling").replace(/[^\w .-]+/g, "-").replace(/^\.+/, "").replace(/\.jsonl$/, "");
  $("save").download = `${name}.jsonl`;
  $("save").href = "data:application/jsonl;charset=utf-8," + encodeURIComponent(text());
}

pad.addEventListener("pointerdown", e => {
  if (made && !made.done || e.button > 0) return; // the first pointer counts
  e.preventDefault();
  try { pad.setPointerCapture(e.pointerId); } catch { /* the pointer has gone already */ }
  made = { id: e.pointerId, width: Math.round(pad.clientWidth), height: Math.round(pad.clientHeight), samples: [place(e)] };
  $("keep").hidden = true;
  $("said").textContent = "Recording …";
  draw();
});
pad.addEventListener("pointermove", e => {
  if (!made || made.done || e.pointerId !== made.id) return;
  const all = e.getCoalescedEvents?.() || [];
  for (const one of all.length ? all : [e]) if (made.samples.length < mostSamples) made.samples.push(place(one));
  draw();
});
pad.addEventListener("pointerup", e => {
  if (!made || made.done || e.pointerId !== made.id) return;
  if (made.samples.length < mostSamples) made.samples.push(place(e));
  made.done = true;
  draw();
  const { samples, width, height } = made, took = Math.round(samples.at(-1).at - samples[0].at);
  const wrong = took > longest ? "It took longer than a minute: make a shorter one." : "";
  $("said").textContent = `${samples.length} places in ${took} ms on a field of ${width}×${height}. ${wrong || "Make another to replace it."}`;
  $("keep").hidden = !!wrong;
  if (!wrong) offer();
});
pad.addEventListener("pointercancel", e => {
  if (!made || made.done || e.pointerId !== made.id) return;
  made = null;
  picture.replaceChildren();
  $("said").textContent = "The system has taken the gesture for one of its own: begin farther from the screen’s edge.";
});
$("name").addEventListener("input", offer);
$("keep").addEventListener("submit", e => { e.preventDefault(); $("save").click(); });
$("whole").addEventListener("click", () => {
  pad.requestFullscreen?.().catch(() => { $("said").textContent = "This browser does not give the field the whole screen."; });
});
