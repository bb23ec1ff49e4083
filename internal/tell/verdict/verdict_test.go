package verdict

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// run makes pairs of trials; the treatment's times are later by shift. The treatment's
// trial is the first of every other pair.
func run(pairs int, shift float64) *lab.Run {
	r := &lab.Run{Plan: lab.Plan{Arm: lab.Arm{Page: "https://a.test/", Link: "lte"}, Treatment: &lab.Arm{Link: "3g"}}}
	rng := rand.New(rand.NewPCG(5, 6))
	for n := 1; n <= 2*pairs; n++ {
		t := &lab.Trial{Number: n, Arm: lab.Control, Block: 1 + (n-1)/10, Valid: true}
		late := 0.0
		if n%4 == 1 || n%4 == 0 {
			t.Arm, late = lab.Treatment, shift
		}
		for _, g := range metric.Guards() {
			v := 1000 + 10*rng.NormFloat64() + late
			low := v - 17
			t.Measurements = append(t.Measurements, lab.Measurement{Name: g.String(), Unit: "ms", Value: v, Low: &low, High: &v})
		}
		t.Measurements = append(t.Measurements, lab.Measurement{Name: "unique_frames", Unit: "frames", Value: 60 + late/10})
		r.Trials = append(r.Trials, t)
	}
	return r
}

// Warm-ups are in no block, no number and no count of what was left out, however extreme they are.
func TestWarmupsCountNothing(t *testing.T) {
	want := Of(run(10, 30), 1)
	r := run(10, 30)
	for _, arm := range []string{lab.Control, lab.Treatment} {
		warm := &lab.Trial{Number: 100, Arm: arm, Warmup: true, Invalid: []string{"a warm-up"}}
		for _, m := range r.Trials[0].Measurements {
			m.Value *= 50
			warm.Measurements = append(warm.Measurements, m)
		}
		r.Trials = append([]*lab.Trial{warm}, r.Trials...)
	}
	if diff := cmp.Diff(want, Of(r, 1)); diff != "" {
		t.Errorf("the comparison with warm-ups, against that without:\n%s", diff)
	}
}

func TestVerdicts(t *testing.T) {
	mixed := run(10, 300)
	for _, trial := range mixed.Trials {
		if trial.Arm == lab.Treatment {
			trial.Measurements[2].Value -= 600
		}
	}
	for _, c := range []struct {
		name, verdict, headline, detail string
		run                             *lab.Run
	}{
		{"slower", lab.Slower, "Treatment (link 3g) is slower", "SpeedIndex +3", run(10, 300)},
		{"faster", lab.Faster, "Treatment (link 3g) is faster", "SpeedIndex −", run(10, -300)},
		{"mixed", lab.Mixed, "slower in some metrics and faster in others", "faster: First visual change −", mixed},
		{"equal", lab.NoChange, "No difference", "or more would have been detected with 80 % probability", run(10, 0)},
		{"few", lab.Unknown, "Too few trials to tell", "5 pairs of valid trials, at least 6 are needed; so far SpeedIndex +3", run(5, 300)},
		{"one", lab.Unknown, "Too few trials to tell", "1 pair of valid trials, at least 6 are needed", run(1, 300)},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Of(c.run, 1)
			if got.Verdict != c.verdict || !strings.Contains(got.Headline, c.headline) || !strings.Contains(got.Detail, c.detail) {
				t.Errorf("%s: %q, %q", got.Verdict, got.Headline, got.Detail)
			}
		})
	}
	one := run(3, 0)
	for _, trial := range one.Trials {
		trial.Arm = lab.Control
	}
	if got := Of(one, 1); got != nil {
		t.Errorf("Of() of a run with one arm = %+v; want nil", got)
	}
}

// TestNumbers checks every number of an effect whose shift is known.
func TestNumbers(t *testing.T) {
	c := Of(run(10, 300), 1)
	if len(c.Effects) != 5 || c.Pairs != 10 || c.LeftOut != 0 || c.Control != "link lte" || c.Treatment != "link 3g" {
		t.Fatalf("%+v", c)
	}
	for _, e := range c.Effects[:4] {
		if !e.Guard || e.Finding != lab.Slower || e.Shift.Low > 300 || e.Shift.High < 300 || e.Shift.High-e.Shift.Low > 60 ||
			e.Adjusted < e.P || e.Adjusted > 0.01 {
			t.Errorf("%+v", e)
		}
		if e.Percent == nil || e.Percent.Value < 27 || e.Percent.Value > 33 {
			t.Errorf("Percent = %+v", e.Percent)
		}
	}
	if e := c.Effects[4]; e.Guard || e.Metric != "unique_frames" || e.Finding != "larger" {
		t.Errorf("the effect on a metric that is not a guard = %+v", e)
	}
}

// TestInvalidTrialsAreLeftOut: invalid trials do not count, and valid ones are not dropped with them.
func TestInvalidTrialsAreLeftOut(t *testing.T) {
	r := run(8, 0)
	for _, n := range []int{3, 6} { // one of each arm
		r.Trials[n].Valid = false
		for i := range r.Trials[n].Measurements {
			r.Trials[n].Measurements[i].Value = 1e6
		}
	}
	c := Of(r, 1)
	if c.Pairs != 7 || c.LeftOut != 2 || c.Verdict != lab.NoChange || c.Effects[0].Control > 1100 || c.Effects[0].Treatment > 1100 {
		t.Errorf("%+v", c)
	}
	cut := run(7, 0)
	cut.Trials = cut.Trials[:13] // the run ended before the last trial
	if c := Of(cut, 1); c.Pairs != 6 || c.LeftOut != 0 {
		t.Errorf("interrupted run: %d pairs, %d left out", c.Pairs, c.LeftOut)
	}
}

