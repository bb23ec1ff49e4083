(() => {
	'use strict';
	if (!globalThis.document || window !== window.top || !window.PerformanceObserver) return;
	const send = window.fetch, later = window.setTimeout, queue = [], heard = [], clock = performance;
	const own = window[Symbol.for('eidetic')], origin = own && own.origin || 0;
	const doc = location.href.slice(0, 200) + ' ' + clock.now();
	let timer = 0, told = 0, posts = 0, pings = 2;
	const area = r => r && r.width > 0 && r.height > 0 ? [r.left, r.top, r.right - r.left, r.bottom - r.top].map(v => Math.round(v * devicePixelRatio)) : null;
	const soon = () => {
		if (!timer) timer = later(flush, 250);
	};
	const add = (kind, name, at, lasts, rect, value) => {
		if (told++ >= 2000) return;
		queue.push({kind: kind, name: String(name).slice(0, 200), page_ms: at, duration_ms: lasts || 0, value: value || 0, box: area(rect)});
		soon();
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
		if (best) queue.push({kind: 'hero', name: kind, page_ms: clock.now(), duration_ms: 0, box: area(best)});
	};
	// Each post carries the page's clock, and when the answer to an earlier one came: by both the box joins the clocks.
	const flush = () => {
		timer = 0;
		const n = ++posts;
		if (HEROES && queue.length) {
			largest('heading', 'h1,h2');
			largest('image', 'img,picture,video,canvas:not([data-eidetic]),svg');
		}
		const body = {doc: doc, origin_ms: origin, n: n, heard: heard.splice(0), list: queue.splice(0, 150)};
		body.sent_ms = clock.now();
		send.call(window, 'BOX_PATHpage', {method: 'POST', keepalive: true, credentials: 'omit', body: JSON.stringify(body)}).then(() => {
			heard.push([n, clock.now()]);
			if (pings-- > 0) soon();
		}, () => {});
		if (queue.length) soon();
	};
	const watch = (type, tell, more) => {
		try {
			new PerformanceObserver(list => list.getEntries().forEach(tell)).observe(Object.assign({type: type, buffered: true}, more));
		} catch (e) {
			return;
		}
	};
	watch('mark', e => add('mark', e.name, e.startTime));
	watch('measure', e => add('measure', e.name, e.startTime, e.duration));
	watch('paint', e => add('paint', e.name, e.startTime));
	watch('longtask', e => add('longtask', e.name, e.startTime, e.duration));
	watch('layout-shift', e => add('shift', e.hadRecentInput ? 'after input' : 'unexpected', e.startTime, 0, null, e.value));
	watch('event', e => add('event', e.name, e.startTime, e.duration), {durationThreshold: 104});
	watch('element', e => add('element', e.identifier || e.id || e.url, e.renderTime || e.loadTime, 0, e.intersectionRect));
	watch('largest-contentful-paint', e => add('lcp', e.element ? e.element.tagName.toLowerCase() + (e.id ? '#' + e.id : '') : e.url,
		e.startTime, 0, e.element && e.element.getBoundingClientRect()));
	addEventListener('load', () => later(() => add('load', 'load', clock.now()), 0));
})();
