// Code shared by the pages. All content from runs is inserted as text, never as markup.
/** @type {(id: string) => any} */
export const $ = id => document.getElementById(id);
/** @type {<Tag extends keyof HTMLElementTagNameMap>(tag: Tag, props?: object, ...kids: (Node | string)[]) => HTMLElementTagNameMap[Tag]} */
export const make = (tag, props = {}, ...kids) => { const e = Object.assign(document.createElement(tag), props); e.append(...kids); return e; };

/**
 * call asks the box, and throws an error for what is not answered with success.
 * @type {<const Text extends string, const Method extends string = "GET">(path: Text, options?: RequestInit & { method?: Method }) =>
 *   Promise<import("../panel").Answer<Text, Method>>}
 */
export const call = async (path, options) => {
  const answer = await fetch(path, { credentials: "same-origin", ...options });
  if (answer.ok) { account(); return answer.status === 204 ? null : answer.json(); }
  const problem = await answer.json().catch(() => ({}));
  const places = (problem.errors || []).map(e => `${e.location}: ${e.message}`);
  throw Object.assign(new Error([problem.detail || answer.statusText, ...places].join("; ")), { status: answer.status, errors: problem.errors || [] });
};

/**
 * textsOf is what the fields of a form hold, none of which is a file.
 * @type {(form: HTMLFormElement) => Record<string, any>}
 */
export const textsOf = form => Object.fromEntries(new FormData(form));

// when is a time as every page writes it: the browser's, with its zone.
export const when = time => time ? new Date(time).toLocaleString([], { year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", timeZoneName: "short" }) : "never";

// account says once who is logged in, and offers the way out, at the same place of each page.
let asked = false, left = false;
async function account() {
  if (asked || left || !$("account")) return;
  asked = true;
  const me = await fetch("/api/v1/session", { credentials: "same-origin" }).then(answer => answer.ok ? answer.json() : null, () => null);
  asked = Boolean(me);
  if (!me?.expires || left) return; // without a session there is none to end
  $("me").textContent = `${me.name} (${me.scope})`;
  $("account").hidden = false;
  $("leave").onclick = async () => {
    await call("/api/v1/session", { method: "DELETE" });
    left = true;
    sessionStorage.clear(); // drafts may hold what only the one who wrote them may see
    $("me").textContent = "";
    $("account").hidden = true;
    for (const part of document.querySelectorAll("main > :not(#login)")) part.hidden = true;
    signIn(() => location.reload());
  };
}

// number formats with at least three digits, separated thousands and a true minus.
export const number = v => (Math.abs(v) >= 100 ? Math.round(v).toString().replace(/\B(?=(\d{3})+$)/g, "\u202f") : v.toFixed(Math.abs(v) < 10 ? 2 : 1)).replace(/^-/, "−");
// address is a URL without its scheme and final slash.
export const address = page => page.replace(/^https?:\/\//, "").replace(/\/$/, "");
export const runOf = id => `/run?run=${encodeURIComponent(id)}`;
export const reportOf = id => `/runs/${encodeURIComponent(id)}/report.html`;

// found shows the result of a comparison: a sign, and the same in words.
const signs = new Map([["slower", "▲"], ["faster", "▼"], ["mixed", "◆"], ["none", "="], ["equivalent", "≈"]]);
/** @type {(of: { verdict?: string, headline?: string, detail?: string }) => HTMLElement} */
export const found = ({ verdict, headline, detail }) => make("p", { className: "found" },
  make("strong", { className: signs.has(verdict) ? verdict : "unknown" }, make("span", { ariaHidden: "true", textContent: `${signs.get(verdict) || "?"} ` }), `${headline}.`), ` ${detail}.`);

// signIn shows the form for the token, and calls done once the token is right.
export function signIn(done) {
  $("login").hidden = false;
  $("token").focus();
  $("login").onsubmit = async e => {
    e.preventDefault();
    try {
      await call("/api/v1/session", { method: "POST", headers: { "Content-Type": "text/plain" }, body: $("token").value });
      $("token").value = $("wrong").textContent = "";
      $("login").hidden = true;
      if (left) location.reload(); else done();
    } catch (problem) { $("wrong").textContent = problem.message; }
  };
}

// csv is the address of a table (RFC 4180). A cell that a spreadsheet would take for a formula is a text. Reports,
// which are files of their own, have the same rule in csv.js.
export const csv = rows => "data:text/csv;charset=utf-8," + encodeURIComponent(rows.map(row => row.map(cell => {
  const text = typeof cell === "string" && /^[=+@\t\r-]/.test(cell) && !/^[+-]?[\d.]+$/.test(cell) ? `'${cell}` : String(cell ?? "");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}).join(",")).join("\r\n") + "\r\n");

// doing says how far a run in progress is: what goes on, its trial, how many are valid so far, and how long it still takes.
export function doing(s, valid) {
  const left = s.left_s, parts = [s.doing || "running"];
  if (s.trial) parts.push(`trial ${s.trial} of ${s.of}`);
  if (s.trial > 1 && valid !== undefined) parts.push(`${valid} valid so far`);
  if (left !== undefined) parts.push(left < 60 ? "less than a minute left" : `about ${Math.round(left / 60)} min left`);
  return [make("p", { textContent: parts.join(", ") }), ...s.of ? [make("progress", { max: s.of, value: Math.max(0, (s.trial || 1) - 1), ariaLabel: "Trials done" })] : []];
}
