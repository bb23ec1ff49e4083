// What a person asks of a device between runs: to be filmed, recorded or qualified, or what its screen's noise is.
import { $, call, make, runOf } from "./common.js";

const words = { film: "Film", record: "Recording", qualify: "Qualification", noise: "Noise" };
const over = e => !e || ["none", "done", "failed", "stopped"].includes(e.state);
const from = v => `${Math.max(0, Math.round((Date.parse(v) - Date.now()) / 1000))} s`;

// says is the state of an errand in words.
function says(e) {
  const count = [e.frames && `${e.frames} frames`, e.requests && `${e.requests} requests`].filter(Boolean).join(", ");
  const what = { waiting: e.doing, working: e.doing, keeping: e.doing, done: e.noise ? e.noise.floor : "done", failed: e.error, stopped: e.error }[e.state];
  return [`${words[e.do]}: ${what}`, count, e.ends && e.state !== "keeping" && `ends by itself in ${from(e.ends)}`, e.note].filter(Boolean).join("; ");
}

// result leads to what was kept.
function result(e) {
  if (e.recording) return [make("a", { href: `/recordings?name=${encodeURIComponent(e.recording)}`, textContent: e.recording })];
  if (e.noise) return [`Seen for certain is a change ${e.noise.sees}. ${e.noise.screen}.`, ...e.noise.too_noisy ? [make("strong", { textContent: " Too noisy for a run." })] : []];
  if (!e.run) return [];
  const file = (name, textContent) => make("a", { href: `/api/v1/runs/${encodeURIComponent(e.run)}/artifacts/${name}`, textContent });
  if (e.do === "qualify") return [make("a", { href: `/runs/${encodeURIComponent(e.run)}/report.html`, textContent: "Its report" }), " · ", make("a", { href: runOf(e.run), textContent: "in the list" })];
  return [make("a", { href: `/trial?run=${encodeURIComponent(e.run)}`, textContent: "Look at it frame by frame" }), " · ", file("trials/001/evidence.webm", "video"), " · ", file("trials/001/screen.reel", "reel"), " · ", make("a", { href: runOf(e.run), textContent: "in the list" })];
}

// errands shows the forms of a device, and how what was asked last goes. can lists what may be asked.
export function errands(device, can) {
  const base = `${device}/errand`;
  let last = null, timer = 0, shown = "";
  const failed = e => { $("errand-says").textContent = e.message; };

  function show(e) {
    last = e;
    const busy = !over(e);
    for (const b of document.querySelectorAll("#errand [data-do]")) { b.disabled = busy; b.hidden = !can.includes(b.dataset.do); }
    $("trigger").hidden = e.state !== "waiting" || e.do !== "film";
    $("keep").hidden = !busy || !["film", "record"].includes(e.do) || e.state !== "working";
    $("cancel").hidden = !busy;
    if (e.state === "none") return;
    $("errand-says").textContent = says(e);
    const key = JSON.stringify([e.state, e.run, e.recording, e.noise]);
    if (key !== shown) { shown = key; $("errand-result").replaceChildren(...e.state === "done" ? result(e) : []); }
  }

  async function look() {
    clearTimeout(timer);
    if (!document.hidden) {
      try { show(await call(base)); } catch (e) { if (e.status === 401) return; failed(e); }
    }
    timer = setTimeout(look, over(last) ? 3000 : 700);
  }

  async function ask(body) {
    try {
      show(await call(base, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) }));
      look();
    } catch (e) { failed(e); }
  }
  const tell = (path, method) => async () => { try { show(await call(base + path, { method })); look(); } catch (e) { failed(e); } };

  $("errand").hidden = !can.length;
  if (!can.length) return;
  $("errand").addEventListener("submit", event => {
    event.preventDefault();
    const form = event.target.elements, doing = event.submitter.dataset.do;
    const body = { do: doing };
    if (form.title.value) body.name = form.title.value;
    if (doing === "film") { body.seconds = Number(form.seconds.value); body.pre_roll_s = Number(form.before.value); }
    ask(body);
  });
  $("trigger").addEventListener("click", tell("/trigger", "POST"));
  $("keep").addEventListener("click", tell("?keep=true", "DELETE"));
  $("cancel").addEventListener("click", tell("", "DELETE"));
  document.addEventListener("visibilitychange", look);
  look();
}
