package panel

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/tell/report/reporttest"
)

// largeStore makes a store with runs of ten pages on two links, every second of them of two arms, an hour apart. The
// trials are as large as those of real loads; their series and files are left out, which no list reads.
func largeStore(tb testing.TB, runs, trials int) *store.Store {
	tb.Helper()
	root := tb.TempDir()
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range runs {
		run := reporttest.Run(0, 0)
		if i%2 == 1 {
			run = reporttest.Compared(uint64(i), trials/2, 100)
		} else {
			for n := range trials {
				run.Trials = append(run.Trials, reporttest.Trial(rng, n+1))
			}
			run.Summary = reporttest.Summarise(run.Trials)
		}
		run.Wall = time.Date(2026, 3, 1, i, 0, 0, 0, time.UTC)
		run.ID, run.Name = fmt.Sprintf("%s-%d", run.Wall.Format("20060102-150405"), i), fmt.Sprint("page ", i%10)
		run.Page, run.Plan.Link = fmt.Sprintf("https://www.shop.example/%d", i%10), []string{"4g", "3g"}[i/10%2]
		run.Plan.Page, run.Plan.Device = run.Page, "virtual"
		putRun(tb, root, run)
	}
	st, err := store.Open(tb.Context(), root, nil)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = st.Close() })
	return st
}

// putRun writes the run.json of a run without the many syncs of a run that measures.
func putRun(tb testing.TB, root string, run *lab.Run) {
	tb.Helper()
	for _, t := range run.Trials {
		t.LoadHistogram, t.VisualProgress, t.FrameTimes = nil, nil, nil
	}
	content, err := json.Marshal(run)
	if err == nil {
		err = os.MkdirAll(filepath.Join(root, "runs", run.ID), 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(root, "runs", run.ID, "run.json"), content, 0o644)
	}
	if err != nil {
		tb.Fatal(err)
	}
}

