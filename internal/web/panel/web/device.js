// What a device shows now, and input for it between runs. Everybody sees the picture; one window at a
// time has the controls. All text from the device is inserted as text.
import { $, call, make, signIn, when } from "./common.js";
import { errands } from "./errand.js";
import { live } from "./live.js";

const name = new URLSearchParams(location.search).get("name") || "";
/** @type {`/api/v1/devices/${string}`} */
const device = `/api/v1/devices/${encodeURIComponent(name)}`;
const own = [...crypto.getRandomValues(new Uint8Array(8))].map(b => b.toString(16).padStart(2, "0")).join("");
let asks = false, mine = false, stopped = false, kept = 0, view = null;

// say writes what is the matter, and with what it goes on.
const say = (text, ...more) => { if ($("state").dataset.says !== text) { $("state").dataset.says = text; $("state").replaceChildren(text, ...more); } };
const list = textContent => [" ", make("a", { href: "/", textContent })];

// look opens the live view; a window that nobody sees has none.
function look() {
  if (document.hidden || stopped) { view?.close(); view = null; return; }
  view ||= live(`${device}/view`, $("screen"), { shows, paces, problem, ended });
}

let run = false;
const state = () => say(run ? "A run uses the device: this is its film, and its input is locked." : mine ? "You have the controls." : "Live. Nobody here has the controls.");

// shows is told of each picture when it is drawn.
function shows(head) {
  if (run !== !!head.run) { run = !!head.run; if (run) lose(); }
  $("screen").hidden = false;
  $("screen").setAttribute("aria-label", run ? `The screen of ${name} in a run` : `The screen of ${name}`);
  $("take").disabled = run;
  state();
  const at = performance.now();
  for (const change of head.changes || []) seen.push({ change, at });
  seen.splice(0, seen.length - 500);
  judge();
}

// paces is told how many pictures were drawn in the last second, and how long one of them took to get here.
function paces(rate, delay) {
  const text = rate > 1 ? `${rate} pictures a second${delay ? `, ${ms(delay / 1e6)} from the device's screen to this page and back` : ""}` : "";
  if ($("pace").textContent !== text) $("pace").textContent = text;
}

function problem(text) {
  run = false;
  $("screen").hidden = true;
  $("pace").textContent = "";
  say(text, ...text.includes("a run") ? list("Start a run") : []);
}

// ended is told when the connection is over: the session may be, too.
async function ended() {
  view = null;
  if (stopped || document.hidden) return;
  try { await call("/api/v1/devices"); } catch (e) {
    if (e.status === 401) { stopped = true; $("all").hidden = true; signIn(begin); return; }
    problem("The appliance does not answer.");
  }
  setTimeout(look, 2000);
}

// What an input costs: the device has it in an interval of the box's clock, on which the screen's changes are timed, too.
const seen = []; // changes, and when the page drew them
const patience = 3000;
let waits = null; // the newest input: until the screen changes
const ms = v => v < 9.95 ? `${v.toFixed(1)} ms` : `${Math.round(v)} ms`;
function judge() {
  if (!waits?.event) return;
  const { text, event: { earliest_ns: earliest, latest_ns: latest }, began } = waits;
  const found = seen.find(s => s.change > earliest), given = `${text}: given to the device in ${ms((latest - earliest) / 1e6)}; its screen`;
  if (!found && performance.now() < began + patience) return;
  waits = null;
  $("did").textContent = found ? `${given} changed ${ms((found.change - earliest) / 1e6)} after that began; you saw it ${ms(found.at - began)} after you did it.` : `${given} has not changed since.`;
}

function lose() {
  mine = false;
  clearInterval(kept);
  $("say").hidden = true;
  $("screen").classList.remove("mine");
  $("screen").tabIndex = -1;
  $("take").textContent = "Take the controls";
  waits = null;
}

async function take() {
  try {
    if (mine) {
      lose();
      state();
      await call(`${device}/driver?window=${own}`, { method: "DELETE" });
      $("did").textContent = "Given back.";
      return;
    }
    await call(`${device}/driver?window=${own}`, { method: "PUT" });
    mine = true;
    $("say").hidden = false;
    $("screen").classList.add("mine");
    $("screen").tabIndex = 0;
    $("take").textContent = "Give them back";
    $("did").textContent = "";
    state();
    clearInterval(kept);
    kept = setInterval(() => { if (document.hidden) return; call(`${device}/driver?window=${own}`, { method: "PUT" }).catch(e => { lose(); $("did").textContent = e.message; }); }, 20000);
  } catch (e) { $("did").textContent = e.message; }
}

