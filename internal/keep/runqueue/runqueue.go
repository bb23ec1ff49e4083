// Package runqueue keeps the runs that were asked for and carries them out, one at a
// time per device, and tells everyone who listens how they go. A job is a run in
// the queue. In go plans; a [Runner] checks them and carries them out. The queue is
// a SQLite file (package store), so it survives a restart: runs that waited still
// wait, and a run that was in progress is interrupted.
package runqueue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// Runner carries out runs.
type Runner interface {
	// Accept fills in what a plan leaves to the appliance. Its error says what is
	// wrong with the plan, and is shown to the one who asked.
	Accept(ctx context.Context, p lab.Plan) (lab.Plan, error)
	// Run carries out a plan as the run with the ID: it creates the run's folder in
	// the store, fills it, and tells of its progress. It returns when the run has
	// ended, soon after the context does. An error is for a run that left no folder
	// behind; one that did says in its run.json how it ended.
	Run(ctx context.Context, id string, p lab.Plan, progress func(Progress)) error
}

// Config is what a queue is made of.
type Config struct {
	Jobs   *store.Queue // the jobs
	Store  *store.Store // the runs that they become
	Runner Runner
	Now    func() time.Time // the wall clock; nil is time.Now
	Log    *slog.Logger     // nil discards
}

// Queue is a queue of runs. Its jobs are carried out while [Queue.Work] runs.
type Queue struct {
	Config
	events *Events
	worker *worker
	naming sync.Mutex // held from the choice of an ID until the job that has it is in the queue
}

// New returns a queue that carries nothing out yet.
func New(c Config) *Queue {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	q := &Queue{Config: c, events: NewEvents()}
	q.worker = newWorker(q)
	return q
}

// RejectedError says that a plan cannot be carried out.
type RejectedError struct{ Err error }

func (e *RejectedError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong with the plan.
func (e *RejectedError) Unwrap() error { return e.Err }

// ErrEnding says that a run can no longer be cancelled, because it is about to end.
var ErrEnding = errors.New("the run is about to end; look at it again") // constant

// Events tells how the runs go.
func (q *Queue) Events() *Events { return q.events }

// Work carries out the jobs until the context ends, and returns when the runs that
// were in progress then have stopped.
func (q *Queue) Work(ctx context.Context) error { return q.worker.work(ctx) }

// Get returns one job, or store.ErrNotFound.
func (q *Queue) Get(ctx context.Context, id string) (store.Job, error) { return q.Jobs.Get(ctx, id) }

// List returns all jobs, the newest first.
func (q *Queue) List(ctx context.Context) ([]store.Job, error) { return q.Jobs.Jobs(ctx) }

// Waits says of runs, in words, what they wait for. One that does not wait is left out.
func (q *Queue) Waits(ctx context.Context, runs ...string) (map[string]string, error) {
	jobs, err := q.Jobs.Line(ctx)
	if err != nil {
		return nil, err
	}
	running, before, said := map[string]string{}, map[string]int{}, map[string]string{}
	for _, j := range jobs {
		if j.State == store.StateRunning {
			running[j.Device] = j.ID
		}
	}
	for _, j := range jobs {
		if j.State != store.StateQueued {
			continue
		}
		n := before[j.Device]
		before[j.Device]++
		if run := running[j.Device]; slices.Contains(runs, j.ID) && (run != "" || n > 0) {
			said[j.ID] = waitsFor(j.Device, run, n)
		}
	}
	return said, nil
}

// waitsFor says what a run waits for that has n runs before it on its device.
func waitsFor(device, run string, n int) string {
	device = cmp.Or(device, "its device")
	turn := "it is next"
	switch {
	case n == 1:
		turn = "1 run comes first"
	case n > 1:
		turn = fmt.Sprintf("%d runs come first", n)
	}
	if run == "" {
		return fmt.Sprintf("%s is about to be free; %s", device, turn)
	}
	return fmt.Sprintf("%s carries out %s, and %s", device, run, turn)
}

// mostIDs bounds how many runs of one name may be asked for in one second.
const mostIDs = 1000

// Add puts a plan into the queue of its device, and returns the ID of its run. A
// request that is made again, with the key of the first one, gets the first one's
// run and adds nothing. An error is a [RejectedError], store.ErrKeyUsed,
// store.ErrFull, or one of the queue.
func (q *Queue) Add(ctx context.Context, plan lab.Plan, once store.Once) (id string, err error) {
	if once.Key != "" { // before the plan is checked: what was accepted then may not be now
		switch id, err := q.Jobs.Known(ctx, once); {
		case err == nil:
			return id, nil
		case !errors.Is(err, store.ErrNotFound):
			return "", err
		}
	}
	accepted, err := q.Runner.Accept(ctx, plan)
	if err != nil && ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		return "", &RejectedError{err}
	}
	q.naming.Lock()
	defer q.naming.Unlock()
	job := store.Job{Device: accepted.Device, Created: q.Now(), Plan: accepted}
	if job.ID, err = q.freeID(ctx, job.Created, plan.Name); err != nil {
		return "", err
	}
	id, err = q.add(ctx, job, once)
	if err != nil || id != job.ID { // the same request came twice at the same time
		return id, err
	}
	q.events.Publish(Progress{Run: job.ID, State: store.StateQueued, Of: accepted.Total()})
	q.worker.wake()
	return job.ID, nil
}

