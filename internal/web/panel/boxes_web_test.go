package panel

import (
	"testing"

	"eidetic/internal/rigs/testlab"
)

// headPages are the pages that a fleet's head has, or shows otherwise.
func headPages() []pageTest { return []pageTest{boxesPage(), planOfAHead()} }

func TestPagesOfAHeadInChromium(t *testing.T) {
	config, fleet := headOf(t, pagesConfig(t))
	config.Retainer, config.Certificate = nil, nil // a head has neither
	pagesInChromium(t, config, headPages(), "/", "/boxes?box=lab-1")
	if len(fleet.measured) != 1 || fleet.measured[0] != "lab-2/virtual" || !fleet.rebased {
		t.Errorf("measured %q, level accepted %v; want lab-2/virtual, true", fleet.measured, fleet.rebased)
	}
	shown, calm := headOf(t, config) // as it was before, and with names as people give them
	phone := &calm.boxes[1].Devices[1]
	phone.Name, phone.Problem, calm.boxes[2].Reason = "pixel", "no lease yet: is it plugged in?", ""
	picture(t, browsers.New(t), newServer(t, shown).URL+"/boxes?box=lab-1", "boxes", `
		await until(() => $("levels").querySelector("svg"));
		press($("join"), "Make a link");
		await until(() => seen("made"));`)
}

func TestPagesOfAHeadInFirefox(t *testing.T) {
	testlab.Long(t, "second browser")
	config, _ := headOf(t, pagesConfig(t))
	pagesInFirefox(t, config, headPages())
}