// Inputs go one after another, in the order in which a person made them. quiet is one that nobody waits for.
let line = Promise.resolve();
function give(steps, quiet) {
  if (!mine) return;
  const text = steps.length > 60 ? `${steps.slice(0, 60)}…` : steps, began = performance.now();
  line = line.then(async () => {
    try {
      const { events } = await call(`${device}/input`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ steps, window: own }) });
      if (quiet) return;
      $("did").textContent = text;
      waits = { text, began, event: events?.[0] };
      judge();
      setTimeout(judge, began + patience - performance.now() + 10);
    } catch (e) { $("did").textContent = e.message; if (e.status === 409) { lose(); state(); } }
  });
}

const quote = text => `"${text.replace(/[\\"]/g, "\\$&")}"`;
function at(e) {
  const box = $("screen").getBoundingClientRect();
  const share = (v, from, size) => (Math.min(Math.max((v - from) / size, 0), 0.9999) * 100).toFixed(2);
  return `${share(e.clientX, box.left, box.width)}%,${share(e.clientY, box.top, box.height)}%`;
}

let down = null;
$("screen").addEventListener("pointerdown", e => {
  if (!mine || e.button > 2) return;
  e.preventDefault();
  clearTimeout(resting);
  $("screen").focus({ preventScroll: true });
  down = { from: at(e), x: e.clientX, y: e.clientY, button: ["left", "middle", "right"][e.button], began: e.timeStamp };
});
$("screen").addEventListener("pointerup", e => {
  if (!down) return;
  const far = Math.hypot(e.clientX - down.x, e.clientY - down.y) > 6;
  const long = Math.max(100, Math.min(Math.round(e.timeStamp - down.began), 5000));
  if (far) give(`drag ${down.from} to ${at(e)} over ${long}ms`);
  else give(`click ${down.from}${down.button === "left" ? "" : ` ${down.button}`}`);
  down = null;
});
$("screen").addEventListener("pointercancel", () => { down = null; });
// A mouse that rests is moved there, so that what is under it shows that.
let resting = 0;
$("screen").addEventListener("pointermove", e => {
  clearTimeout(resting);
  if (mine && !down && e.pointerType === "mouse") { const there = at(e); resting = setTimeout(() => give(`move ${there}`, true), 150); }
});
$("screen").addEventListener("pointerleave", () => clearTimeout(resting));
$("screen").addEventListener("contextmenu", e => { if (mine) e.preventDefault(); });

let turned = 0, where = "", turning = 0;
$("screen").addEventListener("wheel", e => {
  if (!mine) return;
  e.preventDefault();
  turned += e.deltaMode ? e.deltaY * 30 : e.deltaY;
  where = at(e);
  turning ||= setTimeout(() => {
    const notches = Math.trunc(turned / 100) || Math.sign(turned);
    turned = turning = 0;
    if (notches) give(`scroll ${notches} at ${where}`);
  }, 120);
}, { passive: false });

// named are the keys that a chord knows by the names that browsers give them.
const named = /^(Enter|Tab|Backspace|Delete|Insert|Home|End|Page(Up|Down)|Arrow(Left|Right|Up|Down)|ContextMenu|F\d+)$/;
$("screen").addEventListener("keydown", e => {
  if (!mine || e.isComposing) return;
  if (e.key === "Escape") { $("take").focus(); return; }
  const held = [e.ctrlKey && "Ctrl", e.altKey && "Alt", e.metaKey && "Meta"].filter(Boolean);
  const plain = [...e.key].length === 1;
  if (!plain && !named.test(e.key)) return;
  e.preventDefault();
  if (plain && !held.length) give(`type ${quote(e.key)}`);
  else give(`key ${[...held, ...(e.shiftKey && (!plain || held.length) ? ["Shift"] : []), e.key === " " ? "Space" : e.key].join("+")}`);
});

$("take").addEventListener("click", take);
$("say").addEventListener("submit", e => { e.preventDefault(); if ($("text").value) give(`type ${quote($("text").value)}`); $("text").value = ""; });
$("press").addEventListener("click", () => { if ($("text").value) give(`key ${$("text").value}`); $("text").value = ""; });
document.addEventListener("visibilitychange", look);
addEventListener("pagehide", () => { if (mine) fetch(`${device}/driver?window=${own}`, { method: "DELETE", keepalive: true, credentials: "same-origin" }); });

