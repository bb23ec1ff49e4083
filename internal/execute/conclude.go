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

// conclude computes the results of a run from its trials, once its state is final.
func conclude(run *lab.Run) {
	run.Summary = summarise(run.Trials)
	run.Comparison = verdict.Of(run, run.Plan.Seed)
	if run.Comparison != nil && run.State != store.StateDone {
		verdict.Stopped(run.Comparison)
		run.Warnings = append(
			run.Warnings,
			fmt.Sprintf(
				"The run ended after %d trials, before all that were planned: what the comparison found is of those alone.",
				len(run.Trials),
			),
		)
	}
	for _, text := range []string{experiment.Explain(run.Tolerance, run.Trials), filledWarning(run)} {
		if text != "" {
			run.Warnings = append(run.Warnings, text)
		}
	}
	if n := len(run.Trials) - valid(run.Trials); n > 0 {
		run.Warnings = append(
			run.Warnings,
			fmt.Sprintf("%d of %d trials are invalid and not in the summary; each says why", n, len(run.Trials)),
		)
	}
}

// CutOff is the error of an interrupted run that has been concluded. It differs from the
// error that store.ReadRun reports for an unfinished folder, so that the two can be told
// apart.
const CutOff = "the process that ran it ended before it was done; the result is of the trials that were whole"

// Conclude completes a run that was interrupted by SIGKILL or a power cut: it adds the
// summary of its trials, the comparison, a report, and the reason of the end. Runs that are
// complete or in progress are not changed.
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
	if err := recoverFilled(folder.Path(), run); err != nil {
		run.Warnings = append(run.Warnings, "What the run fetched from origins: "+err.Error())
	}
	conclude(run)
	if err := report.Write(folder.Path(), run); err != nil {
		return err
	}
	return folder.Save(run)
}

// ConcludeAll concludes the interrupted runs of a store. It logs errors and continues: a
// damaged folder must not stop the service.
func ConcludeAll(ctx context.Context, runs *store.Store, log *slog.Logger) {
	dirs, err := runs.CutOff(ctx)
	if err != nil {
		log.Error("interrupted runs could not be listed and have no result", "error", err)
	}
	for _, dir := range dirs {
		if ctx.Err() != nil {
			return // the next start continues
		}
		if err := Conclude(dir, CutOff); err != nil {
			log.Error("an interrupted run could not be concluded and has no result", "run", dir, "error", err)
		}
	}
}
