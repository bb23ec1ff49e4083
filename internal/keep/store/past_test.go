package store

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"eidetic/internal/lab"
)

// done makes a finished run as the product writes it.
func done(id, name string, hour int) *lab.Run {
	run := sample(id, StateDone)
	run.Name, run.Wall = name, run.Wall.Add(time.Duration(hour)*time.Hour)
	run.Link = lab.Link{RTT: 28 * time.Millisecond, BackEnd: "packet"}
	run.Plan = lab.Plan{
		Device: "virtual", Timing: "recorded", Trials: 10, Seed: 1<<64 - 1,
		Arm: lab.Arm{Link: "rtt=28ms", Archive: "/data/shop.wacz"}, Treatment: &lab.Arm{Link: "3g"},
	}
	run.Archive.SHA256 = strings.Repeat("5ab", 20)
	run.Environment = lab.Environment{
		Host: lab.Host{Kernel: "Linux 6.1", Cores: 2, LoadAverage: "0.5 0.4"}, Browser: "Chromium 142",
		Network:   &lab.NetworkState{Connections: 12, KernelSettings: map[string]string{"net.ipv4.tcp_wmem": "4096\t16384"}},
		Isolation: &lab.Isolation{How: "a namespace"}, Port: &lab.PortState{Interface: "eth1"},
	}
	run.Summary = append(run.Summary,
		lab.Summary{Metric: "speed_index_ms", Unit: "ms", Arm: lab.Treatment, N: 1, Median: 1},
		lab.Summary{Metric: "time_to_stable_ms", Unit: "ms", Arm: lab.Control})
	run.Trials = append(run.Trials, &lab.Trial{Number: 2, Arm: lab.Treatment, Valid: true}, &lab.Trial{Number: 3, Arm: lab.Control},
		&lab.Trial{Number: 4, Arm: lab.Control, Warmup: true}) // which nothing counts
	return run
}

func TestSeries(t *testing.T) {
	root := t.TempDir()
	s := open(t, root)
	for i := range 3 {
		create(t, root, done(fmt.Sprint("a", i), "checkout", i))
	}
	other := done("b", "checkout", 9)
	other.Plan.Device = "laptop"
	create(t, root, other)
	create(t, root, done("c", "", 8))
	for _, state := range []string{StateRunning, StateFailed, StateInterrupted} {
		run := done(state, "checkout", 10)
		run.State = state
		create(t, root, run)
	}
	list := func(key string, want Series, limit int) []SeriesEntry {
		t.Helper()
		found, err := s.Series(t.Context(), key, want, limit)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	all := list("", Series{}, 10)
	var got []string
	for _, e := range all {
		got = append(got, fmt.Sprint(e.Name, " ", e.Link, " ", e.Device, " ", e.Count, " ", e.Last.Hour()))
	}
	if d := cmp.Diff([]string{"checkout rtt=28ms laptop 1 18", " rtt=28ms virtual 1 17", "checkout rtt=28ms virtual 3 11"}, got); d != "" {
		t.Error(d)
	}
	for what, found := range map[string][]SeriesEntry{
		"key": list(all[2].Key, Series{}, 10), "device": list("", Series{Name: "checkout", Device: "virtual"}, 10),
	} {
		if len(found) != 1 || found[0] != all[2] {
			t.Errorf("Series() by %s = %+v; want %+v", what, found, all[2])
		}
	}
	if n := len(list("", Series{Link: "rtt=28ms"}, 2)); n != 2 {
		t.Errorf("Series() with limit 2 lists %d", n)
	}
	if found := list("", Series{Page: "https://nowhere.example/"}, 10); len(found) != 0 {
		t.Errorf("Series() of a page without runs = %+v; want none", found)
	}
	// Past does not read the folders.
	if err := os.Rename(filepath.Join(root, "runs"), filepath.Join(root, "away")); err != nil {
		t.Fatal(err)
	}
	past, err := s.Past(t.Context(), all[2].Key, 2)
	if err != nil || len(past) != 2 || past[0].ID != "a1" || past[1].ID != "a2" {
		t.Fatalf("Past() = %+v, %v; want a1, a2", past, err)
	}
	if past, err := s.Past(t.Context(), "", 2); err != nil || len(past) != 0 {
		t.Errorf("Past() of no series = %+v, %v; want none", past, err)
	}
	if err := os.Rename(filepath.Join(root, "away"), filepath.Join(root, "runs")); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(root, "runs", "b")); err != nil {
		t.Fatal(err)
	}
	if n := len(list("", Series{}, 10)); n != 2 {
		t.Errorf("%d series after one was deleted; want 2", n)
	}
}