// boxesPage: boxes are seen, one is measured, kept in maintenance, labelled and removed; the reference is changed; a
// link is made.
func boxesPage() pageTest {
	return pageTest{"/boxes", `
	const cards = () => [...$("boxes").children], words = node => node.textContent.replace(/\s+/g, " ").trim();
	await until(() => cards().length === 3);
	says.push("boxes: " + cards().map(c => [...c.querySelectorAll(":scope > h2 a, :scope > h2 em")].map(words).join(" ")).join("; "));
	says.push("devices: " + cards().map(c => [...c.querySelectorAll(".devices strong")].map(d => d.textContent === "a desk " + evil ? "hostile" : d.textContent).join(",")).join(";"));
	says.push("runs: " + words(cards()[0].querySelector(".devices span")));
	says.push("reason: " + (words(cards()[2].querySelector("p")) === evil));
	says.push("no update: " + seen("rollout"));
	await (await fetch("/api/v1/boxes/update", { method: "POST", body: "signed", headers: { "Content-Type": "application/octet-stream" } })).json();
	await until(() => seen("rollout"));
	says.push("update: " + $("rollout").textContent.replace(evil, "hostile"));
	await send("POST", "/api/v1/boxes/update/stop");
	await until(() => $("rollout").className === "bad");
	says.push("nav: " + document.querySelector("nav [aria-current]").textContent + "; " + seen("one"));

	cards()[0].querySelector("h2 a").click();
	await until(() => seen("one") && $("levels").querySelector("svg"));
	says.push("one: " + [$("one-head").textContent, document.activeElement.id, location.search, words($("why")).replace(/ Since .*/, " Since TIME."), words($("changed"))].join("; "));
	const chart = () => $("levels").querySelector("svg");
	says.push("chart: " + [chart().querySelectorAll("a").length, chart().querySelectorAll(".far").length, chart().querySelectorAll(".band").length, chart().querySelectorAll("line.drift").length].join(" "));
	const last = chart().querySelector("a[tabindex='0']");
	last.focus();
	last.dispatchEvent(new KeyboardEvent("keydown", { key: "Home", bubbles: true }));
	says.push("tab stop: " + (document.activeElement === chart().querySelector("a")));
	chart().querySelector("a").dispatchEvent(new PointerEvent("pointerenter"));
	await until(() => $("levels").querySelector("figcaption").textContent.includes("992"));
	says.push("keys: " + words($("levels").querySelector("figcaption")).replace(/^.*?: /, ""));
	says.push("drawn: " + (await charts()).join(" "), "metrics: " + [...$("of-metric").options].map(o => o.textContent).join(", "));
	const table = decodeURIComponent($("levels").querySelector("a[download]").href.split(",").slice(1).join(",")).split("\r\n");
	says.push("csv: " + [$("levels").querySelector("a[download]").download, table.length, table[0]].join("; "));
	set($("of-metric"), "speed_index_ms");
	await until(() => chart()?.getAttribute("aria-label").startsWith("SpeedIndex over"));
	says.push("other: " + chart().querySelectorAll("line.drift, .far").length);
	set($("of-metric"), "time_to_stable_ms");
	press($("one"), "Accept this level");
	await until(() => $("sure").open);
	press($("sure"), "Accept");
	await until(() => $("did").textContent.includes("baseline now") && $("why").textContent.includes("as it did") && document.activeElement.id === "one-head");
	says.push("accepted: " + [$("did").textContent, $("why").textContent, document.activeElement.id].join("; "));

	cards()[1].querySelector("h2 a").click();
	await until(() => $("one-head").textContent === "lab-2" && $("levels").textContent.includes("not measured"));
	press($("one"), "Measure now");
	await until(() => $("did").textContent.includes("measures"));
	says.push("measured: " + $("did").textContent.replace(/Run \S+/, "Run ID"));
	set($("maintenance").elements.reason, evil);
	press($("one"), "Begin maintenance");
	await until(() => $("one-state").textContent.includes("maintenance") && $("did").textContent.includes("in maintenance"));
	says.push("maintenance: " + [$("one-state").textContent.includes(evil), $("did").textContent].join("; "));
	await until(() => [...$("one").querySelectorAll("button")].some(b => b.textContent === "End maintenance"));
	press($("one"), "End maintenance");
	await until(() => $("did").textContent.includes("gets runs again"));
	press($("one"), "Call this box bad");
	await until(() => $("one-state").textContent.includes("bad") && $("did").textContent.includes("accepts it again"));
	press($("one"), "Accept this box again");
	await until(() => $("did").textContent.includes("gets runs again"));
	set($("labels").elements.labels, "room");
	press($("one"), "Keep labels");
	await until(() => $("labels").querySelector("[role=alert]").textContent);
	says.push("labels: " + $("labels").querySelector("[role=alert]").textContent);
	set($("labels").elements.labels, "Colour=red");
	press($("one"), "Keep labels");
	await until(() => $("labels").querySelector("[role=alert]").textContent.includes("Colour"));
	set($("labels").elements.labels, "room=" + evil + "\nrow=2=3");
	press($("one"), "Keep labels");
	await until(() => $("facts").textContent.includes("row=2=3"));
	says.push("kept: " + [$("facts").textContent.includes("room=" + evil), $("labels").querySelector("[role=alert]").textContent].join("; "));

	const form = $("reference").elements;
	says.push("reference: " + words($("reference-now")));
	set(form.every, "5 bananas"); press($("reference"), "Set the reference");
	await until(() => $("reference").querySelector("[role=alert]").textContent);
	says.push("refused: " + $("reference").querySelector("[role=alert]").textContent);
	set(form.every, "2h"); set(form.browser, "firefox-esr");
	press($("reference"), "Set the reference");
	await until(() => $("reference-now").textContent.includes("2h"));
	says.push("set: " + $("did").textContent);

	press($("join"), "Make a link");
	await until(() => seen("made"));
	says.push("link: " + [$("command").textContent.replace(/VTD9XW\d+/, "…"), document.documentElement.scrollWidth <= innerWidth].join("; "));
	press($("reference"), "Remove the reference");
	await until(() => $("sure").open);
	press($("sure"), "Remove");
	await until(() => $("reference-now").textContent.includes("no reference"));
	for (const name of ["lab-3", "lab-1"]) {
		cards().find(c => c.dataset.key === name).querySelector("h2 a").click();
		await until(() => $("one-head").textContent === name && seen("one"));
		press($("one"), "Remove this box");
		await until(() => $("sure").open);
		press($("sure"), name === "lab-1" ? "Keep" : "Remove");
		await until(() => !$("sure").open && (name === "lab-1" || !cards().some(c => c.dataset.key === name)));
	}
	await until(() => $("levels").querySelector("svg"));
	says.push("left: " + [cards().map(c => c.dataset.key).join(), seen("none"), location.search].join("; "));
	await send("PUT", "/api/v1/reference", { plan: { page: "https://www.shop.example/", archive: "shop.wacz", trials: 5 }, every: "6h" });`, []string{
		"boxes: lab-1 running drifting; lab-2 idle good; lab-3 lost health unknown",
		"devices: virtual;virtual,hostile;",
		"runs: 20261121-091400-demo, trial 3 of 10",
		"reason: true",
		"no update: false",
		"update: Update to 1.4: 0 of 2 boxes updated; lab-1 ends what it carries out hostile.",
		"nav: Boxes; false",
		"one: lab-1; one-head; ?box=lab-1; The level of Looks finished rose by 5.1 % (50.8 ms). Since TIME.; Changed then: browser: Chromium 140 became Chromium 141",
		"chart: 20 6 1 1",
		"tab stop: true",
		"keys: 992 ms, spread within the run 18.0 ms, 0.00 % thrown away",
		"drawn: 1", "metrics: Looks finished, SpeedIndex",
		"csv: lab-1-virtual-time_to_stable_ms.csv; 22; run,at,median_ms,within_ms,thrown_percent,stolen_percent,clock_ms,baseline_low,baseline_high",
		"other: 0",
		"accepted: The level of lab-1/virtual is its baseline now.; It measures as it did.; one-head",
		"measured: Run ID measures the reference on lab-2/virtual.",
		"maintenance: true; lab-2 is in maintenance.",
		"labels: room: write KEY=VALUE, such as room=2.14.",
		"kept: true; ",
		"reference: Each device measures www.shop.example with the recording shop.wacz every 6h.",
		`refused: every: "5 bananas": write whole seconds, of 1m to 31d, such as 2h, 90m or 1d`,
		"set: The reference is measured every 2h.",
		"link: appliance join 'eidetic-head://head.example:8443/K7QM3…?pin=3b1c'; true",
		"left: lab-1,lab-2; false; ?box=lab-1",
	}, 1, "", noPicture}
}

