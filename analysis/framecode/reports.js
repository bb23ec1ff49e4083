(() => {
	'use strict';
	if (!globalThis.document || window !== window.top || !window.PerformanceObserver) return;
	const send = window.fetch, later = window.setTimeout, queue = [];
	let timer = 0, told = 0;
	const area = r => r && r.width > 0 && r.height > 0 ? [r.left, r.top, r.right - r.left, r.bottom - r.top].map(v => Math.round(v * devicePixelRatio)) : null;
	const add = (kind, name, at, lasts, rect) => {
		if (told++ >= 2000) return;
		queue.push({kind: kind, name: String(name).slice(0, 200), page_ms: at, duration_ms: lasts || 0, box: area(rect)});
		if (!timer) timer = later(flush, 250);
	};
	const largest = (kind, selector) => {
		let best = null, most = 0;
		for (const e of Array.from(document.querySelectorAll(selector)).slice(0, 500)) {
			const r = e.getBoundingClientRect();
			const w = Math.min(r.right, innerWidth) - Math.max(r.left, 0), h = Math.min(r.bottom, innerHeight) - Math.max(r.top, 0);
			if (w > 0 && h > 0 && w * h > most) {
				most = w * h;
				best = {left: Math.max(r.left, 0), top: Math.max(r.top, 0), right: Math.min(r.right, innerWidth), bottom: Math.min(r.bottom, innerHeight), width: w, height: h};
			}
		}
		if (best) queue.push({kind: 'hero', name: kind, page_ms: performance.now(), duration_ms: 0, box: area(best)});
	};
	const flush = () => {
		timer = 0;
		largest('heading', 'h1,h2');
		largest('image', 'img,picture,video,canvas:not([data-eidetic]),svg');
		send.call(window, 'BOX_PATHpage', {method: 'POST', keepalive: true, credentials: 'omit', body: JSON.stringify(queue.splice(0, 200))}).catch(() => {});
		if (queue.length) timer = later(flush, 250);
	};
	const watch = (type, tell) => {
		try {
			new PerformanceObserver(list => list.getEntries().forEach(tell)).observe({type: type, buffered: true});
		} catch (e) {
			return;
		}
	};
	watch('mark', e => add('mark', e.name, e.startTime));
	watch('measure', e => add('measure', e.name, e.startTime, e.duration));
	watch('paint', e => add('paint', e.name, e.startTime));
	watch('longtask', e => add('longtask', e.name, e.startTime, e.duration));
	watch('element', e => add('element', e.identifier || e.id || e.url, e.renderTime || e.loadTime, 0, e.intersectionRect));
	watch('largest-contentful-paint', e => add('lcp', e.element ? e.element.tagName.toLowerCase() + (e.id ? '#' + e.id : '') : e.url,
		e.startTime, 0, e.element && e.element.getBoundingClientRect()));
	addEventListener('load', () => later(() => add('load', 'load', performance.now()), 0));
})();
