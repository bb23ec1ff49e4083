package verdict

import (
	"testing"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// TestAskedGuards: a verdict rests on what the plan asks for as well, and of a frame rate less is
// worse.
func TestAskedGuards(t *testing.T) {
	r := run(10, 0)
	for i, trial := range r.Trials {
		rate := 60 + float64(i%5)/10
		if trial.Arm == lab.Treatment {
			rate -= 20
		}
		for _, name := range []string{"animation_fps@list", "open/animation_fps@list", "animation_fps"} {
			trial.Measurements = append(trial.Measurements, lab.Measurement{Name: name, Unit: "frames/s", Value: rate})
		}
	}
	if got := Of(r, 1); got.Verdict != lab.NoChange {
		t.Errorf("without asking: %s, want %s", got.Verdict, lab.NoChange)
	}
	r.Plan.Measure = &lab.Measure{Guards: []string{"animation_fps@list"}}
	got := Of(r, 1)
	guards := 0
	for _, e := range got.Effects {
		if e.Guard {
			guards++
		}
		if asked := e.Metric == "animation_fps@list" || e.Metric == "open/animation_fps@list"; asked && e.Finding != lab.Slower || asked != e.Guard && e.Unit != "ms" {
			t.Errorf("%s: guard %v, %s", e.Metric, e.Guard, e.Finding)
		}
	}
	if got.Verdict != lab.Slower || guards != len(metric.Guards())+2 {
		t.Errorf("%s with %d guards: %q; want %s with %d", got.Verdict, guards, got.Headline, lab.Slower, len(metric.Guards())+2)
	}
}
