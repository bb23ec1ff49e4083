package verdict

import (
	"strings"
	"testing"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// TestServersLeftOut: who compares a slower server with the times shared reads that its servers are left out, where they
// were apart by more than the run would have found.
func TestServersLeftOut(t *testing.T) {
	for apart, want := range map[lab.ServersApart]string{
		{Answers: 14, Median: 104, Document: 96}:  "its answers (median of 14) 104 ms later",
		{Answers: 14, Median: -1, Document: -400}: "its document 400 ms earlier",
		{Answers: 14, Median: 3, Document: 5}:     "",
	} {
		r := run(10, 0)
		r.ServersApart = &apart
		got := Of(r, 1)
		if said := strings.HasSuffix(got.Headline, ", the servers' times left out"); said != (want != "") || !strings.Contains(got.Detail, want) {
			t.Errorf("%+v: %s: %s; want %q", apart, got.Headline, got.Detail, want)
		}
	}
}

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
