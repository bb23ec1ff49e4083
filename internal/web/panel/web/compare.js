// Is a run slower than an earlier one of its series? The server decides; all content
// from runs is inserted as text, never as markup.
import { make, call, found } from "./common.js";

// comparing is the form, for a series with two runs or more.
export function comparing(s, when) {
  if (s.runs.length < 2) return "";
  const choice = (text, place) => {
    const select = make("select", {}, ...s.runs.map(r => make("option", { value: r.id, textContent: `${when(r.wall)} – ${r.valid} of ${r.trials} trials` })).reverse());
    select.selectedIndex = place;
    return [select, make("label", { textContent: `${text} ` }, select)];
  };
  const [run, ofRun] = choice("Is", 0), [reference, ofReference] = choice("slower than", 1);
  const margin = make("input", { type: "number", min: 0, max: 1000, step: "any", value: 5, required: true });
  const ask = make("button", { textContent: "Compare" }), says = make("div", { role: "status", className: "says" });
  const form = make("form", {}, ofRun, ofReference, make("label", { textContent: "by more than, in % " }, margin), ask);
  form.addEventListener("submit", async e => {
    e.preventDefault();
    ask.disabled = true;
    try {
      const answer = await call(`/api/v1/runs/${encodeURIComponent(run.value)}/comparison?${new URLSearchParams({ reference: reference.value, margin: margin.value })}`);
      const other = answer.different.map(f => make("li", { textContent: `${f.name}: ${f.before}, then ${f.after}` }));
      const warnings = (answer.warnings ?? []).map(text => make("p", { className: "hint", textContent: `Warning: ${text}.` }));
      says.replaceChildren(found(answer.comparison), ...warnings, ...(other.length ? [make("p", { className: "hint", textContent: "Besides, these are not alike, and may be the reason:" }), make("ul", {}, ...other)] : []));
    } catch (problem) { says.replaceChildren(make("p", { className: "slower", textContent: `The runs could not be compared: ${problem.message}.` })); }
    ask.disabled = false;
  });
  return make("details", { className: "comparing" }, make("summary", { textContent: "Compare two runs" }), form, says);
}
