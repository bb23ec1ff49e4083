package panel

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"eidetic/internal/store"
)

// worker takes jobs from the queue, one of each device at a time.
type worker struct {
	panel *Panel
	more  chan struct{} // capacity 1: there may be a job
	ended chan struct{} // closed when no more is done

	// mu is held while a job is taken from the queue, so that a job that is
	// running there is in the map as well.
	mu      sync.Mutex
	running map[string]context.CancelCauseFunc
}

// errCancelled is the cause of a run's end that a person asked for.
var errCancelled = errors.New("it was cancelled before its first trial") // constant

func newWorker(p *Panel) *worker {
	return &worker{panel: p, more: make(chan struct{}, 1), ended: make(chan struct{}), running: map[string]context.CancelCauseFunc{}}
}

func (w *worker) wake() {
	select {
	case w.more <- struct{}{}:
	default:
	}
}

// stop cancels a run that goes on; false when it does not.
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
	w.wake() // for what an earlier process left
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
				// A disk that is full can be emptied; that takes a panel that serves.
				w.panel.Log.Error("panel: the queue", "err", err)
				time.AfterFunc(again, w.wake)
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
	job, err := w.panel.Queue.Next(context.WithoutCancel(ctx))
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

// carryOut does a job and tells how it ended. The context own is that of the
// run; it ends with ctx, that of the service.
func (w *worker) carryOut(ctx, own context.Context, job store.Job) {
	p := w.panel
	p.Publish(Progress{Run: job.ID, State: store.StateRunning})
	err := job.PlanError
	if err == nil {
		err = p.Runner.Run(own, job.ID, job.Plan, func(s Progress) {
			s.Run, s.State = job.ID, store.StateRunning
			p.Publish(s)
		})
	}
	if err != nil && own.Err() == nil {
		p.Log.Error("panel: run", "run", job.ID, "err", err)
	}
	end := Progress{Run: job.ID, State: store.StateDone}
	settle := func(ctx context.Context) error { return p.Queue.Finish(ctx, job.ID) }
	leave := func(state, reason string) {
		end.State, end.Error = state, reason
		settle = func(ctx context.Context) error { return p.Queue.Leave(ctx, job.ID, state, reason) }
	}
	run, readErr := p.Store.Run(job.ID)
	switch {
	case readErr == nil:
		end.State, end.Error = run.State, run.Error
		switch {
		case run.State == store.StateRunning:
			// Its folder is still held, which only a Runner that is wrong does.
			end.State, end.Error = store.StateFailed, "the run returned before it had ended"
		case run.State == store.StateInterrupted && own.Err() == nil && err != nil:
			end.Error = err.Error() // the folder may have been unable to say why
		}
	case errors.Is(context.Cause(own), errCancelled):
		leave(store.StateInterrupted, errCancelled.Error())
	case ctx.Err() != nil: // the service stops, and the run has not begun
		end.State = store.StateQueued
		settle = func(ctx context.Context) error {
			w.mu.Lock() // nobody takes it while it is still here
			defer w.mu.Unlock()
			return p.Queue.Release(ctx, job.ID)
		}
	case err != nil:
		leave(store.StateFailed, err.Error())
	default:
		leave(store.StateFailed, "the run left nothing behind")
	}
	w.settle(ctx, job.ID, settle)
	p.Publish(end)
}

// again is the time between two attempts to write into the queue.
const again = 10 * time.Second

// settle writes into the queue what became of a job. As long as it cannot, the
// device has a job that goes on and takes no other.
func (w *worker) settle(ctx context.Context, id string, write func(context.Context) error) {
	for {
		err := write(context.WithoutCancel(ctx))
		if err == nil {
			return
		}
		w.panel.Log.Error("panel: the queue", "run", id, "err", err)
		select {
		case <-w.ended: // the next start finds the job interrupted
			return
		case <-time.After(again):
		}
	}
}

func nth(id string, n int) string { return id + "-" + strconv.Itoa(n) }
