// A frame of a film on the page: its picture without loss, outlines of what changed in it, and a region that can be drawn on it.
import { Film, outlined } from "./film.js";

const clamp = (v, low, high) => Math.min(Math.max(v, low), high);

// regionOf reads X,Y,WIDTH,HEIGHT, and textOf writes it; null is no region.
export const regionOf = text => { const [x, y, w, h, ...more] = (text || "").split(",").map(Number); return [x, y, w, h].every(Number.isInteger) && !more.length ? { x, y, w, h } : null; };
export const textOf = r => r && [r.x, r.y, r.w, r.h].join(",");

export class Sheet {
  // box holds the canvas of the picture and that of the marks. told has the functions that are called: shown with a frame that
  // is painted, failed with an error, drawn with a region while it is drawn, and chosen when it will not change at once.
  constructor(box, told) {
    const [picture, marks] = box.querySelectorAll("canvas");
    this.picture = picture;
    this.marks = marks;
    this.box = box;
    this.told = told;
    this.paint = picture.getContext("2d", { alpha: false });
    this.over = marks.getContext("2d");
    this.list = this.film = this.region = this.later = this.stepping = this.drawing = null;
    this.held = false; // where it is set, somebody else says what to mark when a frame is shown
    this.outline = true;
    this.rects = [];
    this.zoom = 0;
    box.addEventListener("pointerdown", e => {
      if (e.button || e.pointerType === "touch" || !this.list) return; // a finger scrolls
      this.drawing = this.place(e);
      box.setPointerCapture(e.pointerId);
    });
    box.addEventListener("pointermove", e => {
      if (!this.drawing) return;
      const to = this.place(e), [x, y] = [Math.min(this.drawing.x, to.x), Math.min(this.drawing.y, to.y)];
      const w = Math.abs(this.drawing.x - to.x), h = Math.abs(this.drawing.y - to.y);
      if (w > 2 && h > 2) told.drawn({ x, y, w, h });
    });
    for (const end of ["pointerup", "pointercancel"]) box.addEventListener(end, () => { if (this.drawing) { this.drawing = null; told.chosen(); } });
  }

  // use begins another film.
  use(list, address) {
    Object.assign(this, { list, film: new Film(list, address), rects: [] });
    for (const canvas of [this.picture, this.marks]) Object.assign(canvas, { width: list.width, height: list.height });
    delete this.picture.dataset.frame;
    this.zoomTo(this.zoom);
  }

  // show shows a frame. One that comes while another is being shown waits, and only the newest waits.
  show(frame) {
    this.wanted = frame;
    return this.stepping ||= (async () => {
      try {
        for (let shown = null, of = null; shown !== this.wanted || of !== this.film;) {
          const frame = this.wanted, film = this.film, rects = await film.show(frame, this.paint);
          if (film !== this.film) continue;
          [shown, of] = [frame, film];
          this.rects = rects;
          if (!this.held) this.mark();
          film.ahead(frame);
          this.picture.dataset.frame = frame;
          this.told.shown(frame);
        }
      } catch (e) { this.told.failed(e); } finally { this.stepping = null; }
    })();
  }

  // mark draws the boxes of what changed, at once; the outlines of the pixels when nobody steps on.
  mark(rects = this.rects) {
    this.rects = rects;
    if (!this.list) return;
    clearTimeout(this.later);
    const { over } = this, { width, height } = this.list, unit = Math.max(1, width / (this.picture.clientWidth || width));
    over.clearRect(0, 0, width, height);
    const box = (r, colour, dash) => {
      over.strokeStyle = colour;
      over.lineWidth = 2 * unit;
      over.setLineDash(dash.map(d => d * unit));
      over.strokeRect(r.x - unit, r.y - unit, r.w + 2 * unit, r.h + 2 * unit);
    };
    if (this.outline) {
      for (const r of rects) box(r, "#ff00c8", []);
      this.later = setTimeout(() => {
        for (const r of rects) over.drawImage(bitmapOf(outlined(r, 0xffc800ff)), r.x, r.y);
        if (this.region) box(this.region, "#ff8a00", [6, 4]);
      }, 120);
    }
    if (this.region) box(this.region, "#ff8a00", [6, 4]);
  }

  // zoomTo shows one pixel of the frame as one of the screen, or several, whatever the scale of the page; 0 fits the frame in.
  zoomTo(zoom) {
    this.zoom = zoom;
    this.box.classList.toggle("fit", !zoom);
    for (const canvas of [this.picture, this.marks]) {
      canvas.style.width = zoom && this.list ? `${this.list.width * zoom / devicePixelRatio}px` : "";
      canvas.style.height = zoom && this.list ? `${this.list.height * zoom / devicePixelRatio}px` : "";
    }
    this.mark();
  }

  // place is where in the frame an event is.
  place(e) {
    const box = this.picture.getBoundingClientRect(), { width, height } = this.list;
    return { x: clamp(Math.floor((e.clientX - box.left) / box.width * width), 0, width), y: clamp(Math.floor((e.clientY - box.top) / box.height * height), 0, height) };
  }

  // holds says whether a region is inside the frame.
  holds(r) {
    return Boolean(r) && [r.x, r.y, r.w, r.h].every(Number.isInteger) && r.x >= 0 && r.y >= 0 && r.w > 0 && r.h > 0 && r.x + r.w <= this.list.width && r.y + r.h <= this.list.height;
  }
}

// bitmapOf makes of an image what can be drawn over something else.
function bitmapOf(image) {
  const canvas = Object.assign(document.createElement("canvas"), { width: image.width, height: image.height });
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}
