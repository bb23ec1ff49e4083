// The lines in which two texts differ.
import { make } from "./common.js";

// difference is a list of lines: those of the newer text alone have a plus, those of the older alone a minus. Both texts are those of a plan,
// which the box bounds.
export function difference(old, fresh) {
  const a = old.trimEnd().split("\n"), b = fresh.trimEnd().split("\n");
  const common = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1)); // lengths of what both have in common, from each place on
  for (let i = a.length - 1; i >= 0; i--) for (let j = b.length - 1; j >= 0; j--) common[i][j] = a[i] === b[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
  const out = [], line = (sign, text) => out.push(make(sign === "+" ? "ins" : sign === "−" ? "del" : "span", { textContent: `${sign} ${text}\n` }));
  let i = 0, j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) { line(" ", a[i]); i++; j++; }
    else if (j < b.length && (i === a.length || common[i][j + 1] > common[i + 1][j])) line("+", b[j++]);
    else line("−", a[i++]);
  }
  return out;
}
