// The curve of differences: for each column of the chart a bar for the frame in it that changed most, on a logarithmic
// scale, and visual progress as a line. The frames stand side by side, or, where a span of time is given, at their times.
import { svg, ticks } from "./svg.js";

const top = 10, bottom = 24, left = 52, right = 40;
const least = 1e-4; // %, where the scale begins

// level places a share in % between 0 and 1.
const level = share => Math.min(Math.max(Math.log10(share / least) / Math.log10(100 / least), 0), 1);

export const shareOf = (list, i) => 100 * list.changed[i] / list.pixels;
export const progressOf = (list, i) => list.progress[i - list.start_frame];

// frameAt is the frame that the screen showed at an instant: the last one that was taken by then.
export function frameAt(list, ms) {
  let low = 0, high = list.time_ms.length;
  while (high - low > 1) { const middle = (low + high) >> 1; if (list.time_ms[middle] <= ms) low = middle; else high = middle; }
  return low;
}

// keys says by which frames, or where to, a key goes.
export const keys = { ArrowLeft: -1, ArrowRight: 1, Home: "first", End: "last", PageUp: "before", PageDown: "after" };

export class Curve {
  // span is the time from and to which the curve reaches, in ms; without it the curve has all frames.
  constructor(box) {
    this.box = box;
    this.list = this.span = this.flag = this.drawn = null;
    this.cursor = svg("line", { class: "cursor", y1: top });
    new ResizeObserver(() => this.draw()).observe(box);
  }

  // flag is an instant to mark, or null.
  set(list, span = null, flag = null) { Object.assign(this, { list, span, flag }); this.draw(); }

  // at is the place of an instant, where a span is given.
  at(ms) { return left + (ms - this.span[0]) * this.scale; }

  x(i) { return this.span ? this.at(this.list.time_ms[i]) : left + (i + 0.5) * this.scale; }

  draw() {
    const { list } = this, width = Math.round(this.box.clientWidth), height = this.box.clientHeight;
    if (!list || !width) return;
    const n = list.changed.length;
    const first = this.span ? frameAt(list, this.span[0]) : 0, inside = width - left - right;
    this.scale = inside / (this.span ? this.span[1] - this.span[0] || 1 : n);
    const y = v => height - bottom - v * (height - top - bottom);
    const picture = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
    for (const [share, label] of [[100, "100 %"], [1, "1 %"], [0.01, "0.01 %"], [least, "0"]]) {
      picture.append(svg("line", { class: "grid", x1: left, x2: width - right, y1: y(level(share)), y2: y(level(share)) }),
        svg("text", { x: left - 8, y: y(level(share)) + 4, "text-anchor": "end" }, label));
    }
    if (list.progress.length) for (const p of [0, 50, 100]) picture.append(svg("text", { x: width - right + 6, y: y(p / 100) + 4 }, p));
    // Times stand where a frame has them: lost frames make the axis uneven, and the frame's number is what is stepped.
    const time = (x, ms) => picture.append(svg("text", { x, y: height - 6, "text-anchor": "middle" }, `${Math.round(ms)} ms`.replace("-", "−")));
    if (this.span) for (const ms of ticks(...this.span, Math.max(1, Math.floor(inside / 110)))) time(this.at(ms), ms);
    else for (let k = 0, free = 0; k <= 6; k++) {
      const i = Math.min(Math.round(k * n / 6), n - 1);
      if (this.x(i) < free || this.x(i) > width - right) continue;
      free = this.x(i) + 70;
      time(this.x(i), list.time_ms[i]);
    }
    this.peaks = []; // of each column, the frame that changed most
    let bars = "";
    for (let i = first; i < n; i++) {
      const column = Math.floor(this.x(i)), best = this.peaks[column];
      if (best === undefined || list.changed[i] > list.changed[best]) this.peaks[column] = i;
    }
    this.peaks.forEach((i, column) => { if (list.changed[i]) bars += `M${this.span || this.scale > 1 ? this.x(i) : column + 0.5} ${height - bottom}V${Math.min(y(level(shareOf(list, i))), height - bottom - 3)}`; });
    picture.append(svg("path", { class: "bars", d: bars, "stroke-width": Math.max(1, Math.min(inside / (n - first) * 0.8, 6)) }));
    const points = list.progress.flatMap((p, k) => list.start_frame + k < n ? [`${this.x(list.start_frame + k)} ${y(p / 100)}`] : []);
    if (points.length) picture.append(svg("path", { class: "progress", d: `M${points.join("L")}` }), svg("line", { class: "start", x1: this.x(list.start_frame), x2: this.x(list.start_frame), y1: top, y2: height - bottom }));
    if (this.flag !== null) picture.append(svg("line", { class: "flag", x1: this.at(this.flag), x2: this.at(this.flag), y1: top, y2: height - bottom }));
    this.cursor.setAttribute("y2", height - bottom);
    picture.append(this.cursor);
    this.box.replaceChildren(picture);
    if (this.marked !== undefined) this.mark(this.marked);
    this.drawn?.();
  }

  // mark moves the cursor.
  mark(i) {
    this.marked = i;
    if (!this.list) return;
    this.cursor.setAttribute("x1", this.x(i));
    this.cursor.setAttribute("x2", this.x(i));
  }

  // under is the frame at a place: where several share a column, the one that changed most.
  under(clientX) {
    const x = clientX - this.box.getBoundingClientRect().left, n = this.list.changed.length;
    if (this.span) return this.peaks[Math.floor(x)] ?? frameAt(this.list, this.span[0] + (x - left) / this.scale);
    const i = Math.min(Math.max(Math.floor((x - left) / this.scale), 0), n - 1);
    return this.scale < 1 ? this.peaks[Math.floor(this.x(i))] ?? i : i;
  }
}
