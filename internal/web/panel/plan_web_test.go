package panel

import (
	"testing"

	"eidetic/internal/tell/report/reporttest"
)

// planPage: a plan is written in the form and as text, started, and kept with a schedule.
func planPage() pageTest {
	return pageTest{"/plan", `
	const form = path => $("form").querySelector("[data-path='" + path + "']"), text = () => $("yaml").value.trim().replaceAll("\n", " | ");
	const write = async (path, value, want) => { set(form(path), value); await until(() => $("yaml").value.includes(want)); };
	says.push("browsers: " + [...$("browsers").options].map(o => o.value).join(" "));
	await write("page", "https://a.test/?" + evil, "page:");
	await write("page", "https://a.test/", "a.test/\n");
	await write("name", evil, "name:");
	await write("name", "checkout", "name: checkout");
	await write("trials", "0", "trials: 0");
	await until(() => form("trials").ariaInvalid === "true");
	says.push("wrong: " + [form("trials").parentNode.querySelector(".wrong").textContent, $("problems").textContent].join("; "));
	await write("trials", "4", "trials: 4");
	await until(() => !form("trials").ariaInvalid && !$("problems").children.length);
	press($("form"), "Add a step");
	press($("form"), "Add a step");
	await until(() => form("steps[1].click"));
	await write("steps[1].click", "50%,", "click: 50%");
	await until(() => form("steps[1].click").ariaInvalid === "true");
	says.push("target: " + form("steps[1].click").parentNode.querySelector(".wrong").textContent);
	await write("steps[1].click", "50%,40%", "click: 50%,40%");
	await write("steps[1].name", "buy", "name: buy");
	$("compares").click();
	await until(() => seen("treatment"));
	await write("treatment.link", "lte", "link: lte");
	says.push("text: " + text());
	set($("yaml"), $("yaml").value + "colour: red\n");
	await until(() => $("problems").children.length);
	says.push("unknown: " + $("problems").textContent);
	press($("all"), "Start a run");
	await until(() => $("refused").textContent);
	says.push("not started: " + $("refused").textContent);
	set($("yaml"), "page: https://b.test/\nsteps:\n  - open: https://b.test/\n  - scroll: 5\n    end: stil 1s\n");
	await until(() => form("steps[1].scroll") && form("page").value === "https://b.test/" && form("steps[1].end").ariaInvalid === "true");
	says.push("form: " + [form("steps[1].scroll").value, seen("treatment"), $("problems").children.length].join("; ") + "; " + [...$("problems").children].map(p => p.textContent.slice(0, 30)).join("; "));
	set($("yaml"), "page: https://b.test/\nlink: lte\nsteps:\n  - open: https://b.test/\n  - scroll: 5\n    end: still 1s\n  - key: Enter\n");
	await until(() => !$("problems").children.length && form("steps[2].key"));
	$("steps").children[2].querySelector("[data-act=up]").click();
	await until(() => form("steps[1].key") && $("yaml").value.indexOf("Enter") < $("yaml").value.indexOf("scroll"));
	says.push("moved: " + document.activeElement.value);
	press($("all"), "Start a run");
	await until(() => $("did").textContent || $("refused").textContent);
	says.push("started: " + ($("did").textContent || $("refused").textContent).replace(/Run \S+/, "Run ID"));
	const keep = $("keep").elements;
	set(keep.name, "journey"); set(keep.tags, "team-a"); set(keep.every, "2h");
	press($("keep"), "Keep");
	await until(() => $("did").textContent.includes("version"));
	says.push("kept: " + $("did").textContent.replace(/next .*?\./, "next TIME."));
	set(keep.every, "");
	await write("trials", "5", "trials: 5");
	press($("keep"), "Keep");
	await until(() => $("did").textContent.includes("version 2"));
	await send("DELETE", "/api/v1/schedules/journey");
	await send("DELETE", "/api/v1/workflows/journey");`, []string{
		"browsers: chromium firefox firefox-esr nightly",
		"wrong: must be at least 1 (it is 0); trials: must be at least 1 (it is 0)",
		`target: target "50%,": write pixels (640,360), a share of the content area (50%,40%), picture FILE, or css SELECTOR`,
		"text: name: checkout | page: https://a.test/ | link: cable | trials: 4 | steps: | - open: https://a.test/ | - name: buy |   click: 50%,40% | treatment: |   link: lte",
		`unknown: line 11: unknown field "colour"`,
		"not started: The run was not started: the text cannot be read: mend it first",
		`form: 5; false; 1; line 5: steps[1].end: end "sti`,
		"moved: key",
		"started: Run ID waits in the queue: watch it.",
		"kept: The workflow journey has version 1. The schedule journey starts it next TIME. A build starts it by appliance run --workflow journey. Workflows and schedules",
	}, 0, "", `
	const form = path => $("form").querySelector("[data-path='" + path + "']");
	set($("yaml"), "page: https://www.shop.example/\nname: checkout\ntrials: 20\nsteps:\n  - open: https://www.shop.example/\n  - name: basket\n    click: picture lamp.png\n    end: picture basket.png and still 1s\ntreatment:\n  link: lte\nmargin_percent: 300\n");
	await until(() => form("steps[1].end") && $("problems").children.length)`}
}

