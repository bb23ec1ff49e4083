package panel

import (
	"errors"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
	"eidetic/internal/tell/report/reporttest"
)

// stateRuns keeps runs of every state, with hostile texts wherever a run has texts.
func stateRuns(t *testing.T, st *store.Store) {
	t.Helper()
	const evil = `<img src=x onerror="document.title='owned'">`
	put := func(id string, run *lab.Run) {
		run.ID, run.Page = "20261122-000000-"+id, "https://a.test/?"+evil
		run.Warnings = append(run.Warnings, evil)
		putRun(t, st.Root(), run)
	}
	one := reporttest.Run(4, 8)
	one.Name = evil
	put("one", one)
	failed := reporttest.Run(1, 0)
	failed.State, failed.Error = store.StateFailed, "the device went away: "+evil
	put("failed", failed)
	cut := reporttest.Compared(2, 3, 400)
	cut.State, cut.Comparison, cut.Summary = store.StateRunning, nil, nil // nobody holds its lock
	put("cut", cut)
	empty := reporttest.Run(1, 0)
	put("empty", empty)
	invalid := reporttest.Run(1, 3)
	for _, trial := range invalid.Trials {
		trial.Valid, trial.Invalid = false, []string{evil}
	}
	invalid.Summary = nil
	put("invalid", invalid)
	many := reporttest.Many(3, 10, 700)
	many.Plan.Users[1].Name = evil
	for i, c := range many.Plan.Cells() {
		for _, trial := range many.Trials {
			if trial.Cell == many.Cells[i].Name {
				trial.Cell = c.Name
			}
		}
		many.Cells[i].Name = c.Name
	}
	put("many", many)
	steps := reporttest.Compared(6, 7, 300)
	steps.Comparison = nil
	for _, trial := range steps.Trials {
		for i, name := range []string{"search", evil} {
			trial.Steps = append(trial.Steps, &lab.TrialStep{Name: name, Verb: "click", Expect: "still 1s"})
			for _, m := range []metric.ID{metric.TimeToEnd, metric.FirstFeedback} {
				trial.Measurements = append(trial.Measurements, lab.Measurement{Name: m.OfStep(name), Unit: "ms", Value: metric.SpeedIndex.In(trial) + float64(100*i)})
			}
		}
		trial.Measurements = trial.Measurements[5:]
	}
	reporttest.Compare(steps)
	put("steps", steps)
}

