package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// ErrNoTraces says that a device's browser cannot be traced.
var ErrNoTraces = errors.New("this device's browser cannot be traced; leave traces out, or use the virtual device") // constant

// birth starts the device, and one that traces itself where the trial is to be traced.
func (r *Runner) birth(ctx context.Context, p Plan) (Life, error) {
	if !p.traced {
		return r.Device.Birth(ctx, p.Sync)
	}
	d, ok := r.Device.(TracedDevice)
	if !ok {
		return nil, ErrNoTraces
	}
	return d.BirthTraced(ctx, p.Sync)
}

// trace begins the browser's trace where the trial is to be traced. The function that it returns ends the trace; what
// goes wrong makes the trace void, and not the trial.
func (r *Runner) trace(ctx context.Context, p Plan, t *lab.Trial, life Life, dir string) (end func()) {
	if !p.traced {
		return func() {}
	}
	t.Trace = &lab.BrowserTrace{}
	tracer, ok := life.(Tracer)
	if !ok {
		t.Trace.Void = "this browser cannot be traced"
		return func() {}
	}
	stop, err := tracer.Trace(ctx)
	if err != nil {
		t.Trace.Void = err.Error()
		return func() {}
	}
	return func() {
		trace, err := stop(ctx, filepath.Join(dir, TraceFile))
		t.Trace = &trace
		if err != nil {
			t.Trace.Void = err.Error()
			return
		}
		t.Files[TraceRole] = TraceFile
	}
}

// notCounted is the reason for which a trial that was made for its trace enters no statistic.
const notCounted = "an extra trial for the browser's trace, which costs time: it is in no statistic"

// tracedSeed sets the order of the traced trials apart from that of the others.
const tracedSeed = 0x747261636564 // "traced"

// traceExtra makes the trials whose browser is traced, after all others. Their order is drawn by lot in blocks of their
// own. One that has faults, or whose trace is void, is repeated once. Blur is no fault here: it widens the times of
// pictures, which are compared by the other trials, and leaves the browser's own times as they are.
func (o *outing) traceExtra(ctx context.Context) error {
	if o.plan.Traces == 0 || o.plan.TraceAll {
		return nil
	}
	plan := ScheduleCells(o.plan.Seed^tracedSeed, o.plan.Traces, o.each, len(o.arms)/o.each)
	o.total = len(o.run.Trials) + len(plan)
	o.plan.traced = true
	o.progress(Step{Trial: len(o.run.Trials), Of: o.total,
		Note: fmt.Sprintf("%d more %s for the browser's own trace: %d in all", len(plan),
			lab.Plural(len(plan), "trial", "trials"), o.total)})
	for _, s := range plan {
		s.Block += o.blocks
		o.slots = append(o.slots, s)
		for take := 1; ; take++ {
			n := len(o.run.Trials) + 1
			t, known, err := o.next(ctx, s, n, o.nth(s.Arm))
			if err != nil {
				return fmt.Errorf("trial %d: %w", n, err)
			}
			t.Traced = true
			again := take == 1 && (len(t.Faults) > 0 || t.Trace == nil || t.Trace.Void != "")
			t.Valid, t.Invalid = false, append([]string{notCounted}, t.Faults...)
			o.run.Trials = append(o.run.Trials, t)
			if !known {
				if again {
					o.total++ // as the note says
				}
				if err := o.save(); err != nil {
					return fmt.Errorf("trial %d: %w", n, err)
				}
				note := tracedNote(t)
				if again {
					note += fmt.Sprintf("; it is made again: %d in all", o.total)
				}
				o.progress(Step{Trial: n, Of: o.total, Done: t, Note: note})
			}
			if !again {
				break
			}
		}
	}
	return nil
}

// tracedNote says how a traced trial went.
func tracedNote(t *lab.Trial) string {
	switch {
	case len(t.Invalid) > 1:
		return fmt.Sprintf("Trial %d, for its trace: not used, %s", t.Number, t.Invalid[1])
	case t.Trace == nil || t.Trace.Void != "":
		void := ""
		if t.Trace != nil {
			void = t.Trace.Void
		}
		return fmt.Sprintf("Trial %d, for its trace: the trace is not used, %s", t.Number, cmp.Or(void, "there is none"))
	}
	return fmt.Sprintf("Trial %d, for its trace: whole, last change %.0f ms", t.Number, metric.LastChange.In(t))
}
