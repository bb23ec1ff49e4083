const side = 128;

// One texture of four, by a Range request, painted pixel by pixel.
export async function material() {
  const answer = await fetch('https://cdn.shop.test/media/swatches.bin', {
    headers: { range: `bytes=0-${side * side * 4 - 1}` },
  });
  const pixels = new Uint8ClampedArray(await answer.arrayBuffer());
  const canvas = document.querySelector('#swatch');
  canvas.getContext('2d').putImageData(new ImageData(pixels, side, side), 0, 0);
  document.querySelector('#swatch-size').textContent = `${answer.status} · ${pixels.length.toLocaleString('en')} bytes`;
}