// Runs of every state say what can be done next, and none of their texts becomes markup.
func TestRunStatesInChromium(t *testing.T) {
	st := emptyStore(t)
	stateRuns(t, st)
	q, err := store.OpenQueue(t.Context(), filepath.Join(t.TempDir(), "queue.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	if err := q.Add(t.Context(), store.Job{ID: "20261122-000000-waits", Device: "virtual", Plan: planOf(t)}); err != nil {
		t.Fatal(err)
	}
	const evil = `<img src=x onerror="document.title='owned'">`
	for _, id := range []string{"20261122-000000-first", "20261122-000000-second"} {
		if err := q.Add(t.Context(), store.Job{ID: id, Device: evil, Plan: planOf(t)}); err != nil {
			t.Fatal(err)
		}
	}
	s := newServer(t, setup{Store: st, Version: "v1", Queue: queueOf(st, q, &fakeRunner{})})
	b := browsers.New(t)
	const next = `says.push($("found").textContent.replace(/[+−]?\d[\d.\u202f]*/g, "N"), $("next").textContent, ...[...$("next").querySelectorAll("a")].map(a => a.getAttribute("href").slice(0, 13)));`
	for _, c := range []struct {
		run, script string
		charts      int
		want        []string
	}{
		{"one", next + `says.push([...document.querySelectorAll(".metric")].map(m => [...m.querySelectorAll("h3")].filter(h => h.checkVisibility()).length).join(), seen("films"), $("warnings").querySelector("li").textContent);`,
			4, []string{"The page looked finished after N ms. Median of N valid trials; N % interval N to N ms.", "", "1,1,1,1", "false", evil}},
		{"failed", next, 0, []string{"", "The run failed: the device went away: " + evil + ". Mend what it names, then run it again, or: Edit its plan", "/plan?run=202"}},
		{"cut", `await until(() => $("pair").options.length);` + next + `says.push(document.querySelectorAll(".metric").length, document.querySelector(".metric .hint").textContent, $("pair").options.length, $("no-pair").textContent);`,
			8, []string{"", "The run was interrupted: the process that ran it ended before it was done. What was measured before is below. Edit its plan", "/plan?run=202", "4", "", "4", "The trials of this run have no films: a new run of its plan makes them."}},
		{"empty", next, 0, []string{"", "The run has no trials. Edit its plan", "/plan?run=202"}},
		{"invalid", next + `says.push($("left-out").children.length, $("left-out").firstChild.textContent);`, 4, []string{"",
			"No trial is valid, so there is no result. Below stands why each was left out; mend that, then run it again, or: Edit its plan", "/plan?run=202", "3", "Trial 1: " + evil}},
		{"waits", next, 0, []string{"", "The run waits for its device. This page shows its trials as soon as it has begun. See the queue", "/"}},
		{"second", next, 0, []string{"", "The run waits: " + evil + " is about to be free; 1 run comes first. This page shows its trials as soon as it has begun. See the queue", "/"}},
		{"many", `await until(() => document.querySelectorAll("#together .run-point").length === 7);
			says.push($("together").querySelectorAll("tbody tr").length, $("together").querySelector("tbody a").getAttribute("href"), seen("of-cell"), seen("films"),
				$("found").textContent.includes(document.querySelector("#together .run-point").ariaLabel.match(/^All together, (.+):/)[1] + " +")); // the same number`,
			1, []string{"6", "/run?run=20261122-000000-many&cell=home+%2F+new", "true", "false", "true"}},
		{"many&cell=" + url.QueryEscape("checkout / "+evil), `await until(() => document.querySelectorAll(".metric svg").length === 8 && $("pair").options.length);
			says.push($("cell").value, $("found").textContent.split(".")[0], $("pair").options.length);`,
			8, []string{"checkout / " + evil, "▲ Treatment (link 3g) is slower", "11"}},
		{"steps", `says.push(...[...document.querySelectorAll(".metric h2")].map(h => h.textContent));
			set($("step"), evil);
			await until(() => document.querySelector(".metric h2").textContent.startsWith(evil) && document.querySelectorAll(".metric").length === 2);
			says.push(...[...document.querySelectorAll(".metric h2")].map(h => h.textContent), new URLSearchParams(location.search).get("step") === evil);`,
			4, []string{"search: Time to end", evil + ": Time to end", evil + ": Time to end", evil + ": First feedback", "true"}},
	} {
		if err := b.Open(s.URL + "/run?run=20261122-000000-" + c.run); err != nil {
			t.Fatal(err)
		}
		got, err := reporttest.Eval[string](b, `(async () => {`+onPage+c.script+endPage+`})()`)
		if want := (pageTest{want: c.want, charts: c.charts}).expect(); err != nil || plain(got) != want {
			t.Errorf("%s says (%v)\n%s\nwant\n%s", c.run, err, plain(got), want)
		}
	}
	if got := b.Problems(); len(got) > 0 {
		t.Errorf("the pages complain: %q", got)
	}
	if err := b.Open(s.URL + "/"); err != nil {
		t.Fatal(err)
	}
	row, err := reporttest.Eval[string](b, `(async () => {`+until+`await until(() => document.querySelector(".waits")); return [...document.querySelectorAll(".waits")].map(p => p.textContent).join("|"); })()`)
	if want := "Waits: " + evil + " is about to be free; 1 run comes first"; err != nil || row != want {
		t.Errorf("the list says %q (%v), want %q", row, err, want)
	}
	if err := b.Open(s.URL + "/run?run=nope"); err != nil {
		t.Fatal(err)
	}
	got, err := reporttest.Eval[string](b, `(async () => {`+until+`const e = document.getElementById("trouble"); await until(() => !e.hidden); return e.textContent; })()`)
	if want := `there is no run "nope". The list of runs has those that exist. All runs`; err != nil || got != want {
		t.Errorf("the page of no run says %q (%v), want %q", got, err, want)
	}
}

// A link holds pair, place, lock, zoom, outline and region, on every width and in both themes.
func TestRunLinkInChromium(t *testing.T) {
	st := emptyStore(t)
	run := filmedPairs(t, st)
	s := newServer(t, setup{Store: st, Version: "v1"})
	b := browsers.New(t)
	for _, look := range []struct {
		width  int64
		scheme string
	}{{390, "light"}, {390, "dark"}, {1100, "dark"}} {
		if err := b.View(look.width, 5000, look.scheme); err != nil {
			t.Fatal(err)
		}
		if err := b.Open(s.URL + "/run?run=" + run.ID + "&pair=2&at=50&lock=progress&zoom=1&outline=arms&region=20,30,100,60"); err != nil {
			t.Fatal(err)
		}
		got, err := reporttest.Eval[string](b, `(async () => {`+onPage+`
			await until(() => $("views").dataset.place && document.querySelectorAll("#place img").length);
			await until(() => [...document.querySelectorAll("#place img")].every(i => i.naturalWidth));
			const unnamed = [...document.querySelectorAll("button, select, input, [role=slider], [tabindex='0']")].filter(e => e.checkVisibility() && !e.ariaLabel && !e.textContent.trim() && !e.labels?.length && !e.getAttribute("aria-label"));
			return [$("pair").value, $("readout").textContent.split(":")[0], $("zoom").value, $("outline").value, $("region").value, [...document.querySelectorAll("#views canvas[role]")].map(c => c.dataset.frame).join("+"),
				[...document.querySelectorAll(".halves, #views")].map(e => getComputedStyle(e).gridTemplateColumns.split(" ").length).join(""), document.documentElement.scrollWidth <= innerWidth, unnamed.length].join(" ");
		})()`)
		columns := "2222" + "2"
		if look.width == 390 {
			columns = "11111"
		}
		if want := "2 At 50 % of visual progress 1 arms 20,30,100,60 59+89 " + columns + " true 0"; err != nil || got != want {
			t.Errorf("%d pixels wide, %s: the link's page has %q (%v), want %q", look.width, look.scheme, got, err, want)
		}
	}
	// The list, the report and the frames of a trial lead to the page.
	for from, script := range map[string]string{
		"/":                                 `await until(() => document.querySelector(".run a")); return document.querySelector(".run a").getAttribute("href");`,
		"/runs/" + run.ID + "/report.html":  `await until(() => !document.getElementById("back").hidden); return document.querySelectorAll("#back a")[1].getAttribute("href");`,
		"/trial?run=" + run.ID + "&trial=1": `await until(() => document.getElementById("whole").href); return document.getElementById("whole").getAttribute("href");`,
	} {
		if err := b.Open(s.URL + from); err != nil {
			t.Fatal(err)
		}
		got, err := reporttest.Eval[string](b, `(async () => {`+until+script+`})()`)
		if want := "/run?run=" + run.ID; err != nil || got != want {
			t.Errorf("%s leads to %q (%v), want %q", from, got, err, want)
		}
	}
	if got := b.Problems(); len(got) > 0 {
		t.Errorf("the pages complain: %q", got)
	}
}

// A page that is open while a run goes on shows its progress, and its end, by itself.
func TestRunLiveInChromium(t *testing.T) {
	st := emptyStore(t)
	box := newBox(t, st, filepath.Join(t.TempDir(), "queue.db"))
	box.do(t, http.MethodPost, "/api/v1/runs", request)
	id := <-box.runner.started
	b := browsers.New(t)
	if err := b.Open(box.url + "/run?run=" + id); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ script, want string }{
		{`await until(() => !$("doing").hidden); return $("state").textContent + ": " + $("doing").textContent + " " + $("doing").querySelector("progress").max;`,
			"running: filming, trial 2 of 3, 0 valid so far, about 2 min left 3"},
		{`await until(() => $("state").textContent === "failed" && $("news").childElementCount); return [$("next").textContent, $("doing").hidden, $("news").textContent].join(" | ");`,
			"The run failed: the browser died. Mend what it names, then run it again, or: Edit its plan | true | The run: failed. the browser died"},
	} {
		got, err := reporttest.Eval[string](b, `(async () => {`+until+`const $ = id => document.getElementById(id); `+step.script+`})()`)
		if err != nil || got != step.want {
			t.Fatalf("the page says %q (%v), want %q", got, err, step.want)
		}
		if strings.HasPrefix(step.want, "running") {
			box.runner.release <- errors.New("the browser died")
		}
	}
}
