// What is wrong with a plan, at the fields of a form. The box's own check says it; the fields are those with a data-path.
import { call, make } from "./common.js";

// at says whether a fault belongs to an input: that of its field, or of a step whose verb has the input.
const at = (fault, path) => fault.field === path ||
  fault.field && path.startsWith("steps[") && !/\.(name|end)$/.test(path) && fault.field === path.replace(/\.[^.]*$/, "");

// faults shows the faults at their inputs, and takes away those that are mended. It returns those that have no input.
export function faults(inputs, all) {
  const rest = new Set(all);
  for (const input of inputs) {
    const mine = all.filter(fault => at(fault, input.dataset.path));
    for (const fault of mine) rest.delete(fault);
    input.ariaInvalid = mine.length ? "true" : null;
    let says = input.parentNode.querySelector(".wrong");
    const described = (input.getAttribute("aria-describedby") || "").split(" ").filter(id => id && !id.startsWith("wrong-"));
    if (!mine.length) {
      says?.remove();
      if (described.length) input.setAttribute("aria-describedby", described.join(" ")); else input.removeAttribute("aria-describedby");
      continue;
    }
    if (!says) input.after(says = make("span", { className: "wrong", id: `wrong-${input.dataset.path.replace(/\W/g, "-")}` }));
    input.setAttribute("aria-describedby", [...described, says.id].join(" "));
    says.textContent = mine.map(fault => fault.what).join("; ");
  }
  return [...rest];
}

// placed are the faults in the box's refusal of a request, whose plan is the body or a part of it.
export const placed = problem => (problem.errors || []).map(e => ({ field: e.location.replace(/^body\.?(plan\.?)?/, ""), what: e.message }));

// planOf is the plan of a run, to be asked for again.
export const planOf = run => call(`/api/v1/runs/${encodeURIComponent(run)}/plan`);

// again starts a run with the plan of another, and opens its page.
export async function again(run) {
  const started = await call("/api/v1/runs", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(await planOf(run)) });
  location.href = `/run?run=${encodeURIComponent(started.id)}`;
}
