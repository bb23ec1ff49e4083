package runqueue

import (
	"context"
	"errors"
	"sync"
	"time"

	"eidetic/internal/keep/store"
)

// worker takes jobs from the queue, one of each device at a time.
type worker struct {
	queue *Queue
	more  chan struct{} // capacity 1: there may be a job
	ended chan struct{} // closed when no job is taken any more

	// mu is held while a job is taken from the queue, so that a job that is
	// running in the queue is in the map as well.
	mu      sync.Mutex
	running map[string]context.CancelCauseFunc
}

// errCancelled is the cause of a run's end that a person asked for.
var errCancelled = errors.New("it was cancelled before its first trial") // constant

func newWorker(q *Queue) *worker {
	return &worker{queue: q, more: make(chan struct{}, 1), ended: make(chan struct{}), running: map[string]context.CancelCauseFunc{}}
}

// wake makes the worker look for a job.
func (w *worker) wake() {
	select {
	case w.more <- struct{}{}:
	default:
	}
}

// stop cancels a run that is in progress; it returns false when the run is not.
func (w *worker) stop(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	cancel, ok := w.running[id]
	if ok {
		cancel(errCancelled)
	}
	return ok
}

func (w *worker) work(ctx context.Context) error {
	var all sync.WaitGroup
	defer all.Wait()
	defer close(w.ended)
	w.wake() // for the jobs that an earlier process left
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.more:
		}
		for ctx.Err() == nil {
			job, own, err := w.take(ctx)
			if errors.Is(err, store.ErrNotFound) || ctx.Err() != nil && err != nil {
				break
			}
			if err != nil {
				// A full disk can be emptied; for that the service must go on.
				w.queue.Log.Error("the queue cannot be read", "err", err)
				time.AfterFunc(retryPause, w.wake)
				break
			}
			all.Go(func() {
				defer w.wake() // the device is free
				w.carryOut(ctx, own, job)
				w.drop(job.ID)
			})
		}
	}
}

// take marks a job as running, in the queue and here: nobody sees it between.
func (w *worker) take(ctx context.Context) (store.Job, context.Context, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := ctx.Err(); err != nil { // runs that have not begun are put back from now on
		return store.Job{}, nil, err
	}
	// Not cut short by the context: a job must not be taken unnoticed.
	job, err := w.queue.Jobs.Next(context.WithoutCancel(ctx))
	if err != nil {
		return job, nil, err
	}
	own, cancel := context.WithCancelCause(ctx)
	w.running[job.ID] = cancel
	return job, own, nil
}

// drop forgets a run that has ended.
func (w *worker) drop(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running[id](nil)
	delete(w.running, id)
}

// carryOut carries out a job and tells how it ended. The context own is the run's;
// it ends with ctx, the service's.
func (w *worker) carryOut(ctx, own context.Context, job store.Job) {
	q := w.queue
	q.events.Publish(Progress{Run: job.ID, State: store.StateRunning})
	err := job.PlanError
	if err == nil {
		err = q.Runner.Run(own, job.ID, job.Plan, func(s Progress) {
			s.Run, s.State = job.ID, store.StateRunning
			q.events.Publish(s)
		})
	}
	if err != nil && own.Err() == nil {
		q.Log.Error("a run failed", "run", job.ID, "err", err)
	}
	end, settle := w.outcome(ctx, own, job.ID, err)
	w.settle(ctx, job.ID, settle)
	q.events.Publish(end)
}

// outcome returns how a job ended, given the error of its run, and what to write
// into the queue.
func (w *worker) outcome(ctx, own context.Context, id string, err error) (end Progress, settle func(context.Context) error) {
	q := w.queue
	finish := func(ctx context.Context) error { return q.Jobs.Finish(ctx, id) }
	leave := func(state, reason string) (Progress, func(context.Context) error) {
		return Progress{
			Run:   id,
			State: state,
			Error: reason,
		}, func(ctx context.Context) error { return q.Jobs.Leave(ctx, id, state, reason) }
	}
	run, readErr := q.Store.Run(id)
	switch {
	case readErr == nil && run.State == store.StateInterrupted && ctx.Err() != nil && !errors.Is(context.Cause(own), errCancelled):
		return w.release(id) // the service stops: the next one goes on with the run
	case readErr == nil && run.State == store.StateRunning:
		// Its folder is still held, which only a Runner with a mistake does.
		return Progress{Run: id, State: store.StateFailed, Error: "the run returned before it had ended"}, finish
	case readErr == nil && run.State == store.StateInterrupted && own.Err() == nil && err != nil:
		return Progress{Run: id, State: run.State, Error: err.Error()}, finish // the folder may have been unable to say why
	case readErr == nil:
		return Progress{Run: id, State: run.State, Error: run.Error}, finish
	case errors.Is(context.Cause(own), errCancelled):
		return leave(store.StateInterrupted, errCancelled.Error())
	case ctx.Err() != nil: // the service stops, and the run has not begun
		return w.release(id)
	case err != nil:
		return leave(store.StateFailed, err.Error())
	}
	return leave(store.StateFailed, "the run left nothing behind")
}

// release puts a job back into its place in the queue.
func (w *worker) release(id string) (Progress, func(context.Context) error) {
	return Progress{Run: id, State: store.StateQueued}, func(ctx context.Context) error {
		w.mu.Lock() // nobody takes the job while it is still in the map
		defer w.mu.Unlock()
		return w.queue.Jobs.Release(ctx, id)
	}
}

// retryPause is the time between two attempts to use the queue.
const retryPause = 10 * time.Second

// settle writes into the queue what became of a job. As long as it cannot, the
// device has a job in progress and takes no other.
func (w *worker) settle(ctx context.Context, id string, write func(context.Context) error) {
	for {
		err := write(context.WithoutCancel(ctx))
		if err == nil {
			return
		}
		w.queue.Log.Error("the queue cannot be written", "run", id, "err", err)
		select {
		case <-w.ended: // the next start finds the job interrupted
			return
		case <-time.After(retryPause):
		}
	}
}