// planOfAHead: a plan says which boxes may carry it out.
func planOfAHead() pageTest {
	return pageTest{"/plan", `
	const form = path => $("form").querySelector("[data-path='" + path + "']"), text = () => $("yaml").value.trim().replaceAll("\n", " | ");
	const write = async (path, value, want) => { set(form(path), value); await until(() => want($("yaml").value)); };
	await write("page", "https://a.test/", t => t.includes("a.test"));
	await write("on.boxes", "lab-1, lab-2", t => t.includes("lab-2"));
	await write("on.labels", "model=Pixel*", t => t.includes("Pixel"));
	await write("on.each", "browser", t => t.includes("each"));
	await write("on.priority", "1", t => t.includes("priority"));
	says.push("text: " + text());
	says.push("problems: " + $("problems").children.length);
	await write("on.boxes", "", t => !t.includes("lab-2"));
	for (const path of ["on.labels", "on.each"]) await write(path, "", t => !t.includes(path.slice(3)));
	await write("on.priority", "", t => !t.includes('"on"'));
	says.push("none: " + text());
	set($("yaml"), "page: https://b.test/\non:\n  boxes: [lab-2]\n  priority: 3\n");
	await until(() => form("on.boxes").value === "lab-2");
	says.push("form: " + form("on.priority").value);`, []string{
		`text: page: https://a.test/ | link: cable | "on": |   boxes: |   - lab-1 |   - lab-2 |   labels: |   - model=Pixel* |   each: browser |   priority: 1`,
		"problems: 0",
		"none: page: https://a.test/ | link: cable",
		"form: 3",
	}, 0, "", noPicture}
}
