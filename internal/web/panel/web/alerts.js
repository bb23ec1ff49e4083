// The open alerts of a series, with a form that acknowledges one. All content from runs is inserted as
// text, never as markup.
import { make, call } from "./common.js";

// bisection says what the search for the revision that an alert comes from has found, or is doing.
const bisection = b => !b ? [] : [make("span", { className: "near", textContent: b.text || b.reason && `Bisect ${b.id || ""} ${b.state}: ${b.reason}` ||
  (b.state === "due" ? "A bisect begins when the schedule's run has ended." : `Bisect ${b.id}: ${b.state}.`) })];

// alerting shows them. where, if given, makes what says which series an alert is of; on the page of one series
// what changed at each step is below, beside the step.
export function alerting(alerts, when, where = () => []) {
  if (!alerts?.length) return "";
  return make("ul", { className: "alerts", ariaLabel: "Open alerts" }, ...alerts.map(a => {
    const note = make("input", { type: "text", maxLength: 1000 }), done = make("button", { textContent: "Acknowledge" }), over = make("button", { textContent: "Resolve" });
    const says = make("span", { role: "status", className: "near" });
    const item = make("li", {}, make("strong", { className: a.trend, textContent: `Alert ${a.id}: ${a.text}` }),
      make("span", { className: "near" }, ...where(a)),
      make("span", { className: "near", textContent: [`raised ${when(a.raised)}`, ...a.tags].join(" · ") }), ...bisection(a.bisection));
    const form = make("form", {}, make("label", { textContent: "Note " }, note), done, over);
    form.addEventListener("submit", async e => {
      e.preventDefault();
      done.disabled = over.disabled = true;
      const resolves = e.submitter === over;
      try {
        const answer = await call(`/api/v1/alerts/${a.id}/${resolves ? "resolution" : "acknowledgement"}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ note: note.value }) });
        form.remove();
        says.textContent = resolves ? `Resolved by ${answer.resolved.by}.` : `Acknowledged by ${answer.acknowledged.by}. It stays bad for a gate until it is resolved or accepted.`;
      } catch (problem) {
        done.disabled = over.disabled = false;
        says.textContent = `The alert could not be ${resolves ? "resolved" : "acknowledged"}: ${problem.message}.`;
      }
    });
    item.append(form, says);
    return item;
  }));
}