// The list of a store with many runs can be filtered, and a filtered list has pages: each run that matches is in one of
// them.
func TestListFilters(t *testing.T) {
	st := largeStore(t, 80, 2)
	gone := reporttest.Run(1, 1)
	gone.ID, gone.Wall, gone.State = "20260501-000000-cut", time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC), store.StateRunning
	putRun(t, st.Root(), gone) // nobody holds its lock: it was interrupted
	film := reporttest.Run(1, 1)
	film.ID, film.Wall, film.Kind, film.Plan.Device = "20260502-000000-film", time.Date(2026, 5, 2, 0, 0, 0, 0, time.UTC), lab.KindFilm, "virtual"
	putRun(t, st.Root(), film)
	all, err := st.Runs(t.Context(), "", 0)
	if err != nil || len(all) != 82 {
		t.Fatalf("%d runs, %v; want 82", len(all), err)
	}
	s := newServer(t, setup{Store: st, Version: "v1"})
	read := func(query string) (r Runs) {
		t.Helper()
		got := ask(t, s, http.MethodGet, "/api/v1/runs?"+query, nil)
		if err := json.Unmarshal([]byte(got.text), &r); err != nil || got.StatusCode != http.StatusOK {
			t.Fatalf("GET runs?%s = %d %.300s (%v); want 200", query, got.StatusCode, got.text, err)
		}
		return r
	}
	var series Histories
	if got := ask(t, s, http.MethodGet, "/api/v1/history?name=page+3&link=3g", nil); json.Unmarshal([]byte(got.text), &series) != nil || len(series.Series) != 1 {
		t.Fatalf("the series: %.300s; want one", got.text)
	}
	const page3 = "https://www.shop.example/3"
	since := time.Date(2026, 3, 2, 6, 0, 0, 0, time.UTC)
	for query, matches := range map[string]func(store.Entry) bool{
		"page=" + page3:      func(e store.Entry) bool { return e.Page == page3 },
		"name=page+4":        func(e store.Entry) bool { return e.Name == "page 4" },
		"device=virtual":     func(e store.Entry) bool { return e.State == store.StateDone },
		"device=phone":       func(store.Entry) bool { return false },
		"browser=firefox":    func(store.Entry) bool { return false },
		"state=interrupted":  func(e store.Entry) bool { return e.ID == gone.ID },
		"kind=film":          func(e store.Entry) bool { return e.ID == film.ID },
		"kind=plan":          func(e store.Entry) bool { return e.ID != film.ID },
		"kind=qualification": func(store.Entry) bool { return false },
		"state=failed":       func(store.Entry) bool { return false },
		"verdict=unknown":    func(e store.Entry) bool { return e.Comparison != nil && e.Comparison.Verdict == lab.Unknown },
		"verdict=slower":     func(e store.Entry) bool { return e.Comparison != nil && e.Comparison.Verdict == lab.Slower },
		"since=2026-03-02T06:00:00Z": func(e store.Entry) bool {
			return !e.Wall.Before(since)
		},
		"until=2026-03-02T08:00:00%2B02:00&name=page+3": func(e store.Entry) bool { return e.Wall.Before(since) && e.Name == "page 3" },
		"series=" + series.Series[0].Key:                func(e store.Entry) bool { return e.Page == page3 && isOn(t, st, e.ID, "3g") },
		"page=" + page3 + "&link=4g&verdict=unknown":    func(e store.Entry) bool { return e.Page == page3 && isOn(t, st, e.ID, "4g") },
	} {
		var want, got, paged []string
		for _, e := range all {
			if matches(e) {
				want = append(want, e.ID)
			}
		}
		for _, e := range read(query + "&limit=500").Runs {
			got = append(got, e.ID)
		}
		for next := ""; ; {
			r := read(query + "&limit=3" + next)
			for _, e := range r.Runs {
				paged = append(paged, e.ID)
			}
			if r.Next == "" {
				break
			}
			next = "&before=" + r.Next
		}
		if !slices.Equal(got, want) || !slices.Equal(paged, want) {
			t.Errorf("%s: %d runs, and in pages of three %d; want the %d of %d that match", query, len(got), len(paged), len(want), len(all))
		}
	}
	for query, field := range map[string]string{
		"state=gone": "query.state", "verdict=slow": "query.verdict", "kind=run": "query.kind", "since=yesterday": "query.since", "series=x": "query.series",
		"since=2026-03-02T06:00:00Z&until=2026-03-02T06:00:00Z": "query.until",
	} {
		if got := ask(t, s, http.MethodGet, "/api/v1/runs?"+query, nil); got.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(got.text, field) {
			t.Errorf("GET runs?%s = %d %.300s; want 422 that names %s", query, got.StatusCode, got.text, field)
		}
	}
}

// isOn says whether the control of a run is on a link.
func isOn(t *testing.T, st *store.Store, id, link string) bool {
	t.Helper()
	run, err := st.Run(id)
	if err != nil {
		t.Fatal(err)
	}
	return run.Plan.Link == link
}

// Runs that wait, and those that will go on, are found by their state in the queue.
func TestListFiltersTheQueue(t *testing.T) {
	p, q := withJob(t)
	cut := reporttest.Run(1, 1)
	cut.ID, cut.State = "20260501-000000-cut", store.StateRunning
	putRun(t, p.Store.Root(), cut)
	if err := q.Add(t.Context(), store.Job{ID: cut.ID, Device: "b", Plan: planOf(t)}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		in   listInput
		want []string
	}{
		{listInput{State: store.StateQueued}, []string{"1", cut.ID}},
		{listInput{State: store.StateInterrupted}, nil},
		{listInput{State: store.StateQueued, Page: "https://nowhere.test/"}, nil},
		{listInput{State: store.StateQueued, Page: planOf(t).Page}, []string{"1", cut.ID}},
		{listInput{State: store.StateQueued, Verdict: lab.Slower}, nil},
		{listInput{Until: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)}, []string{"1"}}, // made in 1970
		{listInput{State: store.StateDone}, []string{"20261121-091400-demo"}},
	} {
		c.in.Limit = 10
		got, err := p.list(t.Context(), &c.in)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, e := range got.Body.Runs {
			ids = append(ids, e.ID)
		}
		if !slices.Equal(ids, c.want) {
			t.Errorf("list %+v = %q, want %q", c.in, ids, c.want)
		}
	}
}

