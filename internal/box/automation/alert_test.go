package automation

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/tell/history"
)

// around makes n values around a level.
func around(r *rand.Rand, n int, level float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = level + 6*r.NormFloat64()
	}
	return out
}

func (b *testBox) alerts(open bool) []Alert {
	b.t.Helper()
	all, err := b.Alerts(b.t.Context(), Filter{Open: open, Limit: 100})
	if err != nil {
		b.t.Fatal(err)
	}
	return all
}

// A step raises one alert, however many runs follow, and says what else changed there.
func TestAlertIsRaisedOnce(t *testing.T) {
	server := newReceiver(t, http.StatusOK)
	b := newTestBox(t, nil)
	b.hook("chat", server.URL, EventRaised, EventAcknowledged)
	b.put("checkout", planOf("https://a.test/"), "team-a")
	r := rand.New(rand.NewPCG(1, 2))
	b.daily(0, "Chromium 142", around(r, 20, 900)...)
	if all := b.alerts(false); len(all) != 0 {
		t.Fatalf("a level that stays raises %+v", all)
	}
	b.daily(20, "Chromium 143", around(r, 4, 984)...)
	b.daily(24, "Chromium 143", around(r, 4, 984)...)
	all := b.alerts(true)
	if len(all) != 1 {
		t.Fatalf("one step raises %d alerts: %+v; want one, and none for what is no guard", len(all), all)
	}
	a := all[0]
	if a.Metric != "speed_index_ms" || a.Trend != "slower" || a.Run != "20260821-090000-checkout" || a.Before > 910 || a.After < 975 || a.Low > 84 || a.High < 84 ||
		a.Low < 60 || a.Confidence < 0.98 || len(a.Near) != 1 || a.Near[0].Changed[0].Name != "browser" || a.Name != "checkout" || a.Page != "https://a.test/" ||
		len(a.Tags) != 1 || a.Tags[0] != "team-a" || a.Done != nil || a.Seen <= a.Run {
		t.Errorf("alert = %+v", a)
	}
	b.daily(28, "Chromium 143", around(r, 12, 984)...)
	more := b.alerts(true)
	if len(more) != 1 || more[0].ID != a.ID || !more[0].Raised.Equal(a.Raised) || more[0].After == a.After {
		t.Errorf("after more runs: %+v; want the same alert, with numbers of all runs", more)
	}
	if got, err := b.Alerts(t.Context(), Filter{Tag: "team-a", Limit: 5}); err != nil || len(got) != 1 {
		t.Errorf("Alerts(team-a) = %+v, %v; want one", got, err)
	}
	if got, err := b.Alerts(t.Context(), Filter{Tag: "team-b", Limit: 5}); err != nil || len(got) != 0 {
		t.Errorf("Alerts(team-b) = %+v, %v; want none", got, err)
	}
	done, err := b.Acknowledge(t.Context(), a.ID, "ada", "as planned", []string{"planned"})
	if err != nil || done.Done == nil || done.Done.By != "ada" || done.Done.Note != "as planned" || len(done.Tags) != 2 {
		t.Errorf("Acknowledge() = %+v, %v", done, err)
	}
	if _, err := b.Acknowledge(t.Context(), a.ID, "bob", "", nil); !errors.Is(err, ErrDone) {
		t.Errorf("a second Acknowledge() = %v; want ErrDone", err)
	}
	if _, err := b.Acknowledge(t.Context(), 99, "bob", "", nil); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Acknowledge() of none = %v; want ErrNotFound", err)
	}
	b.restart()
	// More of the same is not raised anew, and a step of its own is.
	b.daily(40, "Chromium 143", around(r, 5, 984)...)
	if all := b.alerts(false); len(all) != 1 {
		t.Errorf("after the acknowledgement: %+v; want no other alert", all)
	}
	b.daily(45, "Chromium 143", around(r, 8, 900)...)
	all = b.alerts(true)
	if len(all) != 1 || all[0].Trend != "faster" || all[0].ID == a.ID {
		t.Errorf("a step back: %+v; want an alert of its own, faster", all)
	}
	if bad, err := b.Alerts(t.Context(), Filter{Bad: true, Limit: 1}); err != nil || len(bad) != 1 || bad[0].ID != a.ID {
		t.Errorf("bad for a gate: %+v, %v; want the older alert, which was acknowledged", bad, err)
	}
	var events []string
	for _, d := range b.log() {
		events = append(events, d.Event)
		var e struct{ Data Alert }
		if err := json.Unmarshal(d.Body, &e); err != nil || e.Data.ID == 0 {
			t.Errorf("delivery %s: %v", d.Body, err)
		}
	}
	if len(events) != 3 || events[0] != EventRaised || events[1] != EventAcknowledged || events[2] != EventRaised {
		t.Errorf("events, the newest first: %q; want raised, acknowledged, raised", events)
	}
}

