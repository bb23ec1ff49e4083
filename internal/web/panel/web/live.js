// A device's screen on a canvas: the server sends what has changed, and is told when that is shown, so that what comes
// next is the newest picture, however slow this page is.

// live opens the view at an address; on is told of each picture when it is drawn, of a problem in words, and of the end.
export function live(path, canvas, on) {
  const socket = new WebSocket(new URL(path, location.href.replace(/^http/, "ws")));
  const context = canvas.getContext("2d", { alpha: false });
  socket.binaryType = "arraybuffer";
  let last = Promise.resolve(), drawn = [], closed = false;
  socket.addEventListener("message", ({ data }) => {
    if (typeof data === "string") { last = last.then(() => closed || on.problem(JSON.parse(data).problem)); return; }
    const { head, images } = parts(data);
    last = last.then(async () => {
      const all = await images;
      if (closed) return;
      if (canvas.width !== head.width || canvas.height !== head.height) Object.assign(canvas, { width: head.width, height: head.height });
      all.forEach(({ value }, i) => { // a part that cannot be decoded is left out
        if (!value) return;
        context.drawImage(value, head.parts[i].x, head.parts[i].y);
        value.close();
      });
      socket.send("shown");
      const now = performance.now();
      drawn = [...drawn.filter(at => at > now - 1000), now];
      on.shows(head, drawn.length);
    });
  });
  const end = () => { if (!closed) { closed = true; on.ended(); } };
  socket.addEventListener("close", end);
  return { close() { closed = true; socket.close(); } };
}

// parts reads a message, and begins to decode its pictures.
function parts(data) {
  const size = new DataView(data).getUint32(0);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, size)));
  let at = 4 + size;
  const images = head.parts.map(({ type, bytes }) => {
    const picture = createImageBitmap(new Blob([new Uint8Array(data, at, bytes)], { type }));
    at += bytes;
    return picture;
  });
  return { head, images: Promise.allSettled(images) };
}
