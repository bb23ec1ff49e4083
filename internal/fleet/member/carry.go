package member

import (
	"context"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"eidetic/internal/fleet"
	"eidetic/internal/keep/runqueue"
	"eidetic/internal/keep/store"
)

// returned says why the box gives a part back.
type returned struct{ why string }

func (r *returned) Error() string { return r.why }

// carry carries a part out to its end, and renews its lease meanwhile. again says that an earlier process of this box
// held it. It returns false if the box still holds it, because the context ended.
func (s *session) carry(ctx context.Context, p *part, again bool) (gone bool) {
	own, stop := context.WithCancelCause(ctx)
	p.mu.Lock()
	p.lose = stop
	if p.next != nil {
		stop(errLost)
	}
	p.mu.Unlock()
	renewing := make(chan struct{})
	go func() { defer close(renewing); s.keepRenewing(own, p, again, stop) }()
	var failed retry
	var err error
	for own.Err() == nil {
		if err = s.perform(own, p, again); err == nil || errors.Is(err, errLost) {
			break
		}
		if own.Err() == nil {
			s.Log.Warn("a part of the fleet cannot go on for now", "part", p.get().Part, "error", err)
			p.mu.Lock()
			p.problem = clip(err.Error(), 2*maxProblem)
			p.mu.Unlock()
			failed.wait(own, s.Times, nil)
		}
		again = false
	}
	lost := err != nil && (errors.Is(err, errLost) || errors.Is(context.Cause(own), errLost))
	stop(nil)
	<-renewing
	if ctx.Err() != nil && (err != nil || lost) {
		return false
	}
	k := p.get()
	if lost {
		s.Log.Warn("the lease of a part was lost; what was measured stays on the box", "part", k.Part, "attempt", k.Attempt, "run", k.Run)
		if !s.letGo(ctx, p) {
			return false
		}
	}
	for { // until then a restart would do the last step again, which the head takes
		if err := p.forget(); err == nil {
			break
		}
		failed.wait(ctx, s.Times, nil)
		if ctx.Err() != nil {
			return false
		}
	}
	s.Log.Info("the box has no part any more", "part", k.Part, "attempt", k.Attempt, "lost", lost)
	s.tidy(ctx)
	return true
}

// perform does what is left to be done of a part. It can be repeated after an error.
func (s *session) perform(ctx context.Context, p *part, again bool) error {
	k := p.get()
	var back *returned
	var err error
	switch {
	case k.Return != "":
		back = &returned{k.Return}
	case k.Run == "" && p.stopped():
		return s.end(ctx, p, func() (fleet.Outcome, *files, error) {
			return fleet.Outcome{State: store.StateInterrupted, Error: "it was cancelled before it began", Files: []fleet.File{}}, &files{}, nil
		})
	default:
		if !k.Queued {
			err = beforeBegin(ctx, s.enqueue(ctx, p))
		}
		if err == nil && p.get().Run == "" { // it is to stop
			return s.perform(ctx, p, again)
		}
		if err == nil {
			err = s.await(ctx, p, again)
		}
		if err == nil {
			return s.handIn(ctx, p)
		}
	}
	if back == nil && !errors.As(err, &back) {
		return err
	}
	return s.giveBack(ctx, p, back.why)
}

// keepRenewing renews the lease until the context ends; it ends the part when the lease is lost.
func (s *session) keepRenewing(ctx context.Context, p *part, atOnce bool, stop context.CancelCauseFunc) {
	leaseFor := p.get().LeaseFor
	var failed retry
	for {
		if !atOnce {
			wait := min(max(leaseFor/3, s.Times.First), 5*time.Minute)
			if !s.awaitRenewal(ctx, p, wait-mathrand.N(wait/5)) {
				return
			}
		}
		atOnce = false
		p.mu.Lock()
		token, progress := p.kept.Token, p.progress
		p.mu.Unlock()
		r, err := s.call.Renew(ctx, p.get().Part, token, progress)
		s.heard(err)
		switch {
		case err == nil:
			failed = retry{}
			if r.LeaseFor > 0 {
				leaseFor = r.LeaseFor
			}
			s.wanted.add(r.Wanted)
			if r.Cancel {
				if err := p.stop(); err != nil { // the next renewal says so again
					s.Log.Warn("that a part is to stop cannot be noted", "part", p.get().Part, "error", err)
				}
			}
		case IsLost(err) && p.token() == token:
			stop(errLost)
			return
		case ctx.Err() != nil:
			return
		default:
			failed.wait(ctx, s.Times, nil)
			atOnce = true
		}
	}
}