// TestGuardsDoNotVanish: a guard that one arm lacks is listed as unknown, with the reason.
func TestGuardsDoNotVanish(t *testing.T) {
	r := run(10, 0)
	kept := 0
	for _, trial := range r.Trials {
		if trial.Arm == lab.Control {
			continue
		}
		if kept++; kept > 1 { // the treatment's first trial alone has SpeedIndex
			trial.Measurements = trial.Measurements[1:]
		}
	}
	c := Of(r, 1)
	e := c.Effects[0]
	if e.Metric != "speed_index_ms" || !e.Guard || e.Finding != lab.Unknown || e.Pairs != 1 ||
		!slices.Contains(e.Warnings, "1 of 10 pairs have it") {
		t.Errorf("%+v", e)
	}
	if e.Control < 900 || e.Treatment < 900 || e.P != 1 || e.Adjusted != 1 || c.Verdict != lab.NoChange {
		t.Errorf("%+v, verdict %s", e, c.Verdict)
	}
	if _, err := json.Marshal(c); err != nil {
		t.Error(err)
	}
	few := run(2, 0)
	for _, trial := range few.Trials[1:] {
		trial.Measurements = trial.Measurements[1:]
	}
	if c := Of(few, 1); strings.Contains(c.Detail, "SpeedIndex") || !strings.Contains(c.Detail, "so far Looks finished") {
		t.Errorf("Detail quotes a metric that was not compared: %s", c.Detail)
	}
}

// TestFalseAlarms: at most about one in twenty runs with equal arms has another verdict than none.
func TestFalseAlarms(t *testing.T) {
	alarms := 0
	const runs = 200
	rng := rand.New(rand.NewPCG(1, 2))
	for range runs {
		r := run(6, 0)
		for _, trial := range r.Trials {
			for i := range trial.Measurements {
				trial.Measurements[i].Value = 1000 + 10*rng.NormFloat64()
			}
		}
		if v := Of(r, 1).Verdict; v != lab.NoChange {
			alarms++
		}
	}
	if alarms > 20 { // 10 expected at most, and 3.2 standard deviations
		t.Errorf("%d of %d runs with equal arms have a difference; want at most 20", alarms, runs)
	}
}

func TestDifferences(t *testing.T) {
	for _, c := range []struct {
		a, b               lab.Arm
		control, treatment string
	}{
		{lab.Arm{Page: "p", Archive: "", Link: "lte"}, lab.Arm{Page: "p", Archive: "", Link: "3g"}, "link lte", "link 3g"},
		{lab.Arm{Page: "p", Archive: "/x/a.wacz", Link: "lte"}, lab.Arm{Page: "p", Archive: "/x/b.wacz", Link: "lte"}, "recording a.wacz",
			"recording b.wacz"},
		{lab.Arm{Page: "p", Archive: "", Link: "lte"}, lab.Arm{Page: "p", Archive: "/runs/R1/archive.wacz", Link: "lte"},
			"recording made for this run", "recording R1"},
		{lab.Arm{Page: "p", Archive: "/a/x.wacz", Link: "lte"}, lab.Arm{Page: "q", Archive: "", Link: "3g"}, "link lte, page p",
			"link 3g, page q"},
		{lab.Arm{Page: "p", Archive: "/a/x.wacz", Link: "lte"}, lab.Arm{Page: "p", Archive: "/b/x.wacz", Link: "lte"}, "recording /a/x.wacz",
			"recording /b/x.wacz"},
		{lab.Arm{Page: "p"}, lab.Arm{Page: "p", Inject: "slow.js"}, "script none", "script slow.js"},
		{lab.Arm{App: &lab.App{Command: "/opt/a"}}, lab.Arm{App: &lab.App{Command: "b --new"}}, "app /opt/a", "app b --new"},
		{lab.Arm{Page: "p", Archive: "", Link: "lte"}, lab.Arm{Page: "p", Archive: "", Link: "lte"}, "", "the same as the control"},
	} {
		control, treatment := differences(&lab.Run{Plan: lab.Plan{Arm: c.a, Treatment: &c.b}})
		if control != c.control || treatment != c.treatment {
			t.Errorf("%q and %q, want %q and %q", control, treatment, c.control, c.treatment)
		}
	}
	if _, treatment := differences(&lab.Run{}); treatment != "the same as the control" { // a run from elsewhere
		t.Errorf("differences() of a run without a plan: %q", treatment)
	}
}

func TestSigned(t *testing.T) {
	for v, want := range map[float64]string{1240.4: "+1\u202f240", -12.6: "−13", 3.14: "+3.1", 0.01: "0", -0.04: "0", 7: "+7",
		1234567: "+1\u202f234\u202f567", 999.6: "+1\u202f000"} {
		if got := lab.Change(v); got != want {
			t.Errorf("lab.Change(%s) = %q, want %q", fmt.Sprint(v), got, want)
		}
	}
}
