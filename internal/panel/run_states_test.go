package panel

import (
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/internal/lab"
	"eidetic/internal/report/reporttest"
	"eidetic/internal/store"
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
			for _, metric := range []string{lab.StepGuard, "first_feedback_ms"} {
				trial.Measurements = append(trial.Measurements, lab.Measurement{Name: name + "/" + metric, Unit: "ms", Value: trial.Metrics["speed_index_ms"] + float64(100*i)})
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
	if err := q.Add(t.Context(), store.Job{ID: "20261122-000000-waits", Device: "virtual", Plan: plan(t)}); err != nil {
		t.Fatal(err)
	}
	s := newServer(t, Config{Store: st, Version: "v1", Queue: queueOf(st, q, &fakeRunner{})})
	b := reporttest.NewBrowser(t)
	const next = `says.push($("found").textContent.replace(/[+−]?\d[\d.\u202f]*/g, "N"), $("next").textContent, ...[...$("next").querySelectorAll("a")].map(a => a.getAttribute("href").slice(0, 13)));`
	const evil = `<img src=x onerror="document.title='owned'">`
	for _, c := range []struct {
		run, script string
		want        []string
	}{
		{"one", next + `says.push([...document.querySelectorAll(".metric")].map(m => [...m.querySelectorAll("h3")].filter(h => h.checkVisibility()).length).join(), seen("films"), $("warnings").querySelector("li").textContent);`,
			[]string{"The page looked finished after N ms. Median of N valid trials; N % interval N to N ms.", "", "1,1,1,1", "false", evil}},
		{"failed", next, []string{"", "The run failed: the device went away: " + evil + ". Mend what it names, then: Plan a new run", "/plan?page=ht"}},
		{"cut", `await until(() => $("pair").options.length);` + next + `says.push(document.querySelectorAll(".metric").length, document.querySelector(".metric .hint").textContent, $("pair").options.length, $("no-pair").textContent);`,
			[]string{"", "The run was interrupted: the process that ran it ended before it was done. What was measured before is below. Plan a new run", "/plan?page=ht", "4", "", "4", "The trials of this run have no films."}},
		{"empty", next, []string{"", "The run has no trials. Plan a new run", "/plan?page=ht"}},
		{"invalid", next + `says.push($("left-out").children.length, $("left-out").firstChild.textContent);`, []string{"",
			"No trial is valid, so there is no result. Below stands why each was left out; mend that, then: Plan a new run", "/plan?page=ht", "3", "Trial 1 (control): " + evil}},
		{"waits", next, []string{"", "The run waits for its device. This page shows its trials as soon as it has begun. See the queue", "/"}},
		{"many", `await until(() => document.querySelectorAll("#together .run-point").length === 7);
			says.push($("together").querySelectorAll("tbody tr").length, $("together").querySelector("tbody a").getAttribute("href"), seen("of-cell"), seen("films"));`,
			[]string{"6", "/run?run=20261122-000000-many&cell=home+%2F+new", "true", "false"}},
		{"many&cell=" + url.QueryEscape("checkout / "+evil), `await until(() => document.querySelectorAll(".metric svg").length === 8 && $("pair").options.length);
			says.push($("cell").value, $("found").textContent.split(".")[0], $("pair").options.length);`,
			[]string{"checkout / " + evil, "▲ Treatment (link 3g) is slower", "11"}},
		{"steps", `says.push(...[...document.querySelectorAll(".metric h2")].map(h => h.textContent));
			set($("step"), evil);
			await until(() => document.querySelector(".metric h2").textContent.startsWith(evil) && document.querySelectorAll(".metric").length === 2);
			says.push(...[...document.querySelectorAll(".metric h2")].map(h => h.textContent), new URLSearchParams(location.search).get("step") === evil);`,
			[]string{"search: Time to end", evil + ": Time to end", evil + ": Time to end", evil + ": First feedback", "true"}},
	} {
		if err := b.Open(s.URL + "/run?run=20261122-000000-" + c.run); err != nil {
			t.Fatal(err)
		}
		got, err := reporttest.Eval[string](b, `(async () => {`+onPage+c.script+endPage+`})()`)
		if want := strings.Join(append(c.want, "no markup"), "\n"); err != nil || plain(got) != want {
			t.Errorf("%s says (%v)\n%s\nwant\n%s", c.run, err, plain(got), want)
		}
	}
	if got := b.Problems(); len(got) > 0 {
		t.Errorf("the pages complain: %q", got)
	}
	if err := b.Open(s.URL + "/run?run=nope"); err != nil {
		t.Fatal(err)
	}
	got, err := reporttest.Eval[string](b, `(async () => {`+until+`const e = document.getElementById("trouble"); await until(() => !e.hidden); return e.textContent; })()`)
	if want := `there is no run "nope". The list of runs has those that exist. All runs`; err != nil || got != want {
		t.Errorf("the page of no run says %q (%v), want %q", got, err, want)
	}
}