// awaitRenewal waits until the lease is to be renewed, or another trial has begun, of which people hear by the renewal;
// false is that the context has ended.
func (s *session) awaitRenewal(ctx context.Context, p *part, wait time.Duration) bool {
	due, next := time.NewTimer(wait), time.NewTimer(s.Times.Progress)
	defer due.Stop()
	defer next.Stop()
	var moved <-chan struct{} // nil until the head may hear again
	for {
		select {
		case <-ctx.Done():
			return false
		case <-due.C:
			return true
		case <-moved:
			return true
		case <-next.C:
			moved = p.moved
		}
	}
}

// IsLost says whether an answer means that the part is no longer the box's.
func IsLost(err error) bool {
	var answered *statusError
	return errors.Is(err, errLost) || errors.As(err, &answered) && answered.status == http.StatusNotFound
}

// beforeBegin makes what is wrong with the box itself, such as a disk that takes nothing, a reason to give the part back:
// nothing has been measured, and another box may be free.
func beforeBegin(ctx context.Context, err error) error {
	var back *returned
	if err == nil || ctx.Err() != nil || errors.Is(err, errLost) || errors.As(err, &back) {
		return err
	}
	return &returned{clip("the box cannot begin it: "+err.Error(), maxReason)}
}

// enqueue fetches what the part needs, and puts it into the box's queue.
func (s *session) enqueue(ctx context.Context, p *part) error {
	k := p.get()
	p.say(stateFetching, "")
	if k.Run == "" {
		if err := s.fetchAll(ctx, p); err != nil || p.stopped() {
			return err // a part that is to stop begins again, and ends
		}
		run, done, err := s.choose(ctx, k)
		if err != nil {
			return err
		}
		if err := p.change(func(k *kept) { k.Run, k.Queued = run, done }); err != nil || done {
			return err
		}
	}
	if err := s.enter(ctx, p); err != nil {
		return err
	}
	return p.change(func(k *kept) { k.Queued = true })
}

// enter puts the part's run into the queue.
func (s *session) enter(ctx context.Context, p *part) error {
	k := p.get()
	plan := k.plan()
	err := s.Queue.AddAs(ctx, k.Run, plan)
	var rejected *runqueue.RejectedError
	if errors.As(err, &rejected) || errors.Is(err, store.ErrFull) {
		return &returned{clip(err.Error(), maxReason)}
	}
	return err
}

const (
	// maxReason bounds the text of a return or an outcome.
	maxReason = 2000
	// mostRuns bounds the runs of one part on one box.
	mostRuns = 100
	// mostAgain bounds how often a run that was cut off before it had a folder is put into the queue again.
	mostAgain = 2
)

// choose returns the ID of the box's run of a part: a run of it that an earlier attempt left interrupted goes on, where
// it can; one that came to its end is handed in as it is (done); else there is a new one, PART or PART-2, PART-3 …
func (s *session) choose(ctx context.Context, k kept) (run string, done bool, err error) {
	plan := k.plan()
	for n := 1; n <= mostRuns; n++ {
		id := runID(k.Part, n)
		job, err := s.Queue.Get(ctx, id)
		switch {
		case err == nil && (job.State == store.StateQueued || job.State == store.StateRunning):
			if job.Device == k.Device { // an earlier attempt's, which the box was killed before it could stop
				return id, false, nil
			}
			continue
		case err == nil && !s.Store.Has(id): // it left nothing behind
			if err := s.Queue.Cancel(ctx, id); err != nil && !errors.Is(err, store.ErrNotFound) {
				return "", false, err
			}
		case err != nil && !errors.Is(err, store.ErrNotFound):
			return "", false, err
		}
		if !s.Store.Has(id) {
			return id, false, nil
		}
		old, err := s.Store.Run(id)
		if err != nil || !s.Same(old, plan) {
			continue
		}
		if _, thinned := s.Store.ThinnedAt(id); thinned {
			continue
		}
		if old.State == store.StateDone {
			return id, true, nil
		}
		if old.State == store.StateInterrupted && s.Resumable(old) == nil {
			return id, false, nil
		}
	}
	return "", false, &returned{fmt.Sprintf("the box has %d runs of this part already", mostRuns)}
}

// runID is the ID of the n-th run of a part on a box.
func runID(part string, n int) string {
	if n == 1 {
		return part
	}
	return part + "-" + strconv.Itoa(n)
}

// await returns when the part's run has ended and has a folder, and hands in whole trials until then. A run that leaves
// no folder is an error, a [returned].
func (s *session) await(ctx context.Context, p *part, again bool) error {
	k := p.get()
	events := s.Queue.Events().Listen(k.Run)
	defer events.Close()
	look := time.NewTicker(s.Times.Look)
	defer look.Stop()
	early := newEarly(s, p)
	defer early.wait()
	stopped := p.cancel
	for {
		ended, err := s.look(ctx, p, again)
		if ended || err != nil {
			return err
		}
		again = false
		early.handIn(ctx)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-stopped:
			stopped = nil // from now on each look stops it
		case <-look.C:
		case <-events.Wake():
			for _, now := range events.Take() {
				p.mu.Lock()
				if now.Trial != p.progress.Trial {
					wake(p.moved)
				}
				p.progress = fleet.Progress{Trial: now.Trial, Of: now.Of, Doing: clip(now.Doing, maxProblem)}
				p.mu.Unlock()
			}
		}
	}
}

