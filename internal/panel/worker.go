package panel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"eidetic/internal/store"
)

// worker takes jobs from the queue, one of each device at a time.
type worker struct {
	panel *Panel
	more  chan struct{} // capacity 1: there may be a job

	mu      sync.Mutex
	running map[string]context.CancelFunc
}

func newWorker(p *Panel) *worker {
	return &worker{panel: p, more: make(chan struct{}, 1), running: map[string]context.CancelFunc{}}
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
		cancel()
	}
	return ok
}

func (w *worker) work(ctx context.Context) error {
	var all sync.WaitGroup
	defer all.Wait()
	w.wake() // for what an earlier process left
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.more:
		}
		for ctx.Err() == nil {
			// Not cut short by the context: a job must not be taken unnoticed.
			job, err := w.panel.Queue.Next(context.WithoutCancel(ctx))
			if errors.Is(err, store.ErrNotFound) {
				break
			}
			if err != nil {
				return fmt.Errorf("panel: the queue: %w", err)
			}
			if ctx.Err() != nil {
				return w.panel.Queue.Release(context.WithoutCancel(ctx), job.ID)
			}
			own, cancel := context.WithCancel(ctx)
			w.mu.Lock()
			w.running[job.ID] = cancel
			w.mu.Unlock()
			all.Go(func() {
				defer w.wake() // the device is free
				w.carryOut(own, job)
				w.mu.Lock()
				delete(w.running, job.ID)
				w.mu.Unlock()
				cancel()
			})
		}
	}
}

// carryOut does a job and tells how it ended.
func (w *worker) carryOut(ctx context.Context, job store.Job) {
	p := w.panel
	var request RunRequest
	p.Publish(Progress{Run: job.ID, State: store.StateRunning})
	err := json.Unmarshal(job.Request, &request)
	if err == nil {
		err = p.Runner.Run(ctx, job.ID, request, func(s Progress) {
			s.Run, s.State = job.ID, store.StateRunning
			p.Publish(s)
		})
	}
	end, reason := Progress{Run: job.ID, State: store.StateDone}, ""
	run, readErr := p.Store.Run(job.ID)
	switch {
	case readErr == nil:
		end.State, end.Error = run.State, run.Error
		if run.State == store.StateRunning {
			// Its folder is still held, which only a Runner that is wrong does.
			end.State, end.Error = store.StateFailed, "the run returned before it had ended"
		}
	case ctx.Err() != nil:
		end.State, end.Error = store.StateInterrupted, "cancelled"
	case err != nil:
		end.State, end.Error, reason = store.StateFailed, err.Error(), err.Error()
	default:
		reason = "the run left nothing behind"
		end.State, end.Error = store.StateFailed, reason
	}
	if err != nil && ctx.Err() == nil {
		p.Log.Error("panel: run", "run", job.ID, "err", err)
	}
	if finishErr := p.Queue.Finish(context.WithoutCancel(ctx), job.ID, reason); finishErr != nil {
		p.Log.Error("panel: queue", "run", job.ID, "err", finishErr)
	}
	p.Publish(end)
}

func nth(id string, n int) string { return id + "-" + strconv.Itoa(n) }
