package execute

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// good is a plan that asks for the least possible.
func good() lab.Plan {
	return lab.Plan{Trials: 1, Timing: "recorded", Still: 1, Limit: 60, Arm: lab.Arm{Page: "https://x.test/"}}
}

// TestCheckBoundsTheWhole: Check bounds the sum of a plan's trials, and allows the largest
// permitted sum.
func TestCheckBoundsTheWhole(t *testing.T) {
	for _, c := range []struct {
		trials int
		limit  time.Duration
		says   string
	}{
		{store.MaxTrials / 2, time.Minute, ""},
		{store.MaxTrials/2 + 1, time.Minute, "at most 5000 in all"},
		{store.MaxTrials / 2, time.Minute + time.Second, "more than 83h20m0s in all"},
		{1, math.MaxInt64, "in all"},
		{10, time.Hour, ""},
	} {
		p := good()
		p.Trials, p.Limit, p.Treatment = c.trials, c.limit.Seconds(), &lab.Arm{Link: "3g"}
		err := Check(p, nil)
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("Check(two arms of %d trials, each at most %v) = %v, want an error with %q", c.trials, c.limit, err, c.says)
		}
	}
}

// TestCheckTolerance: a tolerance is above 0 or left out, also in the plan's JSON.
func TestCheckTolerance(t *testing.T) {
	for tolerance, accepted := range map[time.Duration]bool{0: true, time.Nanosecond: true, MaxTolerance: true, MaxTolerance + 1: false,
		-1: false} {
		p := good()
		p.Tolerance = float64(tolerance) / 1e6
		if err := Check(p, nil); (err == nil) != accepted {
			t.Errorf("Check(tolerance %v) = %v, want accepted: %t", tolerance, err, accepted)
		}
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		if written := strings.Contains(string(text), "tolerance"); written != (tolerance != 0) {
			t.Errorf("a tolerance of %v is written: %t (%s)", tolerance, written, text)
		}
	}
}

// TestCheckWarmups: warm-ups are bounded, and count towards the bounds of a run.
func TestCheckWarmups(t *testing.T) {
	for says, change := range map[string]func(*lab.Plan){
		"":                         func(p *lab.Plan) { p.Warmups, p.Trials = 100, store.MaxTrials/2-100 },
		"at most 5000 in all":      func(p *lab.Plan) { p.Warmups, p.Trials = 100, store.MaxTrials/2-99 },
		"warmups: -1: from 1":      func(p *lab.Plan) { p.Warmups = -1 },
		"warmups: 101: from 1 to ": func(p *lab.Plan) { p.Warmups = 101 },
	} {
		p := good()
		p.Treatment, p.Limit = &lab.Arm{Link: "3g"}, 10
		change(&p)
		if err := Check(p, nil); (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("Check(warmups %d, trials %d) = %v, want an error with %q", p.Warmups, p.Trials, err, says)
		}
	}
}

// TestCheckTraces: traces that cannot be made are refused, with the field and what to do.
func TestCheckTraces(t *testing.T) {
	for says, change := range map[string]func(*lab.Plan){
		"":                    func(p *lab.Plan) { p.Traces = 10 },
		"leave traces out":    func(p *lab.Plan) { p.Traces, p.TraceAll = 1, true },
		"traces: -1":          func(p *lab.Plan) { p.Traces = -1 },
		"at most 5000 in all": func(p *lab.Plan) { p.Traces = store.MaxTrials },
		"replays nothing":     func(p *lab.Plan) { p.TraceAll, p.Live = true, true },
		"1 pages and 9 users: at least 1, and with": func(p *lab.Plan) {
			for i := range 9 {
				p.Users = append(p.Users, lab.PlanUser{Name: strings.Repeat("a", i+1)})
			}
			p.Traces = store.MaxTrials / 9
		},
		"use state: cold or warm": func(p *lab.Plan) { p.TraceAll, p.State = true, lab.StateAppCold },
	} {
		p := good()
		change(&p)
		if p.State != "" {
			p.Steps = []lab.Step{{Name: "start", Launch: p.Page}}
		}
		if err := Check(p, nil); (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("Check(traces %d, trace_all %t) = %v, want an error with %q", p.Traces, p.TraceAll, err, says)
		}
	}
}
