package timeline

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"eidetic/analysis/trace"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// WorkFile has the self time of a traced trial's browser, and WorkRole is its role.
const (
	WorkFile = "work.json"
	WorkRole = "work"
)

const maxWork = 16 << 20 // bytes

// Causes compares what browsers, servers and network did in the traced trials of a run's arms. It is nil for a run that
// has no second arm, or no trace.
func Causes(dir string, run *lab.Run) (*lab.Causes, error) {
	traced, treatment := false, false
	for _, t := range run.Trials {
		traced, treatment = traced || t.Trace != nil, treatment || t.Arm == lab.Treatment
	}
	if !traced || !treatment {
		return nil, nil
	}
	files, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer files.Close()
	r := &Reader{files: files}
	var all []trace.Observed
	left := [2]int{}
	for _, t := range run.Trials {
		if t.Trace == nil {
			continue
		}
		o, err := r.observed(t)
		if err != nil || !counts(t) {
			left[min(lab.ArmOrder(t.Arm), 1)]++
			continue
		}
		all = append(all, *o)
	}
	c := trace.Causes(all, run.Plan.Seed)
	c.Control.Left, c.Treatment.Left = left[0], left[1]
	return c, nil
}

// counts says whether a trial's trace may tell why: where it was made for its trace, nothing but that may be against
// it.
func counts(t *lab.Trial) bool {
	if t.Traced {
		return len(t.Invalid) == 1 && t.Trace.Void == ""
	}
	return t.Valid && t.Trace.Void == ""
}

// observed reads what is compared of a traced trial.
func (r *Reader) observed(t *lab.Trial) (*trace.Observed, error) {
	from, to := trace.Window(t)
	o := &trace.Observed{Arm: t.Arm, Block: t.Block, Page: t.Page, Zero: from, WindowMS: float64(to-from) / 1e6}
	kept, err := r.kept(t)
	if err != nil {
		return nil, err
	}
	o.Work, o.Stretches, o.Fetches = kept.Work, kept.Stretches, kept.Fetches
	if len(t.FrameTimes) == 0 { // run.json has no curves
		if whole, err := store.ReadTrial(r.files, t.Number); err == nil {
			t = whole
		}
	}
	o.Number, o.StartFrame, o.FrameMS, o.Progress = t.Number, t.StartFrame, t.FrameTimes, t.VisualProgress
	log := r.open(t, "replay")
	if log == nil {
		return nil, fmt.Errorf("trial %d has no replay log", t.Number)
	}
	defer log.Close()
	served, err := store.DecodeServed(io.LimitReader(log, maxLog), mostRequests)
	if err != nil {
		return nil, fmt.Errorf("trial %d: %w", t.Number, err)
	}
	o.Served = served.Lines
	return o, nil
}

// kept reads what was kept of a trial's browser trace.
func (r *Reader) kept(t *lab.Trial) (kept trace.Kept, err error) {
	f := r.open(t, WorkRole)
	if f == nil {
		return kept, fmt.Errorf("trial %d has no %s", t.Number, WorkFile)
	}
	defer f.Close()
	if err := json.NewDecoder(io.LimitReader(f, maxWork)).Decode(&kept); err != nil {
		return trace.Kept{}, fmt.Errorf("trial %d: %s: %w", t.Number, WorkFile, err)
	}
	return kept, nil
}
