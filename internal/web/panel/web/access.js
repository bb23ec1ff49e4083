// Tokens, the certificate and the audit log. All content is inserted as text, never as
// markup: an attacker chooses what is in the log.
import { $, make, call, signIn, textsOf, when } from "./common.js";

const cell = text => make("td", { textContent: text });
// grouped is a fingerprint as browsers and the box's screen show it: two lines of 16 bytes.
const grouped = text => text.toUpperCase().match(/../g).join(":").replace(/^(.{47}):/, "$1\n");

function row(token) {
  const button = make("button", { type: "button", className: "act-on", textContent: "Revoke", ariaLabel: `Revoke the token ${token.name}` });
  button.addEventListener("click", () => revoke(token));
  const last = token.used ? `${when(token.used)}, ${token.from}` : "never";
  return make("tr", {}, cell(token.name), cell(token.scope), cell(when(token.created)), cell(last), make("td", {}, button));
}

// confirmed asks a question; act is what Yes does, and its error is shown.
function confirmed(question, consequence, yes, failed, act) {
  $("question").textContent = question;
  $("consequence").textContent = consequence;
  $("yes").textContent = yes;
  $("kept").textContent = "";
  $("sure").onsubmit = async e => {
    e.preventDefault();
    $("yes").disabled = true;
    try {
      await act();
      $("sure").close();
    } catch (problem) { $("kept").textContent = `${failed}: ${problem.message}.`; }
    $("yes").disabled = false;
  };
  $("sure").showModal();
}

function revoke(token) {
  confirmed(`Revoke the token “${token.name}”?`, "Scripts and sessions that use it are refused from now on. This cannot be undone.", "Revoke",
    "The token could not be revoked", async () => {
      await call(`/api/v1/tokens/${encodeURIComponent(token.id)}`, { method: "DELETE" });
      $("made").hidden = true;
      await load();
      $("sure").addEventListener("close", () => $("named").focus(), { once: true });
    });
}

const doing = p => p.problem ? `${p.state}: ${p.problem}` : p.trial ? `${p.state}, trial ${p.trial} of ${p.of}` : p.state;

function showFleet(f, admin) {
  $("fleet").hidden = false;
  const health = f.health && f.health !== "unknown" ? ` The head calls its numbers ${f.health}${f.reason ? `: ${f.reason}` : ""}.` : "";
  $("belongs").textContent = f.joined ? `This box belongs to the head ${f.head}, as ${f.name}, since ${when(f.since)}. The head’s last answer: ${f.contact ? when(f.contact) : "none yet"}.${health}`
    : "This box belongs to no head. The panel of a head makes a link for each box that is to join it.";
  $("fleetProblem").hidden = !f.problem;
  $("fleetProblem").textContent = f.problem ? `Last problem: ${f.problem}.${f.joined ? " The box goes on measuring, and tries again." : ""}` : "";
  $("held").hidden = f.parts.length === 0;
  $("parts").replaceChildren(...f.parts.map(p => make("tr", {}, cell(p.part), cell(p.device), cell(doing(p)), cell(when(p.since)))));
  $("join").hidden = f.joined || !admin;
  $("part").hidden = !f.joined || !admin;
  $("part").onclick = () => confirmed("Leave the fleet?", f.parts.length
    ? "The box holds parts of the head’s runs. If you leave, their runs are stopped and stay here, and the head gives the parts to other boxes."
    : "All runs stay on this box. The head is not told: remove the box there as well.", "Leave", "The box has not left",
    async () => { await call(`/api/v1/fleet?force=${f.parts.length > 0}`, { method: "DELETE" }); await load(); $("sure").addEventListener("close", () => $("fleetTitle").focus(), { once: true }); });
}

$("join").addEventListener("submit", async e => {
  e.preventDefault();
  $("fleetRefused").textContent = "";
  const { link, name } = textsOf(e.target);
  try {
    await call("/api/v1/fleet", { method: "PUT", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ link: link.trim(), name }) });
    e.target.reset();
    await load();
    $("fleetTitle").focus();
  } catch (problem) { $("fleetRefused").textContent = problem.message; }
});

$("no").addEventListener("click", () => $("sure").close());

function act(e) {
  return make("tr", { className: e.status >= 400 ? "wrong" : "" },
    cell(when(e.time)), cell(e.who || "nobody known"), cell(e.what), cell(e.from), cell(e.status || ""));
}

async function load() {
  try {
    const me = await call("/api/v1/session");
    $("login").hidden = true;
    $("all").hidden = false;
    $("tls").hidden = !health.fingerprint;
    if (health.fingerprint) $("fingerprint").textContent = grouped(health.fingerprint);
    const admin = me.scope === "admin" && health.token;
    $("tokens").hidden = $("audit").hidden = !admin;
    $("small").hidden = admin;
    $("small").textContent = health.token ? `Tokens and the log are shown to the scope admin; your token has the scope ${me.scope}.`
      : "This panel has no token: only this machine can reach it.";
    if (health.joins) showFleet(await call("/api/v1/fleet"), me.scope === "admin" || !health.token);
    if (!admin) return;
    const { tokens } = await call("/api/v1/tokens");
    $("list").replaceChildren(...tokens.map(row));
    $("none").hidden = tokens.length > 0;
    $("acts").replaceChildren(...(await call("/api/v1/audit?limit=100")).events.map(act));
    $("trouble").hidden = true;
  } catch (e) {
    if (e.status === 401) { $("all").hidden = true; signIn(load); return; }
    $("trouble").hidden = false;
    $("trouble").textContent = `This page could not be loaded: ${e.message}`;
  }
}

$("make").addEventListener("submit", async e => {
  e.preventDefault();
  $("refused").textContent = "";
  try {
    const made = await call("/api/v1/tokens", {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(textsOf(e.target)),
    });
    $("madeName").textContent = made.name;
    $("secret").textContent = made.secret;
    $("made").hidden = false;
    e.target.reset();
    await load();
  } catch (problem) { $("refused").textContent = problem.message; }
});

$("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText($("secret").textContent);
    $("copy").textContent = "Copied";
  } catch { getSelection().selectAllChildren($("secret")); } // without TLS a page has no clipboard
});

const health = await (await fetch("/api/v1/health")).json();
load();
