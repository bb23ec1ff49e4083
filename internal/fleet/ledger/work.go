package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivertype"

	"eidetic/internal/fleet"
	"eidetic/internal/keep/store"
)

// assembleQueue is the queue of River in which runs wait for being assembled.
const assembleQueue = "assemble"

const (
	maxAttempts     = 1000 // River's, of a part; it never looks at them
	assembleTries   = 5
	assembleWorkers = 2
	// assembleLimit bounds one assembly, so that River's rescuer ends it if our own sweep does not.
	assembleLimit = time.Hour
	stopLimit     = 20 * time.Second
	// fetchCooldown is how soon after an assembly the next is fetched.
	fetchCooldown = 20 * time.Millisecond
)

// partArgs are the arguments of a job that is a part. Boxes carry it out; no worker of River ever does.
type partArgs struct {
	Part string `json:"part"`
}

// Kind names the jobs for River.
func (partArgs) Kind() string { return "part" }

// partWorker tells River's rescuer that the kind exists and has no limit, so that it never takes a part from a box.
type partWorker struct {
	river.WorkerDefaults[partArgs]
}

// Timeout says that a box may take as long as it renews its lease.
func (partWorker) Timeout(*river.Job[partArgs]) time.Duration { return -1 }

// Work is never called: no client of River works in the queues of parts.
func (partWorker) Work(context.Context, *river.Job[partArgs]) error {
	return errors.New("parts are carried out by boxes")
}

// assembleArgs are the arguments of the job that makes one run of its parts.
type assembleArgs struct {
	Run string `json:"run"`
}

// Kind names the jobs for River.
func (assembleArgs) Kind() string { return "assemble" }

type assembleWorker struct {
	river.WorkerDefaults[assembleArgs]
	l *Ledger
}

// Timeout bounds an assembly.
func (*assembleWorker) Timeout(*river.Job[assembleArgs]) time.Duration { return assembleLimit }

// Work assembles a run. The run's end and that of the job are one transaction.
func (w *assembleWorker) Work(ctx context.Context, job *river.Job[assembleArgs]) error {
	stop := w.l.touch(ctx, job.ID)
	defer stop()
	r, err := w.l.Run(ctx, job.Args.Run)
	if errors.Is(err, store.ErrNotFound) {
		return nil // removed
	}
	if err != nil {
		return err
	}
	end := Assembled{State: store.StateFailed, Error: fmt.Sprintf("its parts could not be put together in %d tries: the head stopped each time", assembleTries)}
	if job.Attempt <= assembleTries {
		end, err = w.l.assemble(ctx, r)
	}
	if err != nil && (job.Attempt < assembleTries || ctx.Err() != nil) {
		return fmt.Errorf("assemble run %s: %w", r.ID, err)
	}
	if err != nil {
		end = Assembled{State: store.StateFailed, Error: fmt.Sprintf("its parts could not be put together: %v", err)}
	}
	return w.l.endRun(ctx, job, end)
}

// touch tells the sweeps of all heads that this one is still at a job.
func (l *Ledger) touch(ctx context.Context, job int64) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(max(l.lease/beats, time.Millisecond))
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			err := l.update(ctx, "touch a job", func(tx *tx) error {
				return tx.setJob(ctx, &riverdriver.JobUpdateFullParams{ID: job, AttemptedAtDoUpdate: true, AttemptedAt: &tx.now})
			})
			if err != nil && ctx.Err() == nil {
				l.log.Warn("fleet: touch a job", "job", job, "error", err)
			}
		}
	}()
	return func() { cancel(); <-done }
}

// endRun writes the end of a run once, and gives it its place in the order of all ends.
func (l *Ledger) endRun(ctx context.Context, job *river.Job[assembleArgs], end Assembled) error {
	if end.State != store.StateDone && end.State != store.StateFailed && end.State != store.StateInterrupted {
		return fmt.Errorf("assemble run %s: %q is no end of a run", job.Args.Run, end.State)
	}
	return l.update(ctx, "end a run", func(tx *tx) error {
		var state string
		if err := tx.lock(ctx, `SELECT state FROM fleet_runs WHERE id = ?`, job.Args.Run).Scan(&state); found(err, nil) != nil {
			return err
		}
		if state == stateAssembling {
			// The counter's row is held until the end is written, so nobody sees a place before those in front of it.
			var place int64
			if err := tx.row(ctx, `UPDATE fleet_state SET n = n + 1 WHERE name = 'ends' RETURNING n`).Scan(&place); err != nil {
				return err
			}
			if _, err := tx.exec(ctx, `UPDATE fleet_runs SET state = ?, error = ?, files = ?, ended = ?, ends = ? WHERE id = ?`,
				end.State, end.Error, text(orEmpty(end.Files)), at(tx.now), place, job.Args.Run); err != nil {
				return err
			}
		}
		_, err := river.JobCompleteTx[riverdriver.Driver[*sql.Tx]](ctx, tx.Tx, job)
		return err
	})
}

// askAssembly inserts the job that assembles a run.
func (tx *tx) askAssembly(ctx context.Context, run string) error {
	always := epoch()
	_, err := tx.jobs.JobInsertFastMany(ctx, &riverdriver.JobInsertFastManyParams{Jobs: []*riverdriver.JobInsertFastParams{{
		Args: assembleArgs{run}, EncodedArgs: []byte(text(assembleArgs{run})), Kind: assembleArgs{}.Kind(), MaxAttempts: assembleTries,
		Priority: 1, Queue: assembleQueue, ScheduledAt: &always, CreatedAt: &tx.now, State: rivertype.JobStateAvailable, Tags: []string{},
	}}})
	return err
}

// Work gives back leases that ran out, lets River assemble runs and remove old jobs, until the context ends.
func (l *Ledger) Work(ctx context.Context) error {
	if l.assemble != nil {
		client, err := l.startRiver(ctx)
		if err != nil {
			return err
		}
		defer func() {
			stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
			defer cancel()
			if err := client.StopAndCancel(stop); err != nil {
				l.log.Warn("fleet: stop the queue", "error", err)
			}
		}()
	}
	tick := time.NewTicker(max(l.lease/beats, time.Millisecond))
	defer tick.Stop()
	for {
		if err := l.Sweep(ctx); err != nil && ctx.Err() == nil {
			l.log.Warn("fleet: sweep", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (l *Ledger) startRiver(ctx context.Context) (*river.Client[*sql.Tx], error) {
	workers := river.NewWorkers()
	river.AddWorker(workers, &partWorker{})
	river.AddWorker(workers, &assembleWorker{l: l})
	client, err := river.NewClient(l.driver, &river.Config{
		Logger: l.log, PollOnly: true, Workers: workers, RescueStuckJobsAfter: assembleLimit, FetchCooldown: fetchCooldown,
		Queues: map[string]river.QueueConfig{assembleQueue: {MaxWorkers: assembleWorkers}},
	})
	if err != nil {
		return nil, fmt.Errorf("the fleet's queue: %w", err)
	}
	// Jobs are told of the end by StopAndCancel.
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return nil, fmt.Errorf("the fleet's queue: %w", err)
	}
	return client, nil
}

// RunFiles lists the files of an assembled run.
func (l *Ledger) RunFiles(ctx context.Context, run string) ([]fleet.File, error) {
	files, err := l.reader().runFiles(ctx, run)
	return files, named("list files", err)
}
