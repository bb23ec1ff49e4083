// The open alerts of a series, with a form that acknowledges one. All content from runs is inserted as
// text, never as markup.
import { make, call } from "./common.js";

// alerting shows them. where, if given, makes what says which series an alert is of; on the page of one series
// what changed at each step is below, beside the step.
export function alerting(alerts, when, where = () => []) {
  if (!alerts?.length) return "";
  return make("ul", { className: "alerts", ariaLabel: "Open alerts" }, ...alerts.map(a => {
    const note = make("input", { type: "text", maxLength: 1000 }), done = make("button", { textContent: "Acknowledge" });
    const says = make("span", { role: "status", className: "near" });
    const item = make("li", {}, make("strong", { className: a.trend, textContent: `Alert ${a.id}: ${a.text}` }),
      make("span", { className: "near" }, ...where(a)),
      make("span", { className: "near", textContent: [`raised ${when(a.raised)}`, ...a.tags].join(" · ") }));
    const form = make("form", {}, make("label", { textContent: "Note " }, note), done);
    form.addEventListener("submit", async e => {
      e.preventDefault();
      done.disabled = true;
      try {
        const answer = await call(`/api/v1/alerts/${a.id}/acknowledgement`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ note: note.value }) });
        form.remove();
        says.textContent = `Acknowledged by ${answer.acknowledged.by}.`;
      } catch (problem) {
        done.disabled = false;
        says.textContent = `The alert could not be acknowledged: ${problem.message}.`;
      }
    });
    item.append(form, says);
    return item;
  }));
}
