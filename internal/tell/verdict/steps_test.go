package verdict

import (
	"math/rand/v2"
	"strings"
	"testing"

	"eidetic/internal/lab"
)

// journeys makes pairs of trials of a journey of four steps, one of which measures responsiveness; the
// treatment is later in one step alone.
func journeys(pairs int, step string, shift float64) *lab.Run {
	r := &lab.Run{Plan: lab.Plan{Arm: lab.Arm{Page: "https://a.test/", Link: "lte"}, Treatment: &lab.Arm{Page: "https://b.test/"}}}
	rng := rand.New(rand.NewPCG(5, 6))
	for n := 1; n <= 2*pairs; n++ {
		t := &lab.Trial{Number: n, Arm: lab.Control, Block: 1 + (n-1)/10, Valid: true}
		if n%4 == 1 || n%4 == 0 {
			t.Arm = lab.Treatment
		}
		for _, metric := range []string{"open/time_to_end_ms", "search/time_to_end_ms", "pay/time_to_end_ms", "pad/response_ms"} {
			v := 400 + 10*rng.NormFloat64()
			if t.Arm == lab.Treatment && metric == step {
				v += shift
			}
			low := v - 17
			t.Measurements = append(t.Measurements,
				lab.Measurement{Name: metric, Unit: "ms", Value: v, Low: &low, High: &v},
				lab.Measurement{Name: strings.Replace(metric, "/", "/other_", 1), Unit: "ms", Value: v})
		}
		r.Trials = append(r.Trials, t)
	}
	return r
}

// TestStepGuards: a regression of 30 ms in one step is found in that step, and in no other.
func TestStepGuards(t *testing.T) {
	for step, label := range map[string]string{"search/time_to_end_ms": "search: Time to end", "pad/response_ms": "pad: Response"} {
		c := Of(journeys(30, step, 30), 1)
		if c.Verdict != lab.Slower || !strings.Contains(c.Detail, label) {
			t.Errorf("%s later by 30 ms: %s, %q; want slower by %q", step, c.Verdict, c.Detail, label)
		}
		for _, e := range c.Effects {
			if want := e.Metric == step; e.Guard && (e.Finding == lab.Slower) != want {
				t.Errorf("%s later by 30 ms: %s is %s", step, e.Metric, e.Finding)
			}
			if guard := !strings.Contains(e.Metric, "other_"); e.Guard != guard {
				t.Errorf("%s guards: %v; want %v", e.Metric, e.Guard, guard)
			}
		}
	}
	if c := Of(journeys(30, "", 0), 1); c.Verdict != lab.NoChange {
		t.Errorf("equal journeys: %s, %q", c.Verdict, c.Detail)
	}
}
