package panel

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/tell/report/reporttest"
)

// daily adds one run a day to a series. From the run number step on they are slower by 84 ms
// and have another browser.
func daily(t *testing.T, st *store.Store, n, step int) {
	t.Helper()
	dailyIn(t, st, nil, n, step)
}

// dailyIn does so with a browser.
func dailyIn(t *testing.T, st *store.Store, browser *lab.Browser, n, step int) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 1))
	for i := range n {
		wall := time.Date(2026, 3, 1+i, 9, 0, 0, 0, time.UTC)
		run := reporttest.Run(0, 0)
		run.ID, run.Name, run.Wall, run.Plan.Browser = wall.Format("20060102-150405")+"-checkout", "checkout", wall, browser
		if browser != nil {
			run.ID += "-" + browser.Name
		}
		median := 900 + 6*r.NormFloat64()
		if i >= step {
			median += 84
			run.Environment.Browser = "Chromium 157"
		} else {
			run.Environment.Browser = "Chromium 156"
		}
		for k, name := range []string{"speed_index_ms", "time_to_stable_ms", "unique_fps"} {
			run.Summary = append(
				run.Summary,
				lab.Summary{Metric: name, Unit: "ms", Arm: lab.Control, N: 10, Median: median + float64(100*k),
					Low: median - 25, High: median + float64(100*k+30)},
			)
		}
		f, err := store.Create(st.Root(), run)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func emptyStore(t *testing.T) *store.Store {
	t.Helper()
	st, err := store.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

func TestHistory(t *testing.T) {
	st := emptyStore(t)
	daily(t, st, 30, 20)
	s := newServer(t, setup{Store: st, Version: "v1"})
	get := func(query string) Histories {
		t.Helper()
		got := ask(t, s, http.MethodGet, "/api/v1/history"+query, nil)
		var h Histories
		if err := json.Unmarshal([]byte(got.text), &h); err != nil || got.StatusCode != http.StatusOK {
			t.Fatalf("GET history = %d, %v, %.300s; want 200 and JSON", got.StatusCode, err, got.text)
		}
		return h
	}
	list := get("")
	if len(list.Series) != 1 || list.Series[0].Count != 30 || list.Series[0].Metrics != nil || list.Needed != 10 {
		t.Fatalf("history without a filter = %+v; want one series of 30 runs without numbers", list)
	}
	h := get("?series=" + list.Series[0].Key)
	one := h.Series[0]
	if len(one.Runs) != 30 || len(one.Metrics) != 2 || one.Metrics[0].Metric != "speed_index_ms" || len(one.Available) != 3 {
		t.Fatalf("history of a series = %+v; want 30 runs, 2 metrics, 3 available", one)
	}
	step := one.Metrics[0].Steps
	if len(step) != 1 || step[0].Run != "20260321-090000-checkout" || step[0].Trend != "slower" || len(step[0].Near) != 1 ||
		step[0].Near[0].Changed[0].Name != "browser" {
		t.Errorf("steps = %+v; want one, slower, next to a new browser", step)
	}
	one = get("?name=checkout&link=4g&metric=unique_fps&limit=8").Series[0]
	if len(one.Runs) != 8 || one.Runs[7].ID != "20260330-090000-checkout" || len(one.Metrics) != 1 || len(one.Metrics[0].Values) != 8 ||
		one.Count != 30 {
		t.Errorf("history with limit 8 = %+v; want the 8 newest of 30 runs", one)
	}
	for i := range mostSeries + 1 {
		run := reporttest.Run(0, 0)
		run.ID, run.Name, run.Page = fmt.Sprint("x", i), "many", fmt.Sprint("https://x.test/", i)
		f, err := store.Create(st.Root(), run)
		if err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
	}
	if h := get("?name=many"); len(h.Series) != mostSeries || !h.LeftOut {
		t.Errorf("%d series, more are left out: %v", len(h.Series), h.LeftOut)
	}
}

// The history page in a real browser: without runs, with one and with 200, in both themes, by
// keyboard and as a table.
func TestHistoryInBrowser(t *testing.T) {
	b := browsers.New(t)
	// Without emulated focus, a page of a headless browser gets no focus events.
	if _, err := chromedp.Call(b.Context, emulation.SetFocusEmulationEnabled,
		emulation.SetFocusEmulationEnabledParams{Enabled: true}); err != nil {
		t.Fatal(err)
	}
	open := func(st *store.Store, query string) string {
		t.Helper()
		s := newServer(t, setup{Store: st, Version: "v1"})
		if err := b.Open(s.URL + "/history" + query); err != nil {
			t.Fatal(err)
		}
		return s.URL
	}
	expect := func(script, want string) {
		t.Helper()
		if got, err := reporttest.Eval[string](b, script); err != nil || got != want {
			t.Errorf("got %q (%v), want %q", got, err, want)
		}
	}
	open(emptyStore(t), "")
	expect(`(async () => {`+until+`
		const none = await until(() => !document.getElementById("none").hidden);
		return [none, document.querySelectorAll("svg").length, document.getElementById("choose").hidden].join(" ");
	})()`, "true 0 true")

	evil := newStore(t)
	run := reporttest.Run(0, 3)
	run.ID, run.Name, run.Page = "20261122-101500-evil", `<img src=x onerror="document.title='owned'">`,
		`javascript:alert(1)//"><script>document.title='owned'</script>`
	addRun(t, evil, run)
	open(evil, "")
	expect(`(async () => {`+until+reporttest.Charts+`
		await until(() => document.querySelector(".run-point"));
		await charts();
		return [document.title, document.querySelector(".series h2").textContent.startsWith("<img src=x"), document.querySelectorAll("main img, main script, main a[href^=javascript]").length].join(" ");
	})()`, "History – Eidetic true 0")

	open(newStore(t), "")
	expect(`(async () => {`+until+`
		await until(() => document.querySelector(".run-point"));
		return [document.querySelectorAll(".run-point").length, document.querySelectorAll("line.change").length, document.querySelector(".findings").textContent].join(" ");
	})()`, "1 0 SpeedIndex: 1 run so far: a change can be told from chance from 10 runs on.")

	st := newStore(t)
	daily(t, st, 200, 120)
	for _, scheme := range []string{"light", "dark"} {
		if err := b.View(1100, 900, scheme); err != nil {
			t.Fatal(err)
		}
		url := open(st, "?name=checkout&metric=time_to_stable_ms")
		expect(`(async () => {`+until+reporttest.Charts+`
			await until(() => document.querySelectorAll(".run-point").length === 200);
			await charts();
			const said = document.querySelector(".findings").textContent, rows = document.querySelectorAll("tbody tr");
			return [document.querySelectorAll("line.change.slower").length, document.querySelectorAll(".fact").length, rows.length,
				document.querySelectorAll("tr.step").length, said.includes("Looks finished +8"), said.includes("browser, from Chromium 156 to Chromium 157"),
				document.getElementById("metric").value, document.querySelectorAll("[tabindex='0'].run-point").length].join(" ");
		})()`, "1 1 200 1 true true time_to_stable_ms 1")
		// By keyboard, and without scrolling sideways.
		expect(`(async () => {`+until+`
			const points = document.querySelectorAll(".run-point"), key = key => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
			document.querySelector("[tabindex='0'].run-point").focus();
			key("ArrowLeft"); key("ArrowLeft"); key("ArrowRight");
			const at = [...points].indexOf(document.activeElement), told = document.querySelector(".chart figcaption").textContent === document.activeElement.getAttribute("aria-label");
			key("Home");
			return [at, told, document.activeElement === points[0], document.documentElement.scrollWidth <= innerWidth].join(" ");
		})()`, "198 true true true")
		expect(`(async () => {`+until+`
			const select = document.getElementById("metric");
			select.value = "unique_fps";
			select.dispatchEvent(new Event("change"));
			await until(() => document.querySelector(".chart svg")?.getAttribute("aria-label").startsWith("Unique frame rate"));
			return [location.search, document.querySelectorAll(".run-point").length].join(" ");
		})()`, "?name=checkout&metric=unique_fps 200")
		if got := b.Foreign(url+"/", "http://127.0.0.1", "about:", "chrome:", "data:"); len(got) > 0 {
			t.Errorf("requests to others: %q", got)
		}
	}
	if got := b.Problems(); len(got) > 0 {
		t.Errorf("the pages complain: %q", got)
	}
	// If the series does not exist, other series can still be chosen.
	open(st, "?name=nope")
	expect(`(async () => {`+until+`
		const select = document.getElementById("series"), trouble = document.getElementById("trouble");
		await until(() => select.options.length > 2);
		const said = trouble.textContent.startsWith("The history could not be loaded: no finished run");
		select.value = select.options[1].value;
		select.dispatchEvent(new Event("change"));
		await until(() => document.querySelector(".run-point"));
		return [said, trouble.hidden, location.search === "?series=" + select.value].join(" ");
	})()`, "true true true")
}

// A series of comparisons has three lines: over REST those that are asked for, on the page one at a time, by a choice.
func TestHistoryOfComparisons(t *testing.T) {
	st := emptyStore(t)
	r := rand.New(rand.NewPCG(7, 7))
	for i := range 26 {
		run := reporttest.Compared(uint64(i), 6, 40)
		run.Wall = time.Date(2026, 3, 1+i, 9, 0, 0, 0, time.UTC)
		run.ID = store.NewID(run.Wall, "links")
		shift := 4 * r.NormFloat64()
		if i >= 18 {
			shift += 60
		}
		for k := range run.Comparison.Effects {
			run.Comparison.Effects[k].Shift = lab.Range{Value: shift, Low: shift - 9, High: shift + 9, Confidence: 0.95}
		}
		f, err := store.Create(st.Root(), run)
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s := newServer(t, setup{Store: st, Version: "v1"})
	for query, want := range map[string]string{"": "control 0", "&line=difference": "difference 1", "&line=difference,control,treatment": "control 0 treatment 0 difference 1"} {
		var h Histories
		got := ask(t, s, http.MethodGet, "/api/v1/history?name=links&metric=speed_index_ms"+query, nil)
		if err := json.Unmarshal([]byte(got.text), &h); err != nil || len(h.Series) != 1 {
			t.Fatalf("GET history%s: %v, %.300s; want one series", query, err, got.text)
		}
		said := ""
		for _, m := range h.Series[0].Metrics {
			said += fmt.Sprint(" ", m.Line, " ", len(m.Steps))
		}
		if one := h.Series[0]; said != " "+want || len(one.Lines) != 3 || one.Needed != 13 || one.Level >= h.Level {
			t.Errorf("GET history%s has %q, lines %q, level %v of %d runs; want %q and 13 runs", query, said, one.Lines, one.Level, one.Needed, want)
		}
	}
	if got := ask(t, s, http.MethodGet, "/api/v1/history?name=links&line=both", nil); got.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("a line that there is not: %d; want 422", got.StatusCode)
	}
	b := browsers.New(t)
	if err := b.Open(s.URL + "/history?name=links"); err != nil {
		t.Fatal(err)
	}
	got, err := reporttest.Eval[string](b, `(async () => {`+until+`
		const select = document.getElementById("line"), says = [], said = () => document.querySelector(".chart svg[role]")?.getAttribute("aria-label");
		await until(() => said()?.startsWith("Difference of SpeedIndex over 26 runs"));
		says.push(select.value, document.querySelectorAll("line.change.slower").length);
		select.value = "treatment";
		select.dispatchEvent(new Event("change"));
		await until(() => said()?.startsWith("SpeedIndex of the treatment over 26 runs"));
		says.push(location.search, document.querySelectorAll("line.change.slower").length);
		return says.join("; ");
	})()`)
	if want := "difference; 1; ?name=links&line=treatment; 0"; err != nil || got != want {
		t.Errorf("the page says %q (%v); want %q", got, err, want)
	}
	if got := b.Problems(); len(got) > 0 {
		t.Errorf("the page complains: %q", got)
	}
}

// Series that differ in the browser alone are not mixed, and can be seen on one chart.
func TestBrowsersOnOneChart(t *testing.T) {
	b := browsers.New(t)
	st := emptyStore(t)
	daily(t, st, 14, 7)
	dailyIn(t, st, &lab.Browser{Name: lab.FirefoxESR}, 12, 99)
	s := newServer(t, setup{Store: st, Version: "v1"})
	var h Histories
	for query, want := range map[string]string{"": " 14 firefox-esr 12", "?name=checkout": " 14 firefox-esr 12", "?browser=firefox-esr": "firefox-esr 12"} {
		h = Histories{}
		got := ask(t, s, http.MethodGet, "/api/v1/history"+query, nil)
		if err := json.Unmarshal([]byte(got.text), &h); err != nil {
			t.Fatalf("GET history%s: %v, %.300s", query, err, got.text)
		}
		said := ""
		for i, one := range h.Series {
			if i > 0 {
				said += " "
			}
			said += fmt.Sprint(one.Browser, " ", one.Count)
		}
		if said != want {
			t.Errorf("GET history%s has the series %q; want %q", query, said, want)
		}
	}
	for _, width := range []int64{1100, 390} {
		if err := b.View(width, 900, "light"); err != nil {
			t.Fatal(err)
		}
		if err := b.Open(s.URL + "/history"); err != nil {
			t.Fatal(err)
		}
		got, err := reporttest.Eval[string](b, `(async () => {`+until+`
			const select = document.getElementById("series");
			await until(() => select.options.length === 3);
			const option = [...select.options].find(o => o.textContent.endsWith("chromium, firefox-esr"));
			select.value = option.value;
			select.dispatchEvent(new Event("change"));
			await until(() => document.querySelectorAll(".legend").length === 1 && document.querySelectorAll(".run-point").length === 52);
			const over = document.querySelector("section.series"), points = over.querySelectorAll(".run-point");
			points[points.length - 1].focus();
			points[points.length - 1].dispatchEvent(new FocusEvent("focus"));
			return [new URLSearchParams(location.search).get("browsers"), over.querySelectorAll("path.way").length, points.length, over.querySelectorAll(".b1.run-point").length,
				over.querySelector("figcaption").textContent.startsWith("chromium, "), over.querySelector("h2").textContent, select.value === option.value,
				document.documentElement.scrollWidth <= innerWidth].join("; ");
		})()`)
		if want := "all; 4; 26; 12; true; checkout: chromium, firefox-esr; true; true"; err != nil || got != want {
			t.Errorf("%d pixels wide: %q (%v); want %q", width, got, err, want)
		}
	}
	got, err := reporttest.Eval[string](b, `(async () => {`+reporttest.Charts+`
		await charts();
		const links = [...document.querySelectorAll("#charts a[download]")], text = decodeURIComponent(links[2].href.split(",").slice(1).join(","));
		return [links.length, links[2].download, text.split("\r\n").length, text.split("\r\n").slice(0, 2).map(line => line.split(",").slice(0, 4).join(",")).join(" ")].join("; ");
	})()`)
	if want := "3; checkout-speed_index_ms.csv; 14; run,started,trials,valid 20260301-090000-checkout-firefox-esr,2026-03-01T09:00:00Z,0,10"; err != nil || got != want {
		t.Errorf("the numbers as CSV: %q (%v); want %q", got, err, want)
	}
	if got := b.Problems(); len(got) > 0 {
		t.Errorf("the page complains: %q", got)
	}
}