// BenchmarkLargeStore: what a person waits for in a store of 10,000 trials in 500 runs, and with a run of 1,000 trials.
func BenchmarkLargeStore(b *testing.B) {
	st := largeStore(b, 500, 20)
	one := reporttest.Compared(7, 500, 40)
	one.ID = "20260401-090000-thousand"
	putRun(b, st.Root(), one)
	s := newServer(b, setup{Store: st, Version: "v1"})
	get := func(b *testing.B, path string) []byte {
		got := ask(b, s, http.MethodGet, path, nil)
		if got.StatusCode != http.StatusOK {
			b.Fatalf("GET %s = %d %.300s; want 200", path, got.StatusCode, got.text)
		}
		return []byte(got.text)
	}
	var list Histories
	if err := json.Unmarshal(get(b, "/api/v1/history"), &list); err != nil || len(list.Series) == 0 {
		b.Fatalf("the series: %+v, %v", list, err)
	}
	for _, c := range []struct{ name, path string }{
		{"list 50", "/api/v1/runs"},
		{"list 500", "/api/v1/runs?limit=500"},
		{"list a page", "/api/v1/runs?page=https://www.shop.example/3"},
		{"list a page, link, device and verdict of a month",
			"/api/v1/runs?page=https://www.shop.example/3&link=4g&device=virtual&verdict=slower&since=2026-03-05T00:00:00Z&until=2026-04-05T00:00:00Z"},
		{"list a series", "/api/v1/runs?limit=500&series=" + list.Series[0].Key},
		{"list series", "/api/v1/history"},
		{"history of a name", "/api/v1/history?name=page+3"},
		{"open a run of 20 trials", "/api/v1/runs/20260301-000000-0"},
		{"open a run of 1000 trials", "/api/v1/runs/" + one.ID},
		{"view a run of 1000 trials", "/api/v1/runs/" + one.ID + "/view"},
		{"export a run of 1000 trials", "/api/v1/runs/" + one.ID + "/export?format=csv"},
	} {
		b.Run(c.name, func(b *testing.B) {
			size := 0
			for b.Loop() {
				size = len(get(b, c.path))
			}
			b.ReportMetric(float64(size)/1e3, "kB")
		})
	}
	b.Run("open the store", func(b *testing.B) {
		for b.Loop() {
			again, err := store.Open(b.Context(), st.Root(), nil)
			if err != nil {
				b.Fatal(err)
			}
			_ = again.Close()
		}
	})
	b.Run("make the index anew", func(b *testing.B) {
		for b.Loop() {
			if err := os.Remove(filepath.Join(st.Root(), "index.db")); err != nil {
				b.Fatal(err)
			}
			again, err := store.Open(b.Context(), st.Root(), nil)
			if err != nil {
				b.Fatal(err)
			}
			_ = again.Close()
		}
	})
}

// BenchmarkRunPage: what somebody waits for who opens the page of a run of 100 trials, in a store of 10,000, until its
// charts are drawn and take keys, and how much is sent for that.
func BenchmarkRunPage(b *testing.B) {
	st := largeStore(b, 500, 20)
	one := reporttest.Compared(7, 50, 40)
	one.ID = "20260401-090000-hundred"
	putRun(b, st.Root(), one)
	s := newServer(b, setup{Store: st, Version: "v1"})
	browser := browsers.New(b)
	var took, sent, least float64
	n := 0.0
	for b.Loop() {
		if err := browser.Open(s.URL + "/run?run=" + one.ID); err != nil {
			b.Fatal(err)
		}
		got, err := reporttest.Eval[[]float64](browser, runPageReady)
		if err != nil || len(got) != 2 {
			b.Fatalf("%v, %v", got, err)
		}
		if took, sent, n = took+got[0], sent+got[1], n+1; n == 1 || got[0] < least {
			least = got[0]
		}
	}
	b.ReportMetric(took/n, "ms/page")
	b.ReportMetric(least, "ms-least")
	b.ReportMetric(sent/n/1e3, "kB")
}

