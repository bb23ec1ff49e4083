// A device's screen on a canvas: the server sends what has changed, and is told when that is shown, so that what comes
// next is the newest picture, however slow this page is.

// live opens the view at an address; on is told of each picture when it is drawn, of the pace while it goes on, of a
// problem in words, and of the end.
export function live(path, canvas, on) {
  const socket = new WebSocket(new URL(path, location.href.replace(/^http/, "ws")));
  const context = canvas.getContext("2d", { alpha: false });
  socket.binaryType = "arraybuffer";
  let last = Promise.resolve(), drawn = [], delay = 0, closed = false;
  socket.addEventListener("message", ({ data }) => {
    if (typeof data === "string") { last = last.then(() => closed || on.problem(JSON.parse(data).problem)); return; }
    const { head, images } = parts(data);
    last = last.then(async () => {
      const all = await images;
      if (closed) return;
      if (canvas.width !== head.width || canvas.height !== head.height) Object.assign(canvas, { width: head.width, height: head.height });
      draw(context, head, all);
      // The answer waits for this page's next frame, so that a busy page gets no more pictures than it can show.
      requestAnimationFrame(() => { if (!closed) socket.send("shown"); });
      drawn.push(performance.now());
      delay = head.delay_ns || 0;
      on.shows(head);
    });
  });
  const paces = setInterval(() => {
    const now = performance.now();
    drawn = drawn.filter(at => at > now - 1000);
    on.paces(drawn.length, delay);
  }, 500);
  const end = () => { clearInterval(paces); on.paces(0, 0); if (!closed) { closed = true; on.ended(); } };
  socket.addEventListener("close", end);
  return { close() { closed = true; socket.close(); } };
}

// draw applies a message: it copies what was scrolled, and draws the parts over it.
function draw(context, { move, parts }, images) {
  if (move) {
    const { x, y, width, height, dx = 0, dy = 0 } = move;
    context.drawImage(context.canvas, x + dx, y + dy, width, height, x, y, width, height);
  }
  images.forEach(({ value }, i) => { // a part that cannot be decoded is left out
    if (!value) return;
    context.drawImage(value, parts[i].x, parts[i].y);
    value.close();
  });
}

// decode begins to decode a picture. Firefox's createImageBitmap decodes on the page's own thread, its ImageDecoder does not.
const decode = self.ImageDecoder && navigator.userAgent.includes("Firefox/") ? async (data, type) => {
  const decoder = new ImageDecoder({ data, type });
  try { return (await decoder.decode()).image; } finally { decoder.close(); }
} : (data, type) => createImageBitmap(new Blob([data], { type }));

// parts reads a message, and begins to decode its pictures.
function parts(data) {
  const size = new DataView(data).getUint32(0);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, size)));
  let at = 4 + size;
  const images = head.parts.map(({ type, bytes }) => decode(new Uint8Array(data, (at += bytes) - bytes, bytes), type));
  return { head, images: Promise.allSettled(images) };
}
