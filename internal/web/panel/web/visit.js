// What the pages with lists have in common: the token, the question before something is removed, and
// tables that change only where they differ. All content is inserted as text, never as markup.
import { $, make, call, signIn } from "./common.js";

export const json = (method, body, headers = {}) => ({ method, headers: { "Content-Type": "application/json", ...headers }, body: JSON.stringify(body) });

// visit loads a page with load, which is told who asks, and asks for the token where one is needed. It returns
// a function that loads again; one load follows another, so that an older answer never comes last, and at most one waits.
export function visit(load) {
  let turn = Promise.resolve(), next = null, health = null;
  const read = async () => {
    try {
      health ||= await (await fetch("/api/v1/health")).json();
      if (!health.starts) {
        $("trouble").hidden = false;
        $("trouble").textContent = "This panel only shows runs. The panel of appliance serve starts them, and has this page.";
        return;
      }
      const me = await call("/api/v1/session");
      await load({ ...me, may: scope => ["read", "run", "admin"].indexOf(me.scope) >= ["read", "run", "admin"].indexOf(scope) });
      $("login").hidden = $("trouble").hidden = true;
      $("all").hidden = false;
    } catch (e) {
      if (e.status === 401) {
        $("all").hidden = true;
        if ($("login").hidden) signIn(again);
        return;
      }
      $("trouble").hidden = false;
      $("trouble").textContent = `This page could not be loaded: ${e.message}`;
    }
  };
  const again = () => next ??= turn = turn.then(() => { next = null; return read(); });
  again();
  return again;
}

// button is one that acts on a row; what it acts on is in its name for those who do not see the row.
export function button(text, on, act) {
  const b = make("button", { type: "button", className: "act-on", textContent: text, ariaLabel: `${text} ${on}` });
  b.dataset.act = act;
  return b;
}

// row is a table's row; content is text or nodes.
export function row(key, cells, className = "") {
  const tr = make("tr", { className }, ...cells.map(c => make("td", {}, ...[c ?? ""].flat())));
  tr.dataset.key = key;
  return tr;
}

// clicked calls acts[what] with the key of the row whose button is clicked.
export function clicked(body, acts) {
  body.addEventListener("click", e => {
    const b = e.target.closest("button[data-act]");
    if (b) acts[b.dataset.act](b.closest("[data-key]").dataset.key, b);
  });
}

// sure asks before something that cannot be undone, and carries it out.
export function sure(question, says, yes, act, then) {
  $("question").textContent = question;
  $("says").textContent = says;
  $("yes").textContent = yes;
  $("kept").textContent = "";
  $("sure").onsubmit = async e => {
    e.preventDefault();
    $("yes").disabled = true;
    try {
      await act();
      $("sure").close();
    } catch (problem) { $("kept").textContent = `That did not work: ${problem.message}.`; }
    $("yes").disabled = false;
    if (!$("sure").open) await then();
  };
  $("no").onclick = () => $("sure").close();
  $("sure").showModal();
}

// sends carries out a form with its values, and says in it what is wrong. Act does not wait for the page to load again:
// until it returns, nothing else can be sent.
export function sends(form, act) {
  let busy = false; // a second click must not do it a second time
  form.addEventListener("submit", async e => {
    e.preventDefault();
    if (busy) return;
    busy = true;
    const says = form.querySelector("[role=alert]");
    says.textContent = "";
    try { await act(form.elements); } catch (problem) { says.textContent = problem.message; }
    busy = false;
  });
}
