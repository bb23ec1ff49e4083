package execute

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"eidetic/analysis/trace"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/run/experiment"
	kept "eidetic/internal/tell/timeline"
	"eidetic/internal/tell/verdict"
)

// afterEnd is how much of a trace after the last visual change is on the timeline.
const afterEnd = 500 * time.Millisecond

// traced sums up a trial's browser trace, if it has one. What is wrong with it makes it void, and not the trial.
func traced(dir string, t *lab.Trial) {
	if t.Trace == nil || t.Trace.Void != "" || t.Files[experiment.TraceRole] == "" {
		return
	}
	p, work, err := keptOf(filepath.Join(dir, experiment.TraceFile), t)
	if err == nil {
		err = writeJSON(dir, kept.WorkFile, work)
	}
	if err != nil {
		t.Trace.Void = err.Error()
		return
	}
	t.Files[kept.WorkRole] = kept.WorkFile
	measured(t, func(from, to lab.Time) []lab.Measurement {
		if len(t.Steps) == 0 {
			return trace.Measured(work.Work) // of the same time
		}
		return trace.Measured(p.Work(from, to))
	})
}

// worked adds what the browser took of the machine to a trial's measurements, where that was read: of its load, or of
// each step that has an end. It is no fault of the trial if that cannot be read again.
func worked(dir string, t *lab.Trial) {
	f, err := os.Open(filepath.Join(dir, experiment.MachineFile))
	if err != nil || t.Sampled == nil {
		return
	}
	defer f.Close()
	list, _, err := store.ReadSamples(f)
	if err != nil {
		return
	}
	measured(t, func(from, to lab.Time) []lab.Measurement { return trace.TakenBy(list, from, to).Measurements() })
}

// measured adds measurements of a time to a trial: of its load, or of each step that has an end, to the step and under
// its name to the trial.
func measured(t *lab.Trial, of func(from, to lab.Time) []lab.Measurement) {
	if len(t.Steps) == 0 {
		t.Measurements = append(t.Measurements, of(trace.Window(t))...)
		return
	}
	for _, s := range t.Steps {
		if len(s.Measurements) == 0 {
			continue
		}
		for _, m := range of(s.First.Earliest, max(s.Met, s.Input.Latest)) {
			s.Measurements = append(s.Measurements, m)
			m.Name = s.Name + "/" + m.Name
			t.Measurements = append(t.Measurements, m)
		}
	}
}

// keptOf reads a trace, joins its clock to the box's, and sums up self time from the trial's start to its last visual
// change.
func keptOf(name string, t *lab.Trial) (*trace.Profile, *trace.Kept, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(bufio.NewReader(f))
	if err != nil {
		return nil, nil, fmt.Errorf("the browser's trace: %w", err)
	}
	read := trace.ReadChrome
	if t.Trace.Browser == "Firefox" {
		read = trace.ReadGecko
	}
	p, err := read(z)
	if err != nil {
		return nil, nil, err
	}
	now, monotonic := time.Now(), lab.Monotonic()
	offset, bound, how, err := trace.Join(p, t.Trace.Pings, now.Add(-time.Duration(monotonic)))
	if err != nil {
		return nil, nil, err
	}
	p.Shift(offset)
	t.Trace.OffsetNS, t.Trace.BoundMS, t.Trace.Clock = int64(offset), float64(bound)/1e6, how
	from, to := trace.Window(t)
	t.Trace.FromMS, t.Trace.ToMS = 0, float64(to-from)/1e6
	if p.Complete > from {
		return nil, nil, fmt.Errorf("%w: its buffer was too small, and what came before %.0f ms is forgotten", trace.ErrVoid, float64(p.Complete-from)/1e6)
	}
	work := &trace.Kept{Work: p.Work(from, to), Shown: p.Shown(from, to.Add(afterEnd)), Stretches: p.Stretches(from, to), Fetches: p.Fetches}
	if len(work.Work) == 0 {
		return nil, nil, fmt.Errorf("%w: nothing in it is of the time of the load", trace.ErrVoid)
	}
	return p, work, nil
}

// concludeCauses compares the traced trials of a run's arms, those of each page and user for themselves.
func concludeCauses(dir string, run *lab.Run) {
	for i, view := range run.Views() {
		causes, err := kept.Causes(dir, view)
		if err != nil {
			run.Warnings = append(run.Warnings, "Why one arm is slower cannot be told: "+err.Error())
		}
		switch {
		case !run.Plan.IsMany():
			run.Causes = causes
			verdict.Locate(run.Comparison, causes)
		case i < len(run.Cells):
			run.Cells[i].Causes = causes
			verdict.Locate(run.Cells[i].Comparison, causes)
		}
	}
}
