package experiment

import (
	"context"
	"time"

	"eidetic/internal/lab"
)

// moment is how fast this machine is just now, by the names of the covariates; empty where a plugged-in device has
// processors of its own. A meter that fails costs the trial a covariate and nothing else.
func (r *Runner) moment(ctx context.Context) map[string]float64 {
	values := map[string]float64{}
	if r.Meter == nil {
		return values
	}
	reading, err := r.Meter(ctx)
	if err != nil {
		if ctx.Err() == nil && r.Log != nil {
			r.Log.Warn("the speed of the machine beside this trial is not known, so its times are not corrected for it", "error", err)
		}
		return values
	}
	values[lab.CovariateMeter], values[lab.CovariateMeterProcessor] = reading.Wall, reading.Processor
	return values
}

// meterWait is how long a trial waits for what the synchronisation page tells. It has told long before the page has
// been still for the plan's time, but on a machine that is so busy that its layout would go on within the load.
const meterWait = time.Second

// awaitMeter waits until the synchronisation page has told what its layout took, if it does.
func (r *Runner) awaitMeter(ctx context.Context, t *lab.Trial, life Life, film Film, session Session, borne *breaks) error {
	m, ok := session.(Metered)
	if _, sleeping := life.(Starter); !ok || sleeping {
		return nil
	}
	for deadline := r.Clock().Add(meterWait); ; {
		if ms, ok := m.PageMeter(); ok {
			t.Before[lab.CovariatePage] = ms
			return nil
		}
		if r.Clock() > deadline {
			return nil
		}
		if err := r.look(ctx, life, film, borne); err != nil {
			return err
		}
	}
}

// known adds to what was known of a trial before its arm could act. Whether an arm of this plan can change one of them
// is for the plan to say (plan.Checked.Covariates).
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