// Two steps in one direction near each other are two alerts.
func TestStairsAreTwoAlerts(t *testing.T) {
	b := newTestBox(t, nil)
	r := rand.New(rand.NewPCG(3, 4))
	values := append(around(r, 20, 900), around(r, 5, 1000)...)
	b.daily(0, "", append(values, around(r, 12, 1100)...)...)
	all := b.alerts(false)
	if len(all) != 2 || all[0].Trend != "slower" || all[1].Trend != "slower" || all[0].Run == all[1].Run {
		t.Errorf("alerts = %+v; want two, at different runs", all)
	}
}

// A run of many pages has a history for each: the page that became slower raises an alert, and no other does.
func TestAlertsOfManyPages(t *testing.T) {
	b := newTestBox(t, nil)
	plan := lab.Plan{Name: "shop", Pages: []lab.PlanPage{{Name: "home", Page: "https://a.test/"}, {Name: "basket", Page: "https://a.test/basket"}}}
	if flow, err := b.PutWorkflow(t.Context(), "shop", plan, nil, "ada", Expect{}); err != nil || flow.Page != "https://a.test/" {
		t.Fatalf("PutWorkflow() = %+v, %v; want one whose page is the first", flow, err)
	}
	r := rand.New(rand.NewPCG(3, 4))
	for day := range 32 {
		wall := time.Date(2026, 8, 1+day, 9, 0, 0, 0, time.UTC)
		run := &lab.Run{ID: store.NewID(wall, "shop"), Name: "shop", Page: "https://a.test/", Wall: wall, State: store.StateDone, Plan: plan}
		for i, c := range plan.Cells() {
			median := 900 + 6*r.NormFloat64()
			if i == 1 && day >= 20 {
				median += 90
			}
			run.Cells = append(run.Cells, lab.CellResult{Name: c.Name, Page: c.Page, URL: c.Plan.Page, Summary: []lab.Summary{
				{Metric: "speed_index_ms", Unit: "ms", Arm: lab.Control, N: 10, Median: median, Low: median - 5, High: median + 5},
			}})
		}
		f, err := store.Create(b.data, run)
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Tell(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := b.alerts(true)
	if len(all) != 1 || all[0].Page != "https://a.test/basket" || all[0].Trend != "slower" {
		t.Errorf("%+v; want one alert, of the basket", all)
	}
}

// What changed together is one alert with rows, of which one event is posted; what is said of it is said of all its
// rows.
func TestJoinedAlerts(t *testing.T) {
	server := newReceiver(t, http.StatusOK)
	b := newTestBox(t, nil)
	b.hook("chat", server.URL, EventRaised)
	plan := lab.Plan{Name: "shop", Pages: []lab.PlanPage{{Name: "home", Page: "https://a.test/"}, {Name: "basket", Page: "https://a.test/basket"}}}
	r := rand.New(rand.NewPCG(3, 4))
	for day := range 34 {
		wall := time.Date(2026, 8, 1+day, 9, 0, 0, 0, time.UTC)
		run := &lab.Run{ID: store.NewID(wall, "shop"), Name: "shop", Page: "https://a.test/", Wall: wall, State: store.StateDone, Plan: plan}
		for _, c := range plan.Cells() {
			cell := lab.CellResult{Name: c.Name, Page: c.Page, URL: c.Plan.Page}
			for _, metric := range []string{"speed_index_ms", "time_to_stable_ms"} {
				median := 900 + 6*r.NormFloat64()
				if day >= 20 {
					median += 90
				}
				cell.Summary = append(cell.Summary, lab.Summary{Metric: metric, Unit: "ms", Arm: lab.Control, N: 10, Median: median, Low: median - 5, High: median + 5})
			}
			run.Cells = append(run.Cells, cell)
		}
		f, err := store.Create(b.data, run)
		if err == nil {
			err = f.Close()
		}
		if err == nil {
			err = b.Tell(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	all := b.alerts(true)
	if len(all) != 1 || len(all[0].Rows) != 3 {
		t.Fatalf("%d alerts: %+v; want one of four rows", len(all), all)
	}
	a, pages := all[0], map[string]int{}
	for _, row := range append(a.Rows, a.Row) {
		pages[row.Page]++
	}
	if d := cmp.Diff(map[string]int{"https://a.test/": 2, "https://a.test/basket": 2}, pages); d != "" {
		t.Errorf("pages of the rows (-want +got):\n%s", d)
	}
	if n := len(b.log()); n != 1 {
		t.Errorf("%d events were posted; want one", n)
	}
	owner, bug := "ada", "https://bugs.test/1"
	if got, err := b.Assign(t.Context(), a.Rows[1].ID, Keeping{&owner, &bug}); err != nil || got.ID != a.ID || got.Owner != owner || len(got.Rows) != 3 {
		t.Errorf("Assign() by a row = %+v, %v; want the alert", got, err)
	}
	script := "javascript:alert(1)"
	var wrong *WrongError
	if _, err := b.Assign(t.Context(), a.ID, Keeping{Bug: &script}); !errors.As(err, &wrong) {
		t.Errorf("Assign() with the bug %s = %v; want a refusal", script, err)
	}
	if _, err := b.Resolve(t.Context(), a.ID, "ada", "reverted"); err != nil {
		t.Fatal(err)
	}
	for _, row := range a.Rows {
		got, err := b.Alerts(t.Context(), Filter{Series: row.SeriesKey, Limit: 5})
		if err != nil || len(got) == 0 || got[0].Resolved == nil || got[0].Bug != bug {
			t.Errorf("of the series of row %d: %+v, %v; want that it is resolved", row.ID, got, err)
		}
	}
	if bad, err := b.Alerts(t.Context(), Filter{Bad: true, Limit: 5}); err != nil || len(bad) != 0 {
		t.Errorf("bad for a gate: %+v, %v; want none", bad, err)
	}
}

// compare ends a scheduled comparison on a day: the treatment is slower by so much, and the run says so.
func (b *testBox) compare(day int, control, slower float64, finding string, p float64) string {
	b.t.Helper()
	return b.compareAt(day, control, slower, finding, p, "")
}

// compareAt is compare of a revision.
func (b *testBox) compareAt(day int, control, slower float64, finding string, p float64, revision string) string {
	b.t.Helper()
	wall := time.Date(2026, 8, 1+day, 9, 0, 0, 0, time.UTC)
	run := &lab.Run{ID: store.NewID(wall, "checkout"), Name: "checkout", Page: "https://a.test/", Wall: wall, State: store.StateDone,
		Plan: lab.Plan{Name: "checkout", Arm: lab.Arm{Page: "https://a.test/"}, Treatment: &lab.Arm{Page: "https://b.test/"},
			From: &lab.Origin{Workflow: "checkout", Version: 1, Schedule: "often", Revision: revision}},
		Comparison: &lab.Comparison{Verdict: finding}}
	for _, name := range []string{"speed_index_ms", "time_to_stable_ms"} {
		run.Summary = append(run.Summary, lab.Summary{Metric: name, Unit: "ms", Arm: lab.Control, N: 10, Median: control, Low: control - 5, High: control + 5},
			lab.Summary{Metric: name, Unit: "ms", Arm: lab.Treatment, N: 10, Median: control + slower, Low: control + slower - 5, High: control + slower + 5})
		run.Comparison.Effects = append(run.Comparison.Effects, lab.Effect{Metric: name, Unit: "ms", Guard: true, Finding: finding, Pairs: 10,
			Control: control, Treatment: control + slower, Adjusted: p, Shift: lab.Range{Value: slower, Low: slower - 8, High: slower + 8, Confidence: 0.95}})
	}
	f, err := store.Create(b.data, run)
	if err == nil {
		err = f.Close()
	}
	if err == nil {
		err = b.Tell(b.t.Context())
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return run.ID
}

// The first scheduled comparison that says slower is an alert by itself; those that follow are the same one.
func TestVerdictRaisesAnAlert(t *testing.T) {
	server := newReceiver(t, http.StatusOK)
	b := newTestBox(t, nil)
	b.hook("chat", server.URL, EventRaised)
	b.put("checkout", planOf("https://a.test/"), "team-a")
	first := b.compare(0, 500, 690, lab.Slower, 0.0002)
	all := b.alerts(true)
	if len(all) != 1 {
		t.Fatalf("a comparison that is slower by 138 %% raises %d alerts: %+v; want one", len(all), all)
	}
	a := all[0]
	if a.Kind != KindVerdict || a.Line != history.Difference || a.Metric != "time_to_stable_ms" && a.Metric != "speed_index_ms" || len(a.Also) != 1 ||
		a.Run != first || a.Trend != "slower" || a.Before != 500 || a.After != 1190 || a.Low != 682 || a.Percent == nil || *a.Percent != 138 ||
		len(a.Tags) != 1 {
		t.Errorf("alert = %+v", a)
	}
	b.compare(1, 500, 700, lab.Slower, 0.0002)
	if all := b.alerts(true); len(all) != 1 || all[0].ID != a.ID || all[0].Run != first || all[0].After != 1200 {
		t.Errorf("after another that says so: %+v; want the same alert with the newest numbers", all)
	}
	if _, err := b.Acknowledge(t.Context(), a.ID, "ada", "known", nil); err != nil {
		t.Fatal(err)
	}
	b.compare(2, 500, 700, lab.Slower, 0.0002)
	if all := b.alerts(false); len(all) != 1 {
		t.Errorf("after it was acknowledged: %+v; want no other", all)
	}
	if n := len(b.log()); n != 1 {
		t.Errorf("%d events were posted; want one", n)
	}
}

// Production stays as it was and trunk becomes slower: the steps of the treatment and of the difference raise alerts,
// that of the control does not.
func TestAlertOfTheDifference(t *testing.T) {
	b := newTestBox(t, nil)
	r := rand.New(rand.NewPCG(5, 6))
	for day := range 26 {
		slower := 4 * r.NormFloat64()
		if day >= 20 {
			slower += 60
		}
		b.compare(day, 900+4*r.NormFloat64(), slower, lab.NoChange, 0.4) // too small for one run
	}
	all := b.alerts(true)
	if len(all) != 1 || all[0].Line != history.Difference {
		t.Fatalf("%d alerts: %+v; want one, of the difference, with the others as its rows", len(all), all)
	}
	got := map[string]int{}
	for _, a := range append(all[0].Rows, all[0].Row) {
		got[a.Kind+" "+a.Line+" "+a.Trend+" "+a.Run]++
	}
	if d := cmp.Diff(map[string]int{"step treatment slower 20260821-090000-checkout": 2, "step difference slower 20260821-090000-checkout": 2}, got); d != "" {
		t.Errorf("alerts (-want +got):\n%s", d)
	}
}

// Alerts that were kept before there were lines are of the control, and steps of other lines are not taken for them.
func TestAlertFromBeforeLines(t *testing.T) {
	b := newTestBox(t, nil)
	wall := stamp(time.Date(2026, 8, 21, 9, 0, 0, 0, time.UTC))
	old := `{"id": 1, "series": "x", "metric": "speed_index_ms", "trend": "slower", "wall": "2026-08-21T09:00:00Z", "tags": []}`
	if _, err := b.db.Exec(`INSERT INTO alerts (series, metric, trend, wall, raised, acked, alert) VALUES ('x', 'speed_index_ms', 'slower', ?1, ?1, 0, ?2)`,
		wall, old); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]int{lab.Control: 1, history.Difference: 0} {
		tx, err := b.db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		a := Alert{Row: Row{SeriesKey: "x", Metric: "speed_index_ms", Line: line}}
		a.Trend = "slower"
		all, err := raisedBefore(t.Context(), tx, a)
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if err != nil || len(all) != want || want == 1 && (all[0].Line != lab.Control || all[0].Kind != KindStep) {
			t.Errorf("raisedBefore() of the %s = %+v, %v; want %d", line, all, err, want)
		}
	}
}
