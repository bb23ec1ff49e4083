package service

import (
	"context"
	"log/slog"
	"time"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/run/execute"
)

// resumeJobs puts runs that were in progress when the last process ended back into the queue, at
// their place, and returns the IDs of all that will go on.
func resumeJobs(ctx context.Context, jobs *store.Queue, runs *store.Store, software string, log *slog.Logger) (ids []string) {
	all, err := jobs.Jobs(ctx)
	if err != nil {
		log.Error("the queue cannot be read, and no interrupted run goes on", "error", err)
		return nil
	}
	for _, j := range all {
		if j.State == store.StateFailed || j.PlanError != nil || !runs.Has(j.ID) {
			continue
		}
		run, err := atRest(ctx, runs, j.ID)
		if err == nil {
			err = execute.Resumable(run, software)
		}
		if err == nil && j.State == store.StateInterrupted {
			err = jobs.Release(ctx, j.ID)
		}
		if err != nil {
			log.Info("an interrupted run does not go on", "run", j.ID, "why", err)
			if err := jobs.Finish(ctx, j.ID); err != nil { // its folder says how it ended
				log.Error("the queue cannot be written", "run", j.ID, "error", err)
			}
			continue
		}
		log.Info("an interrupted run goes on", "run", j.ID, "trials", len(run.Trials))
		ids = append(ids, j.ID)
	}
	return ids
}

// restLimit is how long the process of a run that lost the one that had begun it may take to end.
const restLimit = 10 * time.Second

// atRest reads a run once no process carries it out any more: one that was in the middle of a trial when the service
// was killed ends a little after it.
func atRest(ctx context.Context, runs *store.Store, id string) (*lab.Run, error) {
	for began := time.Now(); ; {
		run, err := runs.Run(id)
		if err != nil || run.State != store.StateRunning || time.Since(began) > restLimit {
			return run, err
		}
		select {
		case <-ctx.Done():
			return run, nil
		case <-time.After(50 * time.Millisecond):
		}
	}
}
