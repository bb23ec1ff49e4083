package trace

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// samples are of a renderer that computes half the time in 0 to 40 ms and all the time in 40 to 60, of a link beside
// it, and of the machine's pressure.
func samples(zero lab.Time) (list []lab.ProcessSample) {
	ms := func(n int) lab.Time { return zero + lab.Time(n)*1e6 }
	for i := 10; i <= 60; i += 10 {
		one := lab.ProcessSample{At: ms(i), PID: 9, For: 10e6, Ran: 5e6, Waited: 1e6}
		if i == 10 {
			one.Name, one.Of = "renderer", lab.OfBrowser
		}
		if i > 40 {
			one.Ran = 10e6
		}
		list = append(list, one)
	}
	return append(list,
		lab.ProcessSample{At: ms(60), PID: 9, TID: 10, Name: "Compositor", Of: lab.OfBrowser, For: 60e6, Ran: 30e6}, // part of what its process did
		lab.ProcessSample{At: ms(10), PID: 4, Name: "link", Of: lab.OfBox, For: 10e6, Ran: 6e6},
		lab.ProcessSample{At: ms(5), PID: 9, RSS: 90e6, Own: 50e6}, lab.ProcessSample{At: ms(30), PID: 9, RSS: 100e6, Own: 60e6},
		lab.ProcessSample{At: ms(20), PID: 7, Name: "gpu-process", Of: lab.OfBrowser, RSS: 70e6, Own: 20e6}, lab.ProcessSample{At: ms(25), PID: 7, For: 5e6, Ended: true},
		lab.ProcessSample{At: ms(50), Name: "pressure: cpu", Of: lab.OfMachine, For: 50e6, Waited: 25e6})
}

// TestTaken: what lies partly within a time counts by its share; memory is that of one instant, with what is shared
// once.
func TestTaken(t *testing.T) {
	taken := func(ran, waited float64, peak int64) Taken { return Taken{RanMS: ran, WaitedMS: waited, Peak: peak} }
	const zero = 100 * second
	ms := func(n int) lab.Time { return zero + lab.Time(n)*1e6 }
	for _, tt := range []struct {
		from, to int
		want     Taken
	}{
		{0, 100, taken(40, 6, 120e6)}, // 50 + 20 of their own at 20 ms, and the 50 of others that the larger share has
		{35, 45, taken(7.5, 1, 100e6)}, {6, 10, taken(2, 0.4, 90e6)}, {200, 300, taken(0, 0, 100e6)}, {-9, -5, Taken{}},
	} {
		got := TakenBy(samples(zero), ms(tt.from), ms(tt.to))
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("in %d to %d ms (-want +got):\n%s", tt.from, tt.to, diff)
		}
	}
	var names []string
	all := Taken{RanMS: 1.23456, Peak: 5e6, Counts: map[metric.ID]float64{}}
	for _, id := range CountMetrics() {
		all.Counts[id] = 1
	}
	for _, m := range all.Measurements() {
		names = append(names, m.Name)
	}
	if !slices.Equal(names, metric.Names(metric.InGroup(metric.Machine))) {
		t.Errorf("measurements %q are not those of the group", names)
	}
}

// TestMachineRows: a row for each process that did something, a stretch for each load, and on each interval what was
// computed in it.
func TestMachineRows(t *testing.T) {
	s := load()
	s.Trial.Sampled = &lab.Sampled{Hz: 100, Readings: 7, CostMS: 1, WallMS: 100, Slowed: 1, Left: 2}
	s.Machine, s.MachineLeft = samples(s.Trial.StartTime), 3
	tl := Of(s)
	rows := map[string]string{}
	for _, track := range tl.Tracks {
		for _, e := range track.Events {
			if track.Kind == Machine {
				rows[track.Name] += e.Name + " "
			}
		}
		if track.Kind == Annotation && track.Name == "g" {
			if diff := cmp.Diff([]float64{5, 5, 5}, []float64{track.Events[0].RanMS, track.Events[1].RanMS, track.Events[2].RanMS}); diff != "" {
				t.Errorf("processor time of the annotated intervals (-want +got):\n%s", diff)
			}
		}
	}
	want := map[string]string{
		"Processor: renderer (9)": "50 % 100 % ", "Waits for a processor: renderer (9)": "10 % ", "Thread: Compositor (10) of renderer (9)": "50 % ", "Processor: link (4)": "60 % ", "Machine's pressure: cpu": "50 % ",
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if notes := strings.Join(tl.Notes, " "); !strings.Contains(notes, "took 1.0 % of a processor") || !strings.Contains(notes, "5 samples are left out") || !strings.Contains(notes, "made slower") {
		t.Errorf("notes %q", tl.Notes)
	}
}