// checks are the steps of a set-up: each with what to do, what is known of it, and whether it is done.
function checks(d) {
  const { wifi, set_up: seen = {}, parts = [] } = d;
  const code = (of, alt) => make("img", { className: "code", src: `${device}/code?of=${of}`, width: 132, height: 132, alt });
  const at = time => time ? `at ${when(time)}` : "";
  /** @type {{ id: string, done: boolean, says: string, what: (Node | string)[], code?: Node }[]} */
  const all = [
    { id: "join", done: !!d.address, says: d.address ? `It has the address ${d.address}${d.host ? `, and calls itself ${d.host}` : ""}.` : d.problem || "",
      what: wifi ? ["Join the Wi-Fi ", make("b", { textContent: wifi.ssid }), wifi.passphrase ? " with the passphrase " : " (a token of the scope run sees the passphrase)", wifi.passphrase ? make("code", { textContent: wifi.passphrase }) : "", "."] : [`Plug it into the port ${d.port}.`],
      code: wifi && wifi.passphrase ? code("wifi", `QR code of the Wi-Fi ${wifi.ssid}`) : null },
    { id: "open", done: !!seen.opened, says: at(seen.opened), what: ["On the device, open ", make("code", { textContent: "http://box.test/" }), "."], code: code("page", "QR code of http://box.test/") },
    { id: "trust", done: !!seen.trusted, says: at(seen.trusted), what: ["Install the certificate from that page, and trust it."] },
  ];
  for (const part of parts) {
    const what = part.part === "screen" ? "Its screen is seen by " : "Its input comes from ";
    all.push({ id: part.part, done: part.ready, says: part.ready ? part.state || "" : part.problem || "", what: [what, make("code", { textContent: part.use }), "."] });
  }
  return all;
}

let looked = 0, before = "";
// setUp shows how far the device is set up, and again after a while until all is done.
function setUp(d) {
  clearTimeout(looked);
  const port = d && d.kind !== "virtual";
  $("setup").hidden = !port;
  if (!port) return;
  const all = checks(d), text = JSON.stringify([d.wifi, all.map(c => [c.done, c.says])]);
  if (text !== before) {
    before = text;
    $("checks").replaceChildren(...all.map(c => make("li", { id: `check-${c.id}`, className: c.done ? "done" : "" },
      make("span", { className: "mark", textContent: c.done ? "done" : "to do" }), make("span", {}, ...c.what), make("span", { className: "hint", textContent: c.says }), ...!c.done && c.code ? [c.code] : [])));
    $("how").hidden = all.every(c => c.done);
    $("ready").replaceChildren(...all.every(c => c.done) ? ["All is set up: ", make("a", { href: `/?device=${encodeURIComponent(d.name)}`, textContent: "start a run" }), "."] : []);
  }
  looked = setTimeout(again, 3000);
}

async function again() {
  if (stopped) return;
  if (document.hidden) { looked = setTimeout(again, 3000); return; }
  try {
    const { devices } = await call("/api/v1/devices");
    const d = devices.find(one => one.name === name);
    if (d) { facts(d); setUp(d); } else looked = setTimeout(again, 3000);
  } catch (e) {
    if (e.status === 401) { stopped = true; $("all").hidden = true; signIn(begin); } else looked = setTimeout(again, 5000);
  }
}

function facts(d) {
  $("facts").textContent = [d.kind === "virtual" ? "a browser on this machine" : d.port && `port ${d.port}`, d.host, d.address, d.screen, d.ready ? "ready" : d.problem].filter(Boolean).join(" · ");
}

async function begin() {
  stopped = false;
  try {
    const { devices } = await call("/api/v1/devices");
    const d = devices.find(one => one.name === name);
    setUp(d);
    $("all").hidden = false;
    $("title").textContent = name || "Device";
    document.title = `${name || "Device"} – Eidetic`;
    $("drive").hidden = $("view").hidden = !d;
    if (!d) { say(name ? `There is no device ${name}.` : "No device is named.", ...list("Choose one")); return; }
    facts(d);
    $("drive").hidden = d.kind === "virtual";
    if (!asks) errands(device, d.errands || []);
    asks = true;
    look();
  } catch (e) {
    if (e.status === 401) { $("all").hidden = true; signIn(begin); return; }
    $("all").hidden = false;
    say(e.message);
  }
}
begin();