// look says whether the part's run has ended.
func (s *session) look(ctx context.Context, p *part, again bool) (ended bool, err error) {
	k := p.get()
	job, err := s.Queue.Get(ctx, k.Run)
	switch {
	case errors.Is(err, store.ErrNotFound):
		if !s.Store.Has(k.Run) {
			if p.stopped() {
				return true, nil
			}
			return false, &returned{"somebody cancelled the run on the box before it began"}
		}
		run, err := s.Store.Run(k.Run)
		return err != nil || run.State != store.StateRunning, nil // handing in says what is wrong with it
	case err != nil:
		return false, err
	}
	switch job.State {
	case store.StateQueued:
		p.say(stateWaiting, "")
	case store.StateRunning:
		p.say(stateRunning, "")
	default: // it has ended, and is listed for the reason
		if s.Store.Has(k.Run) || p.stopped() {
			return true, s.forgetJob(ctx, k.Run)
		}
		if again && k.Again < mostAgain && job.State == store.StateInterrupted {
			if err := p.change(func(k *kept) { k.Again++ }); err != nil {
				return false, err
			}
			return false, errors.Join(s.forgetJob(ctx, k.Run), s.enter(ctx, p))
		}
		if err := s.forgetJob(ctx, k.Run); err != nil {
			return false, err
		}
		return false, &returned{clip(job.Error, maxReason)}
	}
	if p.stopped() {
		if err := s.Queue.Cancel(ctx, k.Run); err != nil && !errors.Is(err, runqueue.ErrEnding) && !errors.Is(err, store.ErrNotFound) {
			return false, err
		}
	}
	return false, nil
}

// forgetJob takes a job that has ended out of the list of the queue.
func (s *session) forgetJob(ctx context.Context, run string) error {
	if err := s.Queue.Cancel(ctx, run); err != nil && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, runqueue.ErrEnding) {
		return err
	}
	return nil
}

// letGo stops the run of a part whose lease is lost, if it goes on, and returns when it has ended; false if the context
// did.
func (s *session) letGo(ctx context.Context, p *part) bool {
	run := p.get().Run
	if run == "" {
		return ctx.Err() == nil
	}
	events := s.Queue.Events().Listen(run)
	defer events.Close()
	look := time.NewTicker(s.Times.Look)
	defer look.Stop()
	for ctx.Err() == nil {
		job, err := s.Queue.Get(ctx, run)
		if errors.Is(err, store.ErrNotFound) || err == nil && job.State != store.StateQueued && job.State != store.StateRunning {
			return true
		}
		if err == nil {
			_ = s.Queue.Cancel(ctx, run) // the next look tells whether it worked
		}
		select {
		case <-ctx.Done():
		case <-events.Wake():
			events.Take()
		case <-look.C:
		}
	}
	return false
}

// giveBack gives a part back to the head.
func (s *session) giveBack(ctx context.Context, p *part, why string) error {
	if p.get().Return == "" {
		if err := p.change(func(k *kept) { k.Return = why }); err != nil {
			// Another process of this box would begin the part, and hear that its lease is lost.
			s.Log.Warn("that a part is given back cannot be noted", "part", p.get().Part, "error", err)
			p.mu.Lock()
			p.kept.Return = why
			p.mu.Unlock()
		}
		s.gaveBack(p.get().Device)
	}
	s.Log.Warn("the box gives a part back", "part", p.get().Part, "why", why)
	p.mu.Lock()
	p.measured = true
	p.mu.Unlock()
	p.say(stateReturning, why)
	return s.repeat(ctx, p, func(token string) error { return s.call.giveBack(ctx, p.get().Part, token, why) })
}

// repeat makes a call about a part until the head has taken it. An answer that is a refusal is no reason to throw
// results away: a person may mend the head.
func (s *session) repeat(ctx context.Context, p *part, call func(token string) error) error {
	var failed retry
	for {
		token := p.token()
		err := call(token)
		s.heard(err)
		if err == nil {
			return nil
		}
		if IsLost(err) && p.token() == token {
			return errLost
		}
		p.mu.Lock()
		p.problem = clip(err.Error(), 2*maxProblem)
		p.mu.Unlock()
		failed.wait(ctx, s.Times, nil)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}
