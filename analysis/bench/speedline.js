// Run speedline on raw RGB frames. Usage: node speedline.js MODULES FILE
// FILE is JSON: a list of loads, each {width, height, times, frames} with frames in base64,
// the white page first. Prints one JSON line a load.
'use strict';
const fs = require('fs');
const path = require('path');
const speed = require(path.join(process.argv[2], 'speedline-core/lib/speed-index.js'));
const frame = require(path.join(process.argv[2], 'speedline-core/lib/frame.js'));
for (const load of JSON.parse(fs.readFileSync(process.argv[3]))) {
	const began = process.cpuUsage();
	const frames = load.frames.map((text, i) => {
		const rgb = Buffer.from(text, 'base64');
		const data = Buffer.alloc(rgb.length / 3 * 4, 255);
		for (let k = 0; k < rgb.length / 3; k++) rgb.copy(data, 4 * k, 3 * k, 3 * k + 3);
		const f = frame.create(data, load.times[i] + 1000);
		f.getParsedImage = () => ({data, width: load.width, height: load.height});
		return f;
	});
	speed.calculateVisualProgress(frames);
	speed.calculatePerceptualProgress(frames);
	const r = speed.calculateSpeedIndexes(frames, {startTs: 1000});
	const used = process.cpuUsage(began);
	console.log(JSON.stringify({seconds: (used.user + used.system) / 1e6, index: r.speedIndex, perceptual: r.perceptualSpeedIndex}));
}
