// The frames of a reel, without loss. The server sends pieces of differences (internal/tell/frames says in which form);
// each moves rows and is exclusive-ored onto the picture to go on, and the opposite to go back.

const kept = 5; // pieces in memory; each is a few frames' size at most
const opaque = 0xff000000;

// read cuts a piece's words into frames: each is { frame, moved: { x, y, w, h, rows } or null, rects: [{ x, y, w, h, pixels }] }.
export function read(bytes) {
  const words = new Uint32Array(bytes), frames = [];
  for (let at = 0; at < words.length;) {
    const one = { frame: words[at] | 0, moved: null, rects: [] }, rows = words[at + 5] | 0;
    if (rows) one.moved = { x: words[at + 1], y: words[at + 2], w: words[at + 3], h: words[at + 4], rows };
    let n = words[at + 6];
    for (at += 7; n > 0; n--) {
      const [x, y, w, h] = words.subarray(at, at + 4);
      one.rects.push({ x, y, w, h, pixels: words.subarray(at + 4, at + 4 + w * h) });
      at += 4 + w * h;
    }
    frames.push(one);
  }
  return frames;
}

export class Film {
  constructor(list, address) {
    this.list = list;
    this.address = address;
    this.at = -2;
    this.pieces = new Map();
    this.image = new ImageData(list.width, list.height);
    this.words = new Uint32Array(this.image.data.buffer);
  }

  // start is the first frame of the piece that has a frame's differences.
  start(frame) {
    const pieces = this.list.pieces;
    let low = 0, high = pieces.length;
    while (high - low > 1) { const middle = (low + high) >> 1; if (pieces[middle] <= frame) low = middle; else high = middle; }
    return pieces[low];
  }

  // piece fetches the piece that begins with a frame, or has it already. Its base, a whole frame, is only fetched where it
  // is needed.
  piece(first, base) {
    let entry = this.pieces.get(first);
    if (!entry || base && !entry.base) {
      entry = { frames: null, base };
      entry.ready = fetch(`${this.address}/${first}/differences?base=${base}`, { credentials: "same-origin" }).then(async answer => {
        if (!answer.ok) throw Object.assign(new Error((await answer.json().catch(() => ({}))).detail || answer.statusText), { status: answer.status });
        return entry.frames = read(await answer.arrayBuffer());
      });
      entry.ready.catch(() => this.pieces.delete(first)); // the next one asks again
    }
    this.pieces.delete(first);
    this.pieces.set(first, entry); // the newest is last
    for (const old of this.pieces.keys()) {
      if (this.pieces.size <= kept) break;
      this.pieces.delete(old);
    }
    return entry;
  }

  // ahead fetches the pieces on both sides.
  ahead(frame) {
    const { pieces } = this.list, i = pieces.indexOf(this.start(frame));
    for (const first of [pieces[i - 1], pieces[i + 1], pieces[i]]) if (first !== undefined) this.piece(first, false);
  }

  has(frame) { return this.pieces.get(this.start(frame))?.frames?.[frame - this.start(frame) + 1]; }

  // rotate moves the rows of an area; what leaves it comes in at the other end.
  rotate({ x, y, w, h }, rows) {
    const before = this.copy({ x, y, w, h }), { words } = this, width = this.list.width;
    for (let row = 0; row < h; row++) words.set(before.subarray(row * w, row * w + w), (y + (row + rows + h) % h) * width + x);
  }

  copy({ x, y, w, h }) {
    const out = new Uint32Array(w * h), width = this.list.width;
    for (let row = 0, at = y * width + x; row < h; row++, at += width) out.set(this.words.subarray(at, at + w), row * w);
    return out;
  }

  flip({ rects }) {
    const { words } = this, width = this.list.width;
    for (const { x, y, w, h, pixels } of rects) {
      for (let row = 0, from = 0; row < h; row++) {
        let to = (y + row) * width + x;
        for (const end = from + w; from < end;) words[to++] ^= pixels[from++];
      }
    }
  }

  // on makes the picture the next one by its difference, and back undoes that. What they change is added to dirty.
  on(one, dirty) {
    if (one.moved) this.rotate(one.moved, one.moved.rows);
    this.flip(one);
    dirty.push(...one.moved ? [one.moved] : one.rects);
  }

  back(one, dirty) {
    this.flip(one);
    if (one.moved) this.rotate(one.moved, -one.moved.rows);
    dirty.push(...one.moved ? [one.moved] : one.rects);
  }

  // rects are the rectangles in which the frame that is shown differs from the one before. Where an area has moved, its pixels
  // are compared when somebody asks for them, while the frame is still shown.
  rects(one) {
    if (!one.moved) return one.rects;
    const film = this, { x, y, w, h } = one.moved;
    return [{ x, y, w, h, get pixels() {
      const now = film.copy(one.moved);
      film.back(one, []);
      const before = film.copy(one.moved);
      film.on(one, []);
      for (let i = 0; i < now.length; i++) now[i] ^= before[i];
      return now;
    } }];
  }

  // near says whether the way to a frame leads over differences that are here, or in the frame's own piece.
  near(frame) {
    if (this.at < 0) return false;
    const own = this.start(frame);
    for (let i = Math.min(frame, this.at) + 1; i <= Math.max(frame, this.at); i++) if (this.start(i) !== own && !this.has(i)) return false;
    return Math.abs(frame - this.at) <= 60;
  }

  // show makes the picture that of a frame, and paints what that changes. It returns the rectangles in which the frame
  // differs from the one before.
  async show(frame, context) {
    const first = this.start(frame), near = this.near(frame), frames = await this.piece(first, !near).ready;
    let dirty = [];
    if (near && this.near(frame)) {
      while (this.at < frame) this.on(this.has(++this.at), dirty);
      while (this.at > frame) this.back(this.has(this.at--), dirty);
    } else if (near) { // a piece has gone meanwhile
      return this.show(frame, context);
    } else {
      this.words.fill(opaque);
      for (let i = 0; i <= frame - first + 1; i++) this.on(frames[i], dirty);
      this.at = frame;
      dirty = [{ x: 0, y: 0, w: this.list.width, h: this.list.height }];
    }
    for (const { x, y, w, h } of dirty) context.putImageData(this.image, 0, 0, x, y, w, h);
    return frame ? this.rects(frames[frame - first + 1]) : []; // the first frame has none before it
  }
}

// outlined paints the border of each changed area of a rectangle: pixels that changed beside some that did not.
export function outlined({ w, h, pixels }, colour) {
  const image = new ImageData(w, h), out = new Uint32Array(image.data.buffer);
  for (let y = 0, i = 0; y < h; y++) {
    for (let x = 0; x < w; x++, i++) {
      if (pixels[i] && !(x && y && x < w - 1 && y < h - 1 && pixels[i - 1] && pixels[i + 1] && pixels[i - w] && pixels[i + w])) out[i] = colour;
    }
  }
  return image;
}
