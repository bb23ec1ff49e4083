package history

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// series makes one run a day with these medians of SpeedIndex.
func series(medians ...float64) []store.Past {
	var out []store.Past
	for i, m := range medians {
		wall := time.Date(2026, 11, 1+i, 9, 0, 0, 0, time.UTC)
		out = append(out, store.Past{
			ID: wall.Format("20060102") + "-checkout", Wall: wall, Trials: 10, Valid: 10, Report: true,
			Facts:   map[string]string{"browser": "Chromium 142", "kernel": "Linux 6.1.0"},
			Summary: []lab.Summary{{Metric: "speed_index_ms", Unit: "ms", Arm: lab.Control, N: 10, Median: m, Low: m - 20, High: m + 20}},
		})
	}
	return out
}

// noisy makes n medians around a level, about one in twenty of them an outlier.
func noisy(r *rand.Rand, n int, level, spread float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = level + spread*r.NormFloat64()
		if r.IntN(20) == 0 {
			out[i] += 10 * spread
		}
	}
	return out
}

func of(t *testing.T, past []store.Past, metric string) Metric {
	t.Helper()
	m, err := NewFinder().Of(t.Context(), past, Runs(past), metric, lab.Control)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestStepIsFoundAndTold(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	past := series(append(noisy(r, 20, 900, 6), noisy(r, 9, 984, 6)...)...)
	for i := range past[20:] {
		past[20+i].Facts["browser"] = "Chromium 143"
	}
	m := of(t, past, "speed_index_ms")
	if len(m.Steps) != 1 || len(m.Values) != 29 || m.Text != "1 change in 29 runs" {
		t.Fatalf("Of() = %+v; want one step in 29 runs", m)
	}
	s := m.Steps[0]
	if s.Run != "20261121-checkout" || !s.Wall.Equal(past[20].Wall) || s.Trend != "slower" || s.P > Level || math.Abs(s.Before-900) > 8 ||
		math.Abs(s.After-984) > 8 || math.Abs(*s.Percent-9.3) > 1.5 {
		t.Errorf("got %+v", s)
	}
	if want := fmt.Sprintf("SpeedIndex +%.0f ms (+%.1f %%) since 20261121-checkout, p = 0.0013", s.After-s.Before, *s.Percent); s.Text != want {
		t.Errorf("Text = %q; want %q", s.Text, want)
	}
	want := []Near{{"20261121-checkout", []Fact{{"browser", "Chromium 142", "Chromium 143"}}}}
	if d := cmp.Diff(want, s.Near); d != "" {
		t.Errorf("what changed at the step (-want +got):\n%s", d)
	}
	// The reverse is faster, and smaller for a metric that is not a guard.
	slices.Reverse(past)
	for i := range past {
		past[i].Summary = append(past[i].Summary, past[i].Summary[0])
		past[i].Summary[1].Metric = "bytes"
	}
	if got := of(t, past, "speed_index_ms").Steps[0].Trend; got != "faster" {
		t.Error(got)
	}
	if got := of(t, past, "bytes").Steps[0].Trend; got != "smaller" {
		t.Error(got)
	}
}

// TestNoiseAlone: at this level, one in eighty series without a change shows a step: 5 of
// 400 on average, and more than 14 once in ten thousand times.
func TestNoiseAlone(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	alarms := 0
	for range 400 {
		if len(of(t, series(noisy(r, 28, 1200, 30)...), "speed_index_ms").Steps) > 0 {
			alarms++
		}
	}
	if alarms > 14 {
		t.Errorf("%d of 400 series without a change show a step; want at most 14", alarms)
	}
}

// TestSeenSoon: after 20 runs, three runs at a level that is five times the spread higher
// are enough for a step.
func TestSeenSoon(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	seen := 0
	for range 100 {
		medians := make([]float64, 23)
		for i := range medians {
			medians[i] = 900 + 10*r.NormFloat64()
			if i >= 20 {
				medians[i] += 50
			}
		}
		seen += len(of(t, series(medians...), "speed_index_ms").Steps)
	}
	if seen < 95 {
		t.Errorf("the step was found in %d of 100 series; want at least 95", seen)
	}
}

// TestNeeded: two levels without noise are told apart from Needed runs on.
func TestNeeded(t *testing.T) {
	if RuleOf(nil).Needed != 10 {
		t.Errorf("RuleOf(nil).Needed = %d; want 10", RuleOf(nil).Needed)
	}
	for n := range 13 {
		medians := make([]float64, n)
		for i := range medians {
			medians[i] = 500 + float64(i)/100
			if i >= n/2 {
				medians[i] += 300
			}
		}
		m := of(t, series(medians...), "speed_index_ms")
		if got := len(m.Steps) > 0; got != (n >= RuleOf(nil).Needed) {
			t.Errorf("%d runs have %d steps", n, len(m.Steps))
		}
		if want := "from 10 runs on"; n > 0 && n < RuleOf(nil).Needed && !strings.HasSuffix(m.Text, want) {
			t.Errorf("the text for %d runs is %q", n, m.Text)
		}
	}
}

// A metric that some runs lack has its steps in the runs that have it.
func TestRunsWithoutTheMetric(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	past := series(append(noisy(r, 20, 900, 6), noisy(r, 9, 984, 6)...)...)
	for _, i := range []int{0, 3, 19, 22} {
		past[i].Summary = nil
	}
	m := of(t, past, "speed_index_ms")
	if len(m.Steps) != 1 || m.Steps[0].Run != "20261121-checkout" || len(m.Values) != 25 || m.Values[0].Run != "20261102-checkout" {
		t.Errorf("got %+v", m)
	}
	if m := of(t, past, "nope"); m.Text != "no run has this metric" || m.Values == nil || m.Steps == nil {
		t.Errorf("got %+v", m)
	}
}

// Values that the appliance never writes do not break a history.
func TestStrangeNumbers(t *testing.T) {
	past := series(noisy(rand.New(rand.NewPCG(7, 8)), 20, 0, 1)...)
	for i := range past[10:] {
		past[10+i].Summary[0].Median += 50
	}
	for i := range past[:10] {
		past[i].Summary[0].Median *= 1e-310
	}
	past[3].Summary[0].Median = math.MaxFloat64
	past[4].Summary[0].High = -math.MaxFloat64
	m := of(t, past, "speed_index_ms")
	if len(m.Values) != 18 || len(m.Steps) != 1 || m.Steps[0].Percent != nil || strings.Contains(m.Steps[0].Text, "Inf") {
		t.Errorf("got %+v", m)
	}
}

func TestChanged(t *testing.T) {
	past := series(1, 2, 3)
	past[1].Facts = map[string]string{"browser": "Chromium 143", "kernel": "Linux 6.1.1", "governor": "performance"}
	got := Runs(past)
	want := []Fact{{"browser", "Chromium 142", "Chromium 143"}, {"kernel", "Linux 6.1.0", "Linux 6.1.1"}}
	if d := cmp.Diff(want, got[1].Changed); d != "" || len(got[0].Changed) != 0 || len(got[2].Changed) != 2 {
		t.Errorf("(-want +got):\n%s%+v", d, got)
	}
}

func TestMetrics(t *testing.T) {
	past := series(1, 2)
	past[0].Summary = append(past[0].Summary, lab.Summary{Metric: "gone", N: 1})
	past[1].Summary = []lab.Summary{{Metric: "unique_fps", Unit: "frames/s"}, {Metric: "last_visual_change_ms"}, {Metric: "speed_index_ms"}}
	var names []string
	for _, a := range Metrics(past) {
		names = append(names, a.Metric)
	}
	if d := cmp.Diff([]string{"speed_index_ms", "last_visual_change_ms", "unique_fps", "gone"}, names); d != "" {
		t.Error(d)
	}
}

func TestSigned(t *testing.T) {
	for v, want := range map[float64]string{84.2: "+84", -1234.5: "−1\u202f235", 9.04: "+9", -3.25: "−3.3", 108.5: "+109", 0.25: "+0.25",
		0.001: "0", 0: "0", 1e6: "+1\u202f000\u202f000"} {
		if got := signed(v); got != want {
			t.Errorf("signed(%v) = %q; want %q", v, got, want)
		}
	}
}

// A Finder caches its results, and callers stop waiting when their context ends.
func TestFinder(t *testing.T) {
	f := NewFinder()
	medians := noisy(rand.New(rand.NewPCG(9, 10)), 40, 100, 2)
	for i := range medians[20:] {
		medians[20+i] += 20
	}
	first, err := f.points(t.Context(), medians, RuleOf(nil))
	if err != nil || len(first) != 1 {
		t.Fatalf("%v, %v", first, err)
	}
	again, err := f.points(t.Context(), slices.Clone(medians), RuleOf(nil))
	if err != nil || &again[0] != &first[0] {
		t.Errorf("points() of known medians = %v, %v; want the cached slice", again, err)
	}
	held := <-f.state
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.points(ctx, medians, RuleOf(nil)); err == nil {
		t.Error("points() with a cancelled context succeeded; want its error")
	}
	f.state <- held
	for i := range remembered + 1 {
		medians[0] = float64(i)
		if _, err := f.points(t.Context(), medians[:RuleOf(nil).Needed], RuleOf(nil)); err != nil {
			t.Fatal(err)
		}
	}
	if held := <-f.state; len(held) > remembered {
		t.Errorf("%d series are cached", len(held))
	}
}

func BenchmarkOf500(b *testing.B) {
	r := rand.New(rand.NewPCG(11, 12))
	past := series(slices.Concat(noisy(r, 200, 900, 10), noisy(r, 200, 1000, 10), noisy(r, 100, 950, 10))...)
	for b.Loop() {
		if _, err := NewFinder().Of(b.Context(), past, Runs(past), "speed_index_ms", lab.Control); err != nil {
			b.Fatal(err)
		}
	}
}
