package panel

// historyPage: somebody looks at a page in two browsers on one chart, and reads the numbers below it.
func historyPage() pageTest {
	return pageTest{"/history?name=checkout&page=https%3A%2F%2Fwww.shop.example%2F&link=4g&browsers=all", `
	await until(() => document.querySelectorAll(".series").length === 3 && document.querySelectorAll(".run-point").length);
	await charts();
	const [all, one] = document.querySelectorAll(".series .numbers"), file = box => decodeURIComponent(box.querySelector("a[download]").href.split(",").slice(1).join(",")).trim().split("\r\n");
	const line = tr => [...tr.cells].slice(1).map(c => c.textContent).join(", ");
	says.push("all: " + [all.querySelector("caption").textContent, all.querySelector("tbody").rows.length, line(all.querySelector("tbody").rows[0])].join("; "));
	says.push("file: " + [all.querySelector("a[download]").download, file(all).length, file(all)[0], file(all).filter(l => l.includes(",firefox-esr,")).length].join("; "));
	says.push("one: " + [one.querySelectorAll("tr.step").length, one.querySelector("tr.step strong").textContent.length > 10, one.querySelector("tbody").rows.length, file(one)[0]].join("; "));
	set($("metric"), "unique_fps");
	await until(() => document.querySelector(".chart svg[role]")?.getAttribute("aria-label").startsWith("Unique frame rate"));
	says.push("closed: " + document.querySelectorAll(".series .numbers table").length);
	$("steady").querySelector("details").open = true;
	await until(() => document.querySelectorAll("#steady tbody tr").length);
	says.push("steady: " + [...document.querySelectorAll("#steady tbody tr")].map(tr => [...tr.cells].map(c => c.textContent).join(", ")).join("; "));`, []string{
		"all: SpeedIndex of chromium, firefox-esr, the newest run first; 33; 10 of 0, 990, 965 – 1020, chromium",
		"file: checkout-browsers-speed_index_ms.csv; 34; run,started,browser,trials,valid,median_ms,low_ms,high_ms; 3",
		"one: 1; true; 30; run,started,trials,valid,median_ms,low_ms,high_ms",
		"closed: 0",
		"steady: the new checkoutwww.shop.example · link lte, 1, 11.1, 0.7, –, SpeedIndex; linkswww.shop.example · link lte, 1, 0.0, 1.6, –, SpeedIndex; " +
			"checkoutwww.shop.example · link 4g, 10, 0.0, 0.0, 0.8, SpeedIndex; checkoutwww.shop.example · link 4g · firefox-esr, 3, 0.0, 0.0, –, SpeedIndex",
	}, 3, "", noPicture}
}
