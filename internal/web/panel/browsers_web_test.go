package panel

// browsersPage: somebody looks at a page in two browsers, chooses another metric, and shares the link.
func browsersPage() pageTest {
	return pageTest{"/browsers", `
	await until(() => $("side").rows.length === 2);
	const rows = () => [...$("side").rows].map(r => [...r.cells].slice(0, 5).map(c => c.textContent).join(", ")).join("; ");
	says.push("choice: " + [$("page").options.length > 1, $("page").selectedOptions[0].textContent].join("; "));
	says.push("head: " + [$("one-head").textContent, $("unit").textContent].join("; "));
	says.push("rows: " + rows());
	says.push("chart: " + [$("chart").querySelectorAll("circle").length, $("chart").querySelectorAll(".interval").length, parseFloat($("chart").querySelector("circle").getAttribute("cx")) > parseFloat($("chart").querySelectorAll("circle")[1].getAttribute("cx"))].join("; "));
	says.push("csv: " + decodeURIComponent($("csv").href).split("\n").slice(0, 2).map(line => line.trim().split(",").slice(-9).join(",")).join("; "));
	set($("metric"), "unique_fps");
	await until(() => $("past").search.includes("unique_fps"));
	says.push("link: " + location.search);
	says.push("past: " + $("past").search);
	says.push("then: " + [$("one-head").textContent, rows()].join("; "));
	set($("page"), [...$("page").options].find(o => o.textContent.includes("only")).value);
	await until(() => $("side").rows.length === 1);
	says.push("one: " + $("facts").textContent.includes("make one in another browser"));`, []string{
		"choice: true; www.shop.example · “checkout” · link 4g (chromium, firefox-esr)",
		"head: SpeedIndex: www.shop.example · “checkout” · link 4g; Median, ms",
		"rows: chromium, –, 990, 965 – 1020, 10 of 0; firefox-esr, –, 895, 870 – 925, 10 of 0",
		"chart: 2; 2; true",
		"csv: browser,device,run,started,trials,valid,median_ms,low_ms,high_ms; chromium,,20260330-090000-checkout,2026-03-30T09:00:00Z,0,10,989.6830687929684,964.6830687929684,1019.6830687929684",
		"link: ?name=checkout&page=https%3A%2F%2Fwww.shop.example%2F&link=4g&metric=unique_fps",
		"past: ?name=checkout&page=https%3A%2F%2Fwww.shop.example%2F&link=4g&browsers=all&metric=unique_fps",
		"then: Unique frame rate: www.shop.example · “checkout” · link 4g; chromium, –, 1190, 965 – 1220, 10 of 0; firefox-esr, –, 1095, 870 – 1125, 10 of 0",
		"one: true",
	}, 1, "", `
	await until(() => $("side").rows.length);
	// The test's runs have no trials.
	for (const r of $("side").rows) r.cells[4].textContent = "10 of 10"`}
}
