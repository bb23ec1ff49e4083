package execute

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"eidetic/internal/experiment"
	"eidetic/internal/lab"
	"eidetic/internal/report"
	"eidetic/internal/store"
	"eidetic/internal/verdict"
)

// conclude makes the result of the trials that a run has, once its state is final.
func conclude(run *lab.Run) {
	run.Summary = summarise(run.Trials)
	run.Comparison = verdict.Of(run, run.Plan.Seed)
	if run.Comparison != nil && run.State != store.StateDone {
		verdict.Stopped(run.Comparison)
		run.Warnings = append(run.Warnings, fmt.Sprintf("The run ended after %d trials, before all that were planned: what the comparison found is of those alone.", len(run.Trials)))
	}
	if text := experiment.Explain(run.Tolerance, run.Trials); text != "" {
		run.Warnings = append(run.Warnings, text)
	}
	if n := len(run.Trials) - valid(run.Trials); n > 0 {
		run.Warnings = append(run.Warnings, fmt.Sprintf("%d of %d trials are invalid and not in the summary; each says why", n, len(run.Trials)))
	}
}

// CutOff is the reason that a run is given whose end nobody has seen. It is
// not the one that a reader of an unfinished folder tells, so that it is known
// which have a result.
const CutOff = "the process that ran it ended before it was done; the result is of the trials that were whole"

// Conclude gives a run that was cut off, by kill -9 or a power cut, what it
// would have had if it had been stopped: the summary of its trials, the
// comparison and a report, and the reason why it ended. One that has them, and
// one that goes on, is left as it is.
func Conclude(dir, reason string) error {
	folder, run, err := store.Reopen(dir)
	if errors.Is(err, store.ErrHeld) || errors.Is(err, store.ErrEnded) {
		return nil
	}
	if err != nil {
		return err
	}
	defer folder.Close()
	run.State, run.Error = store.StateInterrupted, reason
	conclude(run)
	if err := report.Write(folder.Path(), run); err != nil {
		return err
	}
	return folder.Save(run)
}

// ConcludeAll concludes the runs of a store that were cut off. What cannot be
// is logged and left: a folder of a run stops nothing.
func ConcludeAll(ctx context.Context, runs *store.Store, log *slog.Logger) {
	dirs, err := runs.CutOff(ctx)
	if err != nil {
		log.Error("runs that were cut off have no result", "error", err)
	}
	for _, dir := range dirs {
		if ctx.Err() != nil {
			return // the next start goes on
		}
		if err := Conclude(dir, CutOff); err != nil {
			log.Error("a run that was cut off has no result", "run", dir, "error", err)
		}
	}
}
