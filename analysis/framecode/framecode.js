(() => {
	'use strict';
	if (!globalThis.document || window !== window.top) return;
	const cells = 100, side = 4;
	const canvas = document.createElement('canvas');
	canvas.width = cells * side;
	canvas.height = side;
	canvas.dataset.eidetic = 'code';
	canvas.style.cssText = 'position:fixed;left:0;top:0;margin:0;padding:0;border:0;z-index:2147483647;pointer-events:none;' +
		'transform:none;opacity:1;display:block;width:' + cells * side / devicePixelRatio + 'px;height:' + side / devicePixelRatio + 'px';
	const pen = canvas.getContext('2d', {alpha: false});
	const picture = pen.createImageData(cells * side, side);
	const words = new Uint32Array(picture.data.buffer);
	const bits = new Uint8Array(cells);
	let counter = 0;
	const put = (at, n, value) => {
		for (let i = n - 1; i >= 0; i--, value = Math.floor(value / 2)) bits[at + i] = value % 2;
	};
	const draw = () => {
		const own = typeof window.eideticBits === 'function' ? window.eideticBits() : Math.round(window.scrollY);
		put(0, 8, 0b10110010);
		put(8, 20, counter++ % 1048576);
		put(28, 32, Math.round(performance.now() * 10) % 4294967296);
		put(60, 24, Math.max(0, own) % 16777216);
		let crc = 0xffff;
		for (let i = 0; i < 80; i++) {
			const bit = i < 76 ? bits[8 + i] : 0;
			const top = crc >> 15;
			crc = crc << 1 & 0xffff;
			if (top !== bit) crc ^= 0x1021;
		}
		put(84, 16, crc);
		for (let i = 0; i < words.length; i++) words[i] = bits[Math.floor(i % (cells * side) / side)] ? 0xffffffff : 0xff000000;
		pen.putImageData(picture, 0, 0);
	};
	// Other callbacks of the same animation frame may scroll after ours. Observers of sizes are
	// called when all of them and layout are over, and what they draw is still painted with it.
	const probe = document.createElement('div');
	probe.style.cssText = 'position:fixed;left:0;top:0;height:1px;visibility:hidden;pointer-events:none';
	new ResizeObserver(draw).observe(probe);
	let wide = false;
	const frame = () => {
		const root = document.documentElement;
		if (root && !canvas.isConnected) root.append(canvas);
		if (root && !probe.isConnected) root.append(probe);
		wide = !wide;
		probe.style.width = wide ? '2px' : '1px';
		requestAnimationFrame(frame);
	};
	requestAnimationFrame(frame);
})();
