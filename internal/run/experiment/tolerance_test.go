package experiment

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// docketOf judges trials with the given blurs, each in a slot of its own.
func docketOf(p Plan, blurs ...float64) *docket {
	d := new(Runner).newDocket(p)
	for i, b := range blurs {
		d.add(&lab.Trial{Number: i + 1, Blur: &lab.Blur{Link: b}}, i)
	}
	return d
}

func validity(d *docket) (out []bool) {
	for _, a := range d.attempts {
		out = append(out, a.Valid)
	}
	return out
}

func TestTolerance(t *testing.T) {
	for _, test := range []struct {
		name  string
		plan  Plan
		blurs []float64
		used  float64
		valid []bool
	}{
		{"a quiet machine", Plan{}, []float64{1, 2, 1, 3}, 16.667, []bool{true, true, true, true}},
		{"one that is spoilt", Plan{}, []float64{1, 40, 1, 3}, 16.667, []bool{true, false, true, true}},
		{"the first is spoilt, and nothing else is known", Plan{}, []float64{40}, 16.667, []bool{false}},
		{"half are spoilt, of a machine that can keep it", Plan{}, []float64{40, 2, 3, 50}, 16.667, []bool{false, true, true, false}},
		{"a machine that cannot keep it", Plan{}, []float64{80, 100, 90, 110}, 270, []bool{true, true, true, true}},
		{"one that is spoilt even for it", Plan{}, []float64{80, 100, 90, 900}, 270, []bool{true, true, true, false}},
		{"one that a person gave", Plan{Tolerance: 16700 * time.Microsecond}, []float64{80, 100, 16.7, 110}, 16.7,
			[]bool{false, false, true, false}},
		{"a wide one that a person gave", Plan{Tolerance: time.Second}, []float64{80, 100, 90, 1001}, 1000,
			[]bool{true, true, true, false}},
	} {
		d := docketOf(test.plan, test.blurs...)
		got := d.judge()
		if got.Used != test.used || !slices.Equal(validity(d), test.valid) {
			t.Errorf("%s: judged by %v, valid %v; want %v and %v", test.name, got.Used, validity(d), test.used, test.valid)
		}
		if text := Explain(got, nil); (text != "") != (test.used > got.Planned) {
			t.Errorf("%s: explained as %q", test.name, text)
		}
	}
}

// The rule depends only on the blurs: not on the arms, the values or the order of the
// trials, nor on trials with another fault.
func TestToleranceIsBlind(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		var blurs []float64
		for range 4 + random.IntN(30) {
			blurs = append(blurs, 40*random.ExpFloat64())
		}
		one := docketOf(Plan{}, blurs...)
		want := one.judge()
		other := new(Runner).newDocket(Plan{})
		for place, i := range random.Perm(len(blurs)) {
			other.add(&lab.Trial{
				Number: place + 1, Blur: &lab.Blur{Capture: blurs[i]}, Arm: []string{lab.Control, lab.Treatment}[random.IntN(2)],
				Measurements: []lab.Measurement{metric.SpeedIndex.Measure(random.Float64(), nil)},
			}, place)
		}
		other.add(&lab.Trial{Number: 99, Blur: &lab.Blur{Link: 1e6}, Faults: []string{"a miss"}}, 99)
		if got := other.judge(); *got != *want {
			t.Fatalf("tolerance() of the same blurs in another order, with other arms and values = %+v; want %+v", got, want)
		}
		valid := map[float64]bool{}
		for _, a := range one.attempts {
			valid[a.Blur.Worst()] = a.Valid
		}
		for _, a := range other.attempts[:len(blurs)] {
			if a.Valid != valid[a.Blur.Worst()] {
				t.Fatalf("two trials with a blur of %v differ in validity", a.Blur.Worst())
			}
		}
	}
}

// If the arms are equal, the rule discards equally many trials of both and leaves their
// difference at 0, on quiet and on slow machines, although late trials are also slow.
func TestToleranceTreatsArmsAlike(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for _, usual := range []float64{3, 12, 80} {
		var difference, kept [2]float64
		for range 2000 {
			d := new(Runner).newDocket(Plan{})
			for i := range 20 {
				blur := usual * random.ExpFloat64()
				d.add(&lab.Trial{
					Number: i + 1, Arm: []string{lab.Control, lab.Treatment}[i%2], Blur: &lab.Blur{Link: blur},
					Measurements: []lab.Measurement{metric.SpeedIndex.Measure(1000+blur+10*random.NormFloat64(), nil)},
				}, i)
			}
			d.judge()
			var sum, n [2]float64
			for i, a := range d.attempts {
				if a.Valid {
					sum[i%2] += metric.SpeedIndex.In(a.Trial)
					n[i%2]++
				}
			}
			for arm := range 2 {
				kept[arm] += n[arm] / 2000
				difference[arm] += sum[arm] / max(n[arm], 1) / 2000
			}
		}
		if d := difference[1] - difference[0]; d > usual/10+1 || d < -usual/10-1 {
			t.Errorf("a usual blur of %v ms makes a difference of %.2f ms between equal arms", usual, d)
		}
		if d := kept[1] - kept[0]; d > 0.3 || d < -0.3 {
			t.Errorf("a usual blur of %v ms: %.2f trials of one arm are kept and %.2f of the other", usual, kept[0], kept[1])
		}
		if kept[0] < 7.5 {
			t.Errorf("a usual blur of %v ms: %.2f of 10 trials are kept", usual, kept[0])
		}
	}
}

