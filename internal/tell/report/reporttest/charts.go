package reporttest

// Charts is a function for a page's script. It opens what stands closed below charts, and returns the number of charts
// that are seen, and those for which there is no table or no download: in the nearest part of the page that has a
// table, there must be a download for each chart. Rows of bars in a table are one chart with it. A gauge draws the
// numbers that are written beside it, and needs neither.
const Charts = `
	const charts = async () => {
		const frame = () => new Promise(yes => setTimeout(yes, 20)), saves = "a[download], [data-download]";
		for (let i = 0; i < 2; i++) await new Promise(requestAnimationFrame); // a chart is drawn once its width is known
		const closed = "details.numbers:not([open]:has(table)), details.events:not([open]:has(table))"; // also those that come with a later chart
		for (let i = 0, left; i < 200 && (left = document.querySelectorAll(closed)).length; i++) {
			for (const d of left) d.open = true;
			await frame();
		}
		const drawn = [...new Set([...document.querySelectorAll("main svg, main canvas")].filter(e => e.checkVisibility() && e.getBoundingClientRect().width > 80 && !e.closest("#pad, #view, .sheet, .gauge") && !e.parentElement.closest("svg"))
			.map(e => e.closest("table, .curve, .chart, #spread, .run-graph, .tl") || e))];
		const bare = drawn.filter(c => {
			let box = c;
			while (box.tagName !== "MAIN" && !((box.matches("table") || box.querySelector("table")) && box.querySelector(saves))) box = box.parentElement;
			return !box.querySelector("table") || box.querySelectorAll(saves).length < drawn.filter(o => box.contains(o)).length;
		});
		return [drawn.length, ...bare.map(c => "no table or no download: " + c.cloneNode().outerHTML.slice(0, 120))];
	};
`
