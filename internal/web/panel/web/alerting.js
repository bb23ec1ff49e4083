// What several pages say of alerts. All content from runs is inserted as text, never as markup.
import { make, number, when } from "./common.js";

// searched says what the search for the revision that an alert comes from has found, or is doing.
export const searched = b => b.text || (b.reason ? `${b.id ? `Bisection ${b.state}` : "No bisection"}: ${b.reason}`
  : b.state === "due" ? "A bisection begins when the schedule's run has ended." : `Bisection: ${b.state}.`);

// stateOf is what was said of an alert: its state as a word, and as a sentence.
export function stateOf(a) {
  const by = (did, d, text) => `${did} by ${d.by}, ${when(d.at)}${text ? `: ${text}` : ""}`;
  if (a.resolved) return ["resolved", by("Resolved", a.resolved, a.resolved.note)];
  const until = a.accepted && `${by("Accepted", a.accepted, a.accepted.reason)} – until ${when(a.accepted.until)}`;
  if (until && new Date(a.accepted.until) > new Date()) return ["accepted", until];
  if (until) return ["acceptance is over", until];
  return a.acknowledged ? ["acknowledged", by("Acknowledged", a.acknowledged, a.acknowledged.note)] : ["open", "Nobody has answered it."];
}

// change is how much a row changed, with its interval.
export const change = r => `${number(r.before)} → ${number(r.after)} ${r.unit}${r.percent == null ? "" : ` (${r.percent > 0 ? "+" : ""}${number(r.percent)} %)`}`.trim();

// alerting shows the open alerts of one series, below whose chart is what changed at each step.
export function alerting(alerts) {
  if (!alerts?.length) return "";
  return make("ul", { className: "alerts", ariaLabel: "Open alerts" }, ...alerts.map(a => make("li", {},
    make("a", { href: `/alerts?show=open#alert-${a.of || a.id}`, className: a.trend, textContent: `Alert ${a.of || a.id}: ${a.text}` }),
    make("span", { className: "near", textContent: [`raised ${when(a.raised)}`, ...a.tags].join(" · ") }),
    ...a.bisection ? [make("span", { className: "near", textContent: searched(a.bisection) })] : [])));
}
