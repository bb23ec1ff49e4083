// The films of a pair: two trials, frame by frame, kept together by time or by visual progress. The address holds pair,
// place, lock, zoom, outline and region.
import { $, make, call, number } from "./common.js";
import { Sheet, regionOf, textOf } from "./sheet.js";
import { Curve, keys, progressOf, shareOf } from "./curve.js";
import { apart, locks, long, parted, times, says } from "./locks.js";
import { signed } from "./dots.js";
import { numbers } from "./numbers.js";

const clamp = (v, low, high) => Math.min(Math.max(v, low), high);
const kept = ["pair", "at", "lock", "zoom", "outline", "region"]; // in the address

// films shows pairs of a run below the element films. query is the address's, and keep writes it.
export function films({ run, query, keep }) {
  const side = (where, i) => $(where).querySelector(`[data-side="${i}"]`), both = f => [0, 1].map(f);
  const sheets = both(i => new Sheet(side("views", i).querySelector(".sheet"), { shown: () => shown(i), failed, drawn: box => choose(box), chosen }));
  const curves = both(i => new Curve(side("place", i).querySelector(".curve")));
  let pairs = [], names = [], trials = null, lists = null, ways = null, place = 0, asked = 0, steps = [], split = null;

  const address = n => `/api/v1/runs/${encodeURIComponent(run)}/trials/${n}/frames`;
  const lock = () => document.querySelector("#lock input:checked").value;
  const places = () => ways[lock()].places;

  function failed(e) {
    $("comparing").hidden = true;
    $("unseen").textContent = `The films cannot be shown: ${e.message}.`;
  }

  // offer fills the choice of pairs; these may become more while the run goes on.
  function offer(view) {
    pairs = view.pairs;
    names = both(i => view.arms[i] ? [view.arms[i].name, view.arms[i].differs].filter(Boolean).join(", ") : "");
    const seen = pairs.some(p => [p.control, p.treatment].every(n => view.trials.find(t => t.n === n)?.reel));
    $("films").hidden = !pairs.length;
    $("no-pair").textContent = seen ? "Choose a pair here, or by its dot above." : view.thinned || "The trials of this run have no films: a new run of its plan makes them.";
    const chosen = $("pair").value || query.get("pair") || "";
    $("pair").replaceChildren(make("option", { value: "", textContent: "none" }), ...pairs.map((p, i) => make("option", { value: i + 1, textContent: `${i + 1}: trials ${p.control} and ${p.treatment}` })));
    $("pair").value = pairs[chosen - 1] ? chosen : "";
    if ($("pair").value && !trials) load();
    buttons();
  }

  function buttons() {
    const n = Number($("pair").value);
    $("earlier").disabled = n <= 1;
    $("later").disabled = n >= pairs.length;
    $("no-pair").hidden = n > 0;
  }

  // take shows a pair, by its number; 0 is none.
  function take(n) {
    $("pair").value = pairs[n - 1] ? n : "";
    query.delete("at");
    load();
  }

  async function load() {
    const n = Number($("pair").value), turn = ++asked;
    buttons();
    $("unseen").textContent = "";
    if (!n) {
      $("both").hidden = true;
      trials = null;
      for (const name of kept) query.delete(name);
      keep();
      return;
    }
    query.set("pair", n);
    const now = [pairs[n - 1].control, pairs[n - 1].treatment], region = query.get("region");
    $("comparing").hidden = false;
    try {
      // One after the other: the box reads one reel at a time.
      const fresh = [];
      for (const trial of now) fresh.push(await call(address(trial) + (region ? `?region=${encodeURIComponent(region)}` : "")));
      if (turn !== asked) return;
      const other = !trials || now.some((trial, i) => trial !== trials[i]);
      [trials, lists] = [now, fresh];
      $("comparing").hidden = true;
      $("both").hidden = false;
      begin(other);
    } catch (e) {
      if (turn !== asked) return;
      if (region && e.status === 422) { // it is not in these frames
        choose(null);
        load();
        return;
      }
      $("both").hidden = true;
      failed(e);
    }
  }

  function begin(other) {
    ways = locks(lists);
    split = parted(lists);
    for (const i of [0, 1]) {
      if (other) sheets[i].use(lists[i], address(trials[i]));
      side("place", i).querySelector("h3").textContent = side("views", i).querySelector("strong").textContent = `${names[i]}: trial ${trials[i]}`;
      side("views", i).querySelector(".view").ariaLabel = `The picture of ${names[i]}`;
      curves[i].drawn = () => pictures(i);
      curves[i].set(lists[i], span(), split);
    }
    const progress = $("lock").querySelector("[value=progress]");
    progress.disabled = !ways.progress.places.length;
    if (progress.disabled) $("lock").querySelector("[value=time]").checked = true;
    $("outline").querySelector("[value=arms]").disabled = lists[0].width !== lists[1].width || lists[0].height !== lists[1].height;
    if ($("outline").selectedOptions[0]?.disabled) $("outline").value = "before";
    $("part").replaceChildren(...(split === null
      ? [ways.progress.places.length ? `The films do not part: their visual progress never differs by more than ${apart} points for ${long} ms.` : "The films have no visual progress, so they cannot be kept together by it."]
      : ["The films part ", make("button", { type: "button", id: "to-part", textContent: `at ${number(split)} ms` }), `: from there on their visual progress differs by more than ${apart} points for at least ${long} ms. The dashed line in both strips is there.`]));
    choose(both(i => sheets[i].holds(regionOf(query.get("region")))).every(Boolean) ? regionOf(query.get("region")) : null);
    outlines();
    zoomed();
    levels();
    relock(query.has("at") ? Number(query.get("at")) : lock() === "time" ? split ?? places()[0] : 0);
  }

  const span = () => [ways.time.places[0], ways.time.places.at(-1)];

  // pictures shows those of a film's strip that fit, each where it begins.
  function pictures(i) {
    const curve = curves[i], list = lists[i], height = curve.box.clientWidth < 500 ? 32 : 54, width = Math.round(height * list.width / list.height);
    let free = -Infinity;
    side("place", i).querySelector(".pictures").replaceChildren(...list.strip.flatMap(p => {
      const x = curve.at(p.time_ms);
      if (p.time_ms < span()[0] || x < free || x + width > curve.box.clientWidth) return [];
      free = x + width + 2;
      const img = make("img", { src: `/runs/${encodeURIComponent(run)}/${p.file.split("/").map(encodeURIComponent).join("/")}`, alt: "", width, height, loading: "lazy" });
      img.style.left = `${x}px`;
      return [img];
    }));
  }

  // relock takes the place of the chosen lock that is next to a value.
  function relock(value) {
    steps = places().map(ways[lock()].at);
    $("place").ariaValueMax = steps.length - 1;
    let best = 0;
    places().forEach((p, i) => { if (Math.abs(p - value) < Math.abs(places()[best] - value)) best = i; });
    go(best);
  }

  function text() {
    const at = places()[place], frames = steps[place], ms = frames.map((f, i) => lists[i].time_ms[f]);
    const each = frames.map((f, i) => `${["control", "treatment"][i]} frame ${f}, ${number(ms[i])} ms${says(lists[i], f) && `, ${says(lists[i], f)}`}`);
    return lock() === "time" ? `At ${number(at)} ms: ${each.join("; ")}` : `At ${+at.toFixed(2)} % of visual progress: ${each.join("; ")}; the treatment ${Math.abs(ms[1] - ms[0]) < 0.0005 ? "at the same time" : `${signed(ms[1] - ms[0])} ms`}`;
  }

  // go shows a place, by its number.
  function go(i) {
    place = clamp(i, 0, steps.length - 1);
    $("readout").textContent = $("place").ariaValueText = text();
    $("place").ariaValueNow = place;
    delete $("views").dataset.place;
    steps[place].forEach((frame, i) => {
      curves[i].mark(frame);
      sheets[i].show(frame);
      const list = lists[i], box = side("views", i), where = new URLSearchParams({ run, trial: trials[i], frame });
      if (sheets[i].region) where.set("region", textOf(sheets[i].region));
      box.querySelector("span").textContent = `frame ${frame}, ${number(list.time_ms[frame])} ms, ${list.changed[frame] ? `${+shareOf(list, frame).toPrecision(3)} % changed` : "nothing changed"}`;
      box.querySelector("a").href = `/trial?${where}`;
      box.querySelector("a").ariaLabel = `Frames of trial ${trials[i]}`;
    });
    query.set("at", +places()[place].toFixed(3));
    query.set("lock", lock());
    keep();
  }

  // shown follows when a film has painted its frame.
  function shown(i) {
    sheets[i].picture.ariaLabel = `${names[i]}, frame ${sheets[i].film.at}`;
    if (sheets.some((s, i) => s.film?.at !== steps[place]?.[i])) return;
    if ($("outline").value === "arms") { const rects = between(sheets[0].film, sheets[1].film); sheets.forEach(s => s.mark(rects)); }
    $("views").dataset.place = place; // both films are where they should be
  }

  // between is the rectangle in which two films differ, with the pixels that do.
  function between(a, b) {
    const { width, height } = lists[0];
    let top = height, bottom = 0, from = width, to = 0, count = 0;
    for (let y = 0, i = 0; y < height; y++) {
      for (let x = 0; x < width; x++, i++) {
        if (a.words[i] === b.words[i]) continue;
        count++;
        if (y < top) top = y;
        bottom = y;
        if (x < from) from = x;
        if (x > to) to = x;
      }
    }
    $("differ").textContent = count ? `${count} pixels differ between the films.` : "The films show the same picture, to the last pixel.";
    if (!count) return [];
    const w = to - from + 1, h = bottom - top + 1, pixels = new Uint32Array(w * h);
    for (let y = 0, i = 0; y < h; y++) for (let x = 0, k = (top + y) * width + from; x < w; x++) pixels[i++] = a.words[k] ^ b.words[k++];
    return [{ x: from, y: top, w, h, pixels }];
  }

  // beside is the nearest place in a direction at which a film shows a change.
  function beside(way) {
    let i = place + way;
    const changes = i => steps[i].some((frame, k) => frame !== steps[i - 1][k] && lists[k].changed[frame]);
    while (i > 0 && i < steps.length - 1 && !changes(i)) i += way;
    return i;
  }
  const moves = { back: () => place - 1, on: () => place + 1, first: () => 0, last: () => steps.length - 1, before: () => beside(-1), after: () => beside(1) };

  function outlines() {
    const what = $("outline").value;
    sheets.forEach(s => Object.assign(s, { outline: what !== "none", held: what === "arms" }));
    $("differ").textContent = "";
    query.set("outline", what);
  }
  function zoomed() {
    sheets.forEach(s => s.zoomTo(Number($("zoom").value) || 0));
    query.set("zoom", $("zoom").value);
  }

  // choose takes a region and shows it on both films; chosen follows when it will not change at once.
  function choose(box) {
    sheets.forEach(s => { s.region = box; s.mark(); });
    $("region").value = box ? textOf(box) : "";
    $("no-region").disabled = !box;
    if (box) query.set("region", textOf(box)); else query.delete("region");
  }
  function chosen() {
    keep();
    load();
  }

  function levels() {
    const head = ["Visual progress, %", "Control, ms", "Treatment, ms", "Difference, ms"], shift = ([a, b]) => a === null || b === null ? null : b - a;
    const changes = () => lists.flatMap((list, i) => list.changed.flatMap((n, frame) => n ? [{ list, i, n, frame, share: shareOf(list, frame), progress: progressOf(list, frame) }] : []));
    $("levels").replaceChildren(numbers("When each progress was reached, as a table", `Visual progress of trials ${trials.join(" and ")}`, `${run}-pair-${$("pair").value}-progress`, () => ({
      head, rows: times(lists).map(({ level, ms }) => [String(+level.toFixed(3)), ...ms.map(v => v === null ? null : v.toFixed(1)), shift(ms) === null ? null : shift(ms).toFixed(1).replace("-", "−")]),
      csv: [["progress_percent", "control_ms", "treatment_ms", "difference_ms"], ...times(lists).map(({ level, ms }) => [level, ...ms.map(v => v ?? ""), shift(ms) === null ? "" : +shift(ms).toFixed(3)])],
    })), numbers("Frames with changes of both films, as a table", `Frames with changes of trials ${trials.join(" and ")}`, `${run}-pair-${$("pair").value}-frames`, () => ({
      head: ["Film", "Frame", "Time, ms", "Changed pixels", "Share, %", "Progress, %"],
      rows: changes().map(c => [names[c.i], c.frame, c.list.time_ms[c.frame].toFixed(1), c.n, c.share >= 0.01 ? c.share.toFixed(2) : c.share.toPrecision(2), c.progress]),
      csv: [["trial", "arm", "frame", "time_ms", "changed_pixels", "changed_percent", "progress_percent"],
        ...changes().map(c => [trials[c.i], ["control", "treatment"][c.i], c.frame, c.list.time_ms[c.frame], c.n, +c.share.toPrecision(6), c.progress ?? ""])],
    })));
  }

  $("pair").addEventListener("change", () => take(Number($("pair").value)));
  $("earlier").addEventListener("click", () => take(Number($("pair").value) - 1));
  $("later").addEventListener("click", () => take(Number($("pair").value) + 1));
  $("lock").addEventListener("change", () => {
    const [frame] = steps[place], list = lists[0]; // where the control is
    relock(lock() === "time" ? list.time_ms[frame] : ways.time.reached[0][Math.max(frame - list.start_frame, 0)] ?? 0);
  });
  $("part").addEventListener("click", e => {
    if (e.target.id !== "to-part") return;
    $("lock").querySelector("[value=time]").checked = true;
    relock(split);
  });
  $("moves").addEventListener("click", e => { const to = e.target.dataset.to; if (to) go(moves[to]()); });
  $("zoom").addEventListener("change", () => { zoomed(); keep(); });
  $("outline").addEventListener("change", () => { outlines(); sheets.forEach(s => s.mark([])); go(place); });
  $("no-region").addEventListener("click", () => { choose(null); chosen(); $("region").focus(); });
  $("region").addEventListener("change", () => {
    const box = $("region").value.trim() ? regionOf($("region").value) : null, fits = !$("region").value.trim() || sheets.every(s => s.holds(box));
    $("unseen").textContent = fits ? "" : `The region is not inside the frame of ${lists[0].width} × ${lists[0].height} pixels: write X,Y,WIDTH,HEIGHT.`;
    if (fits) { choose(box); chosen(); }
  });
  for (const i of [0, 1]) {
    side("place", i).querySelector(".curve").addEventListener("click", e => {
      const frame = curves[i].under(e.clientX), list = lists[i];
      relock(lock() === "time" ? list.time_ms[frame] : ways.time.reached[i][clamp(frame - list.start_frame, 0, ways.time.reached[i].length - 1)]);
    });
  }
  $("both").addEventListener("keydown", e => {
    const step = keys[e.key], view = e.target.closest(".view");
    if (step === undefined || !lists || e.altKey || e.ctrlKey || e.metaKey || e.target.closest("input, select, summary, .wide-table")) return;
    if (view && view.scrollWidth > view.clientWidth && typeof step === "number" && !e.shiftKey) return; // it scrolls
    e.preventDefault();
    go(typeof step === "number" ? place + step * (e.shiftKey ? 10 : 1) : moves[step]());
  });
  for (const name of ["zoom", "outline"]) if ([...$(name).options].some(o => o.value === query.get(name))) $(name).value = query.get(name);
  if (query.get("lock") === "progress") $("lock").querySelector("[value=progress]").checked = true;
  return { offer, take };
}