// freeID is an ID that neither the queue nor the store has. The queue is asked first: the folder of a run is there
// before its job is gone.
func (q *Queue) freeID(ctx context.Context, at time.Time, name string) (string, error) {
	base := store.NewID(at, name)
	id := base
	for n := 2; n <= mostIDs; n++ {
		_, err := q.Jobs.Get(ctx, id)
		if errors.Is(err, store.ErrNotFound) && q.Store.Free(id) {
			return id, nil
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return "", err
		}
		id = base + "-" + strconv.Itoa(n)
	}
	return "", store.ErrExists
}

// AddAs is [Queue.Add] for a run whose ID somebody else has chosen. A job of that ID that the queue has already, in
// whatever state, stays the only one. The caller sees to it that no run of that ID has come to an end of its own.
func (q *Queue) AddAs(ctx context.Context, id string, plan lab.Plan) error {
	if !store.ValidID(id) {
		return &RejectedError{fmt.Errorf("%.130q is no ID of a run", id)}
	}
	if _, err := q.Jobs.Get(ctx, id); !errors.Is(err, store.ErrNotFound) {
		return err
	}
	accepted, err := q.Runner.Accept(ctx, plan)
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return &RejectedError{err}
	}
	err = q.Jobs.Add(ctx, store.Job{ID: id, Device: accepted.Device, Created: q.Now(), Plan: accepted})
	if errors.Is(err, store.ErrExists) { // it came twice at the same time
		return nil
	}
	if err != nil {
		return err
	}
	q.events.Publish(Progress{Run: id, State: store.StateQueued, Of: accepted.Total()})
	q.worker.wake()
	return nil
}

func (q *Queue) add(ctx context.Context, job store.Job, once store.Once) (string, error) {
	if once.Key == "" {
		return job.ID, q.Jobs.Add(ctx, job)
	}
	return q.Jobs.AddOnce(ctx, job, once)
}

// Cancel forgets a job that waits or has ended without a run, and stops a run that
// is in progress. The error is store.ErrNotFound for a run that is not in the
// queue, and [ErrEnding].
func (q *Queue) Cancel(ctx context.Context, id string) error {
	job, err := q.Jobs.Get(ctx, id)
	if err != nil {
		return err
	}
	// A run that has ended may still be in the worker's hands for a moment.
	if job.State == store.StateRunning && q.worker.stop(id) {
		return nil
	}
	gone, err := q.Jobs.Forget(ctx, id)
	if err != nil {
		return err
	}
	if gone {
		q.events.Publish(Progress{Run: id, State: store.StateInterrupted, Error: "cancelled before it began"})
		return nil
	}
	if q.worker.stop(id) { // it has begun since it was looked at
		return nil
	}
	return ErrEnding
}

// InProgress returns the ID of a run that is in progress, or "".
func (q *Queue) InProgress(ctx context.Context) (id string, err error) {
	jobs, err := q.List(ctx)
	if err != nil {
		return "", fmt.Errorf("read the queue: %w", err)
	}
	for _, j := range jobs {
		if j.State == store.StateRunning {
			return j.ID, nil
		}
	}
	return "", nil
}