// runPageReady waits until the page is drawn, and returns when that was, in ms since the navigation, and what was sent,
// in bytes.
const runPageReady = `(async () => {` + until + `
	await until(() => document.querySelectorAll(".metric svg a[tabindex='0']").length === 8 && document.getElementById("pair").options.length);
	const drawn = performance.mark("drawn").startTime, all = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
	return [drawn, all.reduce((sum, e) => sum + e.decodedBodySize, 0)];
})()`

// All that the page of a run of 100 trials needs is less than 300 kB, without any compression.
func TestRunPageIsSmall(t *testing.T) {
	st := emptyStore(t)
	one := reporttest.Compared(7, 50, 40)
	putRun(t, st.Root(), one)
	s := newServer(t, setup{Store: st, Version: "v1"})
	b := browsers.New(t)
	if err := b.Open(s.URL + "/run?run=" + one.ID); err != nil {
		t.Fatal(err)
	}
	got, err := reporttest.Eval[[]float64](b, runPageReady)
	if err != nil || len(got) != 2 || got[1] < 10_000 || got[1] > 300_000 {
		t.Errorf("the page is ready, and its bytes: %v (%v); want less than 300 kB", got, err)
	}
	t.Logf("ready after %.0f ms, with %.0f kB", got[0], got[1]/1e3)
	if dots, err := reporttest.Eval[int](b, `document.querySelectorAll(".metric svg a").length`); err != nil || dots != 4*(100+50) {
		t.Errorf("%d dots (%v), want 600", dots, err)
	}
}

// Requests for large runs wait for each other, and only as long as their clients do; small ones wait for nobody.
func TestLargeRunsAreReadInTurn(t *testing.T) {
	st := emptyStore(t)
	for id, warning := range map[string]string{"small": "none", "large": strings.Repeat("x", freeRun)} {
		run := reporttest.Compared(1, 8, 100)
		run.ID, run.Warnings = id, []string{warning}
		addRun(t, st, run)
	}
	p, err := newPanel(setup{Store: st, Version: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(ctx context.Context, path string) int {
		r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1/api/v1/runs/"+path, nil).WithContext(ctx)
		r.RemoteAddr = "127.0.0.1:1"
		w := httptest.NewRecorder()
		p.large(p.router).ServeHTTP(w, r)
		return w.Code
	}
	gone, leave := context.WithCancel(t.Context()) // whoever has left gets what nobody has to wait for
	leave()
	if !p.reading.TryAcquire(mostRuns) {
		t.Fatal("somebody reads a run")
	}
	for path, waits := range map[string]bool{"small": false, "large": true, "large/view": true, "large/export?format=csv": true, "large/events": true,
		"small/comparison?reference=large": true, "large/pin": false, "large/artifacts/run.json": true, "small/artifacts/run.json": false} {
		if got := ask(gone, path); waits != (got == http.StatusServiceUnavailable) {
			t.Errorf("%s while others read: %d; want that it waits: %v", path, got, waits)
		}
	}
	p.reading.Release(mostRuns)
	for range 2 {
		if got := ask(t.Context(), "large"); got != http.StatusOK || !p.reading.TryAcquire(mostRuns) {
			t.Fatalf("the large run, which nobody reads: %d; want 200, and that nobody reads it afterwards", got)
		}
		p.reading.Release(mostRuns)
	}
}
