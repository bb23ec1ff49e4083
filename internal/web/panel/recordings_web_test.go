package panel

// recordingsPage: a recording is uploaded, looked into, and deleted.
func recordingsPage() pageTest {
	return pageTest{"/recordings", `
	await until(() => $("uploads").rows.length === 1);
	says.push("list: " + [...$("uploads").rows[0].cells].slice(0, 2).map(c => c.textContent).join("; ") + "; " + ($("made").rows.length > 0));
	const file = text => { const d = new DataTransfer(); d.items.add(new File([text], "my <b>shop.wacz")); $("upload").elements.file.files = d.files; $("upload").elements.file.dispatchEvent(new Event("change", { bubbles: true })); };
	file("no recording");
	const name = $("upload").elements.name.value;
	press($("upload"), "Upload");
	const alert = $("upload").querySelector("[role=alert]");
	await until(() => alert.textContent);
	says.push("refused: " + [name, alert.textContent].join("; "));
	file("PK, a recording");
	set($("upload").elements.name, "shop.wacz");
	press($("upload"), "Upload");
	await until(() => $("requests").rows.length === 2 && document.activeElement.id === "one-head");
	says.push("stored: " + [$("did").textContent, new URLSearchParams(location.search).get("name"), $("one-head").textContent].join("; "));
	says.push("facts: " + $("facts").textContent);
	says.push("quality: " + $("quality").textContent);
	says.push("problems: " + [...$("problems").children].map(li => li.textContent).join("; "));
	says.push("last: " + $("last").textContent);
	const row = $("requests").rows[1], rects = [...row.querySelectorAll("rect")];
	says.push("waterfall: " + [...row.cells].slice(0, 6).map(c => c.textContent).join("; ") + "; " + row.className + "; " + rects.map(r => r.getAttribute("x") + "+" + r.getAttribute("width")).join(", "));
	says.push("drawn: " + (await charts()).join(" "));
	const sorts = [];
	for (let i = 0; i < 3; i++) {
		press($("fall"), "Status");
		sorts.push([...$("requests").rows].map(r => r.cells[1].textContent).join(" ") + " " + new URLSearchParams(location.search).get("sort") + " " + $("fall").querySelectorAll("th")[1].ariaSort);
	}
	says.push("sorted: " + sorts.join("; "));
	set($("find"), "404");
	await until(() => $("requests").rows.length === 1);
	says.push("found: " + [$("count").textContent, new URLSearchParams(location.search).get("find"), decodeURIComponent($("csv").href).split("\n").length].join("; "));
	const changed = $("change"), make = changed.elements;
	says.push("change: " + [seen("rename"), seen("change"), make.into.value, seen("pages")].join("; "));
	set(make.leave, "*/b.js");
	says.push("effect: " + $("effect").textContent);
	set(make.leave, "");
	press(changed, "Make it");
	await until(() => changed.querySelector("[role=alert]").textContent);
	says.push("not changed: " + changed.querySelector("[role=alert]").textContent);
	set(make.leave, "*/b.js\n");
	set(make.into, "small.wacz");
	press(changed, "Make it");
	await until(() => $("did").textContent.startsWith("small.wacz") && document.activeElement.id === "one-head" && seen("inside"));
	says.push("changed: " + [$("did").textContent, new URLSearchParams(location.search).get("name")].join("; "));
	press($("uploads"), "Rename");
	await until(() => document.activeElement === $("rename").elements.name && seen("inside"));
	says.push("rename: " + $("rename").elements.name.value);
	set($("rename").elements.name, "taken.wacz");
	press($("rename"), "Rename");
	await until(() => $("rename").querySelector("[role=alert]").textContent);
	says.push("not renamed: " + $("rename").querySelector("[role=alert]").textContent);
	set($("rename").elements.name, "other.wacz");
	press($("rename"), "Rename");
	await until(() => $("did").textContent.includes("is called"));
	says.push("renamed: " + $("did").textContent);
	await send("PUT", "/api/v1/workflows/keeps", { plan: { page: "https://a.test/", archive: "shop.wacz" } });
	press($("uploads"), "Delete");
	press($("sure"), "Delete");
	await until(() => $("kept").textContent);
	says.push("needed: " + $("kept").textContent);
	press($("sure"), "Keep");
	await send("DELETE", "/api/v1/workflows/keeps");
	press($("uploads"), "Delete");
	press($("sure"), "Delete");
	await until(() => !$("sure").open && document.activeElement.id === "kept-head");
	says.push("deleted: " + $("did").textContent);`, []string{
		"list: shop.wacz; 1.50 MB; true",
		"refused: my-b-shop.wacz; it is no WACZ file",
		"stored: shop.wacz is stored.; shop.wacz; shop.wacz",
		`facts: 2 requests to one host · 1.50 MB · a.test/<img src=x onerror="document.title='owned'">`,
		"quality: It is not fit for a measurement: 50 % of what a replay needs is there.",
		"problems: a.test/b.js: the body was cut off after 10 bytes; <b>repaired</b>",
		"last: None of the last hundred runs replayed it.",
		"waterfall: a.test/b.jscut off: length; 404; <b>; 10; 200; 200; bad; 50%+12.5%, 62.5%+37.5%",
		"drawn: 1",
		"sorted: 200 404 Status ascending; 404 200 -Status descending; 200 404 null none",
		"found: 1 of 2 requests.; 404; 4",
		"change: true; true; shop-changed.wacz; false",
		"effect: They leave out 1 of 2 requests.",
		"not changed: no request matches, so nothing is changed",
		"changed: small.wacz is stored, 900 kB: 1 request is left out.; small.wacz",
		"rename: shop.wacz",
		"not renamed: there is a recording taken.wacz already",
		"renamed: shop.wacz is called other.wacz now.",
		`needed: That did not work: the recording "shop.wacz" is needed: workflow keeps replays it: change the workflow or remove it first.`,
		"deleted: shop.wacz is deleted.",
	}, 1, "?name=20261121-101400-links", `
	await until(() => $("requests").rows.length)`}
}
