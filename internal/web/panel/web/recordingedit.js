// Forms that rename a recording and make a changed one of it.
import { $, make, call, address } from "./common.js";
import { json, sends } from "./visit.js";

const lines = text => text.split("\n").map(line => line.trim()).filter(Boolean);

// matches is archive.MatchURL: * stands for any text, and a pattern without one is a part of the address.
const matches = pattern => pattern.includes("*") ? url => new RegExp(`^${pattern.split("*").map(part => part.replace(/[.+?^${}()|[\]\\]/g, "\\$&")).join("[^]*")}$`).test(url) : url => url.includes(pattern);

// changing makes the forms work. at is the address of a recording, become shows one that was made, size is a size in words.
export function changing({ at, become, size }) {
  const rename = $("rename"), change = $("change");
  let name = "", upload = null, contents = null;

  const chosen = () => [...$("pages").querySelectorAll("input:checked")].map(input => input.value);

  // tell says what the patterns mean for the requests that are listed.
  function tell() {
    const leave = lines(change.elements.leave.value).map(matches), keep = lines(change.elements.keep.value).map(matches);
    if (!leave.length && !keep.length) { $("effect").textContent = ""; return; }
    const out = contents.requests.filter(r => leave.some(is => is(r.url)) || keep.length && !keep.some(is => is(r.url))).length;
    $("effect").textContent = `They leave out ${out} of ${contents.requests.length}${contents.requests.length < contents.exchanges ? " listed" : ""} requests.`;
  }
  change.addEventListener("input", () => {
    change.elements.into.disabled = change.elements.place.checked;
    tell();
  });

  sends(rename, async f => {
    const a = await call(`${at(name)}/name`, json("PUT", { name: f.name.value }));
    await become(a.name, `${name} is called ${a.name} now.`);
  });
  sends(change, async f => {
    const body = { leave_out: lines(f.leave.value), keep: lines(f.keep.value), pages: chosen() };
    if (f.answer.value) body.answers = [{ url: f.answer.value, ...f.first.value && { first_byte_ms: Number(f.first.value) }, ...f.status.value && { status: Number(f.status.value) } }];
    else if (f.first.value || f.status.value) throw new Error("say which answers are changed");
    if (!f.place.checked) body.into = f.into.value;
    const made = await call(`${at(name)}/edit`, json("POST", body, f.place.checked ? { "If-Match": upload.etag } : {}));
    const did = [[made.left_out, "request is", "requests are", "left out"], [made.edited, "answer is", "answers are", "changed"]]
      .filter(([n]) => n).map(([n, one, many, what]) => `${n} ${n === 1 ? one : many} ${what}`);
    await become(made.name, `${made.name} is stored, ${size(made.bytes)}: ${did.join(", ")}.`);
  });

  return {
    // show is about a recording; what is no upload keeps its name and its content.
    show(shown, uploaded, c, may) {
      [name, upload, contents] = [shown, uploaded, c];
      rename.hidden = !uploaded || !may;
      change.hidden = !may;
      rename.reset();
      change.reset();
      rename.elements.name.value = uploaded ? name : "";
      change.elements.into.disabled = false;
      change.elements.into.value = `${name.replace(/[.]wacz$/, "").slice(0, 110)}-changed.wacz`;
      $("in-place").hidden = !uploaded;
      const pages = [...new Set(c.pages.map(p => p.url))];
      $("pages").hidden = pages.length < 2;
      $("pages").replaceChildren($("pages").querySelector("legend"), ...pages.map(value => make("label", {}, make("input", { type: "checkbox", value }), ` ${address(value)}`)));
      for (const alert of [rename, change]) alert.querySelector("[role=alert]").textContent = "";
      tell();
    },
  };
}
