// What the pages share. Everything that comes from a run is put in as text.
export const $ = id => document.getElementById(id);
export const make = (tag, props = {}, ...kids) => { const e = Object.assign(document.createElement(tag), props); e.append(...kids); return e; };

export const call = async (path, options) => {
  const answer = await fetch(path, { credentials: "same-origin", ...options });
  if (answer.ok) return answer.status === 204 ? null : answer.json();
  const problem = await answer.json().catch(() => ({}));
  const places = (problem.errors || []).map(e => `${e.location}: ${e.message}`);
  throw Object.assign(new Error([problem.detail || answer.statusText, ...places].join("; ")), { status: answer.status });
};

// number has three digits or more, thousands apart and a true minus.
export const number = v => (Math.abs(v) >= 100 ? Math.round(v).toString().replace(/\B(?=(\d{3})+$)/g, "\u202f") : v.toFixed(Math.abs(v) < 10 ? 2 : 1)).replace(/^-/, "−");
// address is a URL without what all have.
export const address = page => page.replace(/^https?:\/\//, "").replace(/\/$/, "");
export const reportOf = id => `/runs/${encodeURIComponent(id)}/report.html`;

// found is what a comparison says: a sign for the eye, and the same in words.
const signs = new Map([["slower", "▲"], ["faster", "▼"], ["mixed", "◆"], ["none", "="]]);
export const found = ({ verdict, headline, detail }) => make("p", { className: "found" },
  make("strong", { className: signs.has(verdict) ? verdict : "unknown" }, make("span", { ariaHidden: "true", textContent: `${signs.get(verdict) || "?"} ` }), `${headline}.`), ` ${detail}.`);

// signIn shows the form for the token; done is called when it was the right one.
export function signIn(done) {
  $("login").hidden = false;
  $("token").focus();
  $("login").onsubmit = async e => {
    e.preventDefault();
    try {
      await call("/api/v1/session", { method: "POST", headers: { "Content-Type": "text/plain" }, body: $("token").value });
      $("token").value = $("wrong").textContent = "";
      $("login").hidden = true;
      done();
    } catch (problem) { $("wrong").textContent = problem.message; }
  };
}
