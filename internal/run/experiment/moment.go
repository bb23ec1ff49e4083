package experiment

import (
	"context"

	"eidetic/internal/lab"
)

// moment is how fast this machine is just now, by the names of the covariates; empty where a plugged-in device has processors
// of its own. A meter that fails costs the trial a covariate and nothing else.
func (r *Runner) moment(ctx context.Context) map[string]float64 {
	values := map[string]float64{}
	if r.Meter == nil {
		return values
	}
	reading, err := r.Meter(ctx)
	if err != nil {
		if ctx.Err() == nil && r.Log != nil {
			r.Log.Warn("this trial has no meter", "error", err)
		}
		return values
	}
	values[lab.CovariateMeter], values[lab.CovariateMeterProcessor] = reading.Wall, reading.Processor
	return values
}

// known adds to what was known of a trial before its arm could act. Whether an arm of this plan can change one of them is for
// the plan to say (plan.Checked.Covariates).
func (r *Runner) known(t *lab.Trial, served []lab.Served, start *lab.Event) {
	for _, p := range t.Parts {
		if ms, ok := p.Processor["browser"]; ok && p.Name == PartSettle {
			t.Before[lab.CovariateSettle] = ms
		}
	}
	if start == nil {
		return
	}
	for _, s := range served {
		if s.Time > start.Latest && s.Stage != lab.StageBox {
			if samePage(s.URL, t.Page) {
				t.Before[lab.CovariateRequest] = millis(s.Time.Sub(start.Earliest))
			}
			return // another request came first
		}
	}
}

// samePage compares addresses without their fragments, of which no request tells.
func samePage(a, b string) bool {
	x, y := lab.ParseURL(a), lab.ParseURL(b)
	return x.Host == y.Host && x.Path == y.Path && x.Query == y.Query
}