// of converts milliseconds to durations.
func of(list ...int) (out []time.Duration) {
	for _, v := range list {
		out = append(out, time.Duration(v)*time.Millisecond)
	}
	return out
}

// A run on a slow machine relaxes its tolerance and completes with all its trials. Of a
// trial and its repetition, the one with less blur counts.
func TestRunRelaxes(t *testing.T) {
	for _, c := range []struct {
		name      string
		tolerance time.Duration
		late      []time.Duration // of the trials in order
		valid     int
		takes     int
		relaxed   bool
	}{
		{"slow throughout", 0, of(100, 90, 110, 95), 3, 4, true},
		{"slow at first", 0, of(100, 2, 3, 2), 3, 4, false},
		{"slow at first, for long", 0, of(100, 90, 3, 2, 2, 3), 3, 5, false},
		{"slow, with a tolerance that a person gave", 20 * time.Millisecond, of(100, 2, 90, 80, 3), 2, 5, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				w := world{changes: []time.Duration{time.Second}, lateOf: c.late, machine: &lab.Machine{
					Own: 0.5, Stolen: 0.004, Others: []lab.Consumer{{Name: "stress-ng", PID: 123, Count: 1, Cores: 0.96}},
				}}
				p := plan()
				p.Tolerance = c.tolerance
				run := &lab.Run{}
				var notes []string
				r, of := w.runner(), 0
				r.Progress = func(s Step) {
					if of != 0 && s.Of != of && !strings.HasSuffix(s.Note, fmt.Sprintf(": %d in all", s.Of)) {
						t.Errorf("of %d trials there are %d now, and %+v does not say why", of, s.Of, s)
					}
					of = s.Of
					if s.Note != "" {
						notes = append(notes, s.Note)
					}
				}
				if err := r.Run(t.Context(), p, arms(&w, lab.Control), run, folder{root}, func() error { return nil }); err != nil {
					t.Fatal(err)
				}
				valid, all := 0, ""
				for _, trial := range run.Trials {
					if trial.Valid {
						valid++
					}
					all += fmt.Sprintln(trial.Number, trial.Valid, trial.Blur.Worst(), trial.Invalid)
				}
				if valid != c.valid || len(run.Trials) != c.takes || run.Tolerance.Relaxed() != c.relaxed {
					t.Errorf("%d of %d trials are valid, relaxed: %v; want %d of %d and %v\n%s%q", valid, len(run.Trials),
						run.Tolerance.Relaxed(), c.valid, c.takes, c.relaxed, all, notes)
				}
				if c.relaxed && (run.Trials[0].Valid || !run.Trials[1].Valid) {
					t.Errorf("of the first trial and its repetition, with less blur, not the second one counts\n%s", all)
				}
				if !c.relaxed {
					if reason := run.Trials[0].Invalid[0]; !strings.Contains(reason,
						"process stress-ng (pid 123) took 96 % of a core; 0.4 % of the time was stolen by the hypervisor") {
						t.Errorf("the first is invalid because %q", reason)
					}
				}
			})
		})
	}
}

// Trials missing at the end are made up for in a further block, with equally many of both arms.
func TestRunMakesUp(t *testing.T) {
	root := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		late := of(2, 2, 2, 90, 90, 90) // one slot fails at every try
		w := world{changes: []time.Duration{time.Second}, lateOf: append(late, of(2, 2, 2, 2, 2, 2, 2, 2, 2, 2)...)}
		run := &lab.Run{}
		p := plan()
		p.Trials, p.Tolerance = 4, DefaultTolerance
		if err := w.runner().Run(t.Context(), p, arms(&w, lab.Control, lab.Treatment), run, folder{root},
			func() error { return nil }); err != nil {
			t.Fatal(err)
		}
		count := map[string]int{}
		for _, trial := range run.Trials {
			count[fmt.Sprint(trial.Arm, trial.Block, trial.Valid)]++
		}
		if len(run.Trials) != 12 || count["control2 true"] != 1 || count["treatment2 true"] != 1 {
			t.Errorf("%d trials: %v", len(run.Trials), count)
		}
	})
}
