package trace

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// counted are samples of counters and of energy, beside those of processes.
func counted(zero lab.Time) []lab.ProcessSample {
	list := samples(zero)
	add := func(name, of string, ms int, n int64) {
		list = append(list, lab.ProcessSample{At: zero + lab.Time(ms)*1e6, Name: name, Of: of, For: 10e6, Counted: n})
	}
	for ms := 10; ms <= 60; ms += 10 {
		add(lab.CounterTaskClock, lab.OfBrowser, ms, 5e6)
		add(lab.CounterInstructions, lab.OfBrowser, ms, int64(ms)*1e6)
		add(lab.EnergyOf+"package-0", lab.OfMachine, ms, 100_000)
		add(lab.EnergyOf+"package-1", lab.OfMachine, ms, 200_000)
		add(lab.EnergyOf+"package-0 dram", lab.OfMachine, ms, 900_000)
		add(lab.EnergyOf+"psys", lab.OfMachine, ms, 5_000_000)
	}
	add(lab.CounterMigrations, lab.OfBrowser, 60, 0)
	return list
}

// TestCounts: what lies partly within a time counts by its share; energy is that of all packages, without their parts;
// what happened never is 0, and what was not counted is not there.
func TestCounts(t *testing.T) {
	const zero = 100 * second
	got := TakenBy(counted(zero), zero+5e6, zero+30e6).Counts
	want := map[metric.ID]float64{metric.TaskClock: 12.5, metric.Instructions: 5 + 20 + 30, metric.Migrations: 0, metric.Energy: 0.75}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := TakenBy(samples(zero), zero, zero+30e6).Counts; got != nil {
		t.Errorf("without counters %v; want nothing", got)
	}
}

// TestCountRows: a row for each counter and each part of the machine, and on each interval what was counted in it.
func TestCountRows(t *testing.T) {
	s := load()
	s.Trial.Sampled = &lab.Sampled{Hz: 100, Readings: 7, CostMS: 1, WallMS: 100}
	s.Machine = counted(s.Trial.StartTime)
	tl := Of(s)
	rows := map[string]string{}
	for _, track := range tl.Tracks {
		if track.Kind != Machine || strings.Contains(track.Name, "rocessor") || strings.Contains(track.Name, "pressure") || strings.HasPrefix(track.Name, "Thread") {
			continue
		}
		for _, e := range track.Events {
			rows[track.Name] += e.Name + " (" + e.Facts[0].Value + ") "
		}
	}
	want := map[string]string{
		"Instructions": "up to 1.20 G/s (10.0 M) up to 2.40 G/s (20.0 M) up to 3.00 G/s (30.0 M) " +
			"up to 4.20 G/s (40.0 M) up to 5.40 G/s (50.0 M) up to 6.00 G/s (60.0 M) ",
		"Power: package-0": "up to 10.0 W (0.60 J) ", "Power: package-1": "up to 20.0 W (1.20 J) ", "Power: package-0 dram": "up to 90.0 W (5.40 J) ",
		"Power: psys": "up to 500 W (30.0 J) ",
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	for _, r := range Spans([]*Timeline{tl, tl}) {
		if r.Track != "g" || r.Name != "first" {
			continue
		}
		of := map[metric.ID]float64{}
		for i, id := range CountMetrics() {
			of[id] = r.Counts[i]
		}
		if of[metric.TaskClock] <= 0 || of[metric.Energy] <= 0 || of[metric.Migrations] != 0 || !math.IsNaN(of[metric.Cycles]) {
			t.Errorf("counted in %q: %v", r.Name, of)
		}
		return
	}
	t.Errorf("no row of the annotated interval in %+v", Spans([]*Timeline{tl, tl}))
}

// TestMemoryOfSamples: readings of memory that came with those of processes are rows like others, to the end of each
// process, and shares are told; so is what a phone's clock and its readings lack.
func TestMemoryOfSamples(t *testing.T) {
	s := load()
	zero := s.Trial.StartTime
	s.Machine = append(samples(zero), lab.ProcessSample{At: zero + 60e6, PID: 9, RSS: 100e6, Own: 60e6, PSS: 70 << 20},
		lab.ProcessSample{At: zero + 60e6, Name: lab.AllProcessors, Of: lab.OfMachine, For: 60e6, Ran: 90e6})
	s.Trial.Sampled = &lab.Sampled{Hz: 10, Readings: 7, CostMS: 1, WallMS: 100, BoundMS: 4.2, Lacks: "the phone\nis gone"}
	tl := Of(s)
	rows := map[string]string{}
	for _, track := range tl.Tracks {
		for _, e := range track.Events {
			if track.Kind == Memory || strings.HasSuffix(track.Name, lab.AllProcessors) {
				rows[track.Name] += e.Name + " "
			}
		}
	}
	want := map[string]string{"Memory: renderer (9)": "85.8 MiB 95.4 MiB 95.4 MiB ", "Memory: gpu-process (7)": "66.8 MiB ", "Processor: all processors": "150 % "}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	notes := strings.Join(tl.Notes, " ")
	for _, want := range []string{"joined within 4.2 ms", "some could not be read: the phone is gone", "processes have 70.0 MiB at the trial's end"} {
		if !strings.Contains(notes, want) {
			t.Errorf("notes %q; want %q in them", notes, want)
		}
	}
}