// The first form says at its fields what is wrong, all at once, completes an address, and is content when all is
// mended. A draft of a plan survives a reload; a run's plan opens to be edited; a newer version of a workflow is shown
// with its difference.
func TestFormsInBrowser(t *testing.T) {
	s := newServer(t, pagesConfig(t))
	b := browsers.New(t)
	for _, c := range []struct{ path, script, want string }{
		{"/", `
			const form = $("new").elements, wrong = name => form[name].parentNode.querySelector(".wrong")?.textContent || "";
			await until(() => seen("box"));
			says.push(form.link.value);
			set(form.link, "frobnet"); set(form.other, "foo"); set(form.page, "localhost:4400");
			await until(() => form.page.value === "http://localhost:4400/" && !wrong("page") && wrong("link") && wrong("other"));
			says.push(wrong("page"), wrong("link").slice(0, 14), wrong("other").slice(0, 20), seen("links") || $("further").open);
			set(form.link, "lte"); set(form.other, "localhost:4401/x");
			await until(() => form.other.value === "http://localhost:4401/x" && !wrong("link") && !wrong("other"));
			says.push(form.page.ariaInvalid, $("refused").textContent);`, `cable||link "frobnet"|"foo": it must be an|true||`},
		{"/plan", `
			set($("yaml"), "page: https://draft.test/\nlink: frobnet\n");
			await until(() => $("problems").children.length);
			says.push(seen("draft"));`, "false"},
		{"/plan", `await until(() => $("problems").children.length); says.push(seen("draft"), $("yaml").value.trim().replace("\n", " "));`,
			"true|page: https://draft.test/ link: frobnet"},
		{"/plan?run=20261121-101400-links", `says.push(seen("draft"), $("form").querySelector("[data-path=page]").value, seen("treatment"));`,
			"false|https://www.shop.example/|true"},
		{"/plan?run=20261121-101400-links", `
			await send("PUT", "/api/v1/workflows/both", { plan: { page: "https://a.test/", trials: 3 } }, { "If-None-Match": "*" });
			says.push("kept");`, "kept"},
		{"/plan?workflow=both", `
			set($("form").querySelector("[data-path=trials]"), "4");
			await until(() => $("yaml").value.includes("trials: 4"));
			await send("PUT", "/api/v1/workflows/both", { plan: { page: "https://a.test/", trials: 9 } }, { "If-Match": '"1"' });
			press($("keep"), "Keep");
			await until(() => seen("newer"));
			says.push($("newer-says").textContent.includes("version 2 of both; you began with version 1"), [...$("newer-lines").querySelectorAll("ins, del")].map(l => l.textContent.trim()).join(", "));
			$("mine").click();
			press($("keep"), "Keep");
			await until(() => $("did").textContent.includes("version 3"));
			says.push(seen("newer"), $("yaml").value.includes("trials: 4"));
			await send("DELETE", "/api/v1/workflows/both");`, "true|− trials: 4, + trials: 9|false|true"},
	} {
		if err := b.Open(s.URL + c.path); err != nil {
			t.Fatal(err)
		}
		got, err := reporttest.Eval[string](b, `(async () => {`+onPage+c.script+`; return says.join("|"); })()`)
		if err != nil || got != c.want {
			t.Errorf("%s: %q (%v), want %q", c.path, got, err, c.want)
		}
	}
}