// The index keeps the numbers of both arms and their differences, and the facts that stay equal from run to run.
func TestPast(t *testing.T) {
	run, shift := done("a", "checkout", 0), lab.Range{Value: -750, Low: -751, High: -749, Confidence: 0.95}
	run.Plan.From = &lab.Origin{Workflow: "checkout", Version: 2, Schedule: "nightly"}
	run.Comparison = &lab.Comparison{Effects: []lab.Effect{
		{Metric: "bytes", Unit: "B", Pairs: 6, Control: 10, Shift: shift, Adjusted: 0.5, Finding: lab.NoChange},
		{Metric: "few", Guard: true, Pairs: 2, Finding: lab.Unknown}, // not tested: it has no interval
		{Metric: "speed_index_ms", Unit: "ms", Guard: true, Pairs: 6, Control: 751.2, Shift: shift, Adjusted: 0.03, Finding: lab.Faster},
	}}
	series, got := pastOf(run, true)
	if d := cmp.Diff(Series{"checkout", "https://www.shop.example/", "rtt=28ms", "virtual", ""}, series); d != "" {
		t.Error(d)
	}
	want := Past{
		ID: "a", Wall: time.Date(2026, 11, 21, 9, 14, 0, 0, time.UTC), Trials: 2, Valid: 1, Report: true,
		Facts: map[string]string{
			"browser": "Chromium 142", "kernel": "Linux 6.1", "cores": "2", "network.kernel_settings.net.ipv4.tcp_wmem": "4096\t16384",
			"link.rtt_ns": "28000000", "link.back_end": "packet", "link.down_bits_per_second": "0", "link.up_bits_per_second": "0",
			"link.loss": "0", "link.jitter_ns": "0", "link.seed": "0",
			"plan.timing": "recorded", "plan.live": "false", "plan.seed": "18446744073709551615", "recording": "5ab5ab5ab5ab",
			"plan.workflow": "checkout@2",
		},
		Summary:   []lab.Summary{{Metric: "speed_index_ms", Unit: "ms", Arm: lab.Control, N: 1, Median: 751.2}},
		Treatment: []lab.Summary{{Metric: "speed_index_ms", Unit: "ms", Arm: lab.Treatment, N: 1, Median: 1}},
		Changes: []Change{{Metric: "speed_index_ms", Unit: "ms", Pairs: 6, Control: 751.2, Shift: shift, P: 0.03, Finding: lab.Faster, Guard: true},
			{Metric: "bytes", Unit: "B", Pairs: 6, Control: 10, Shift: shift, P: 0.5, Finding: lab.NoChange}},
		Schedule: "nightly",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("pastOf() (-want +got):\n%s", d)
	}
	// A plan without a treatment, and with a recording that is made anew each time.
	run = done("a", "", 0)
	run.Plan, run.Link.Name = lab.Plan{}, "lte"
	series, got = pastOf(run, false)
	if series.Link != "lte" || series.Device != "" || got.Facts["recording"] != "made by the run" {
		t.Errorf("pastOf() of a run without a treatment = %+v, %+v; want link lte, no device, recording made by the run", series, got)
	}
	// Numbers of two browsers are not of one series.
	run.Plan.Browser = &lab.Browser{Name: lab.Firefox}
	if other, _ := pastOf(run, false); other.Browser != lab.Firefox || other.Key() == series.Key() {
		t.Errorf("pastOf() of a run in Firefox = %+v; want another series than %+v", other, series)
	}
	run.Plan.Browser = &lab.Browser{Name: lab.Chromium}
	if other, _ := pastOf(run, false); other != series {
		t.Errorf("pastOf() of a run in Chromium by name = %+v; want %+v", other, series)
	}
	if (Series{Name: "a", Page: "b"}).Key() == (Series{Name: "ab"}).Key() {
		t.Error("Key() is equal for two different series")
	}
}

// What the index keeps stays short, whatever a run holds.
func TestPastIsShort(t *testing.T) {
	run := done("a", strings.Repeat("n", 1<<20), 0)
	many := map[string]string{}
	for i := range 1000 {
		many[fmt.Sprint("k", i)] = strings.Repeat("v", 1000)
	}
	run.Environment.Network.KernelSettings, run.Environment.Browser = many, strings.Repeat("b", 1<<20)
	run.Summary = make([]lab.Summary, 1000)
	for i := range run.Summary {
		run.Summary[i] = lab.Summary{Metric: strings.Repeat("m", 5000), Arm: lab.Control, N: 1}
	}
	root := t.TempDir()
	create(t, root, run)
	s := open(t, root)
	found, err := s.Series(t.Context(), "", Series{Name: run.Name}, 10)
	if err != nil || len(found) != 1 || len(found[0].Name) > 1010 {
		t.Fatalf("Series() = %d series, %v; want 1 with a name of at most 1,010 bytes", len(found), err)
	}
	past, err := s.Past(t.Context(), found[0].Key, 10)
	if err != nil || len(past) != 1 {
		t.Fatal(err)
	}
	if p := past[0]; len(p.Facts) > maxFacts || len(p.Facts["browser"]) > maxFactBytes+10 ||
		len(p.Facts["network.kernel_settings.k1"]) > maxFactBytes+10 || len(p.Summary) != 64 {
		t.Errorf("Past() has %d facts, %d summaries; want short facts and 64 summaries", len(p.Facts), len(p.Summary))
	}
}

// Runs of two boxes of a fleet are not of one series; those without a box have the key that they had before there were
// fleets.
func TestSeriesOfBoxes(t *testing.T) {
	run := done("a", "checkout", 0)
	alone := seriesOf(run)
	if got, want := alone.Key(), "363b73c5effa5a3a"; got != want {
		t.Errorf("Key() of a run without a box = %s; want %s", got, want)
	}
	keys := map[string]bool{alone.Key(): true}
	for _, box := range []string{"lab-1", "lab-2"} {
		run.Environment.Box = &lab.BoxState{Name: box, ID: "id", Health: "good", Calibration: &lab.Calibration{Runs: 7}}
		run.Plan.Device = "virtual"
		short := seriesOf(run)
		run.Plan.Device = box + "/virtual"
		if long := seriesOf(run); short != long || short.Device != box+"/virtual" {
			t.Errorf("seriesOf() = %+v and, with the box in the plan, %+v; want device %s/virtual", short, long, box)
		}
		keys[short.Key()] = true
		for name := range factsOf(run) {
			if strings.HasPrefix(name, "box") {
				t.Errorf("factsOf() has %s, which differs from run to run by itself", name)
			}
		}
	}
	if len(keys) != 3 {
		t.Errorf("%d keys of runs of no box and of two; want 3", len(keys))
	}
	run.Plan.Device = ""
	if got := seriesOf(run).Device; got != "lab-2" {
		t.Errorf("Device of a run whose plan names none = %q; want the box", got)
	}
}
