package experiment

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"eidetic/internal/lab"
)

// Takes is the most tries for one slot of the plan, and for one recording. A trial is repeated at once and for the
// same arm, without regard to its values, so the resulting order is one that could have been drawn too.
const Takes = 3

// SpoiltError says what spoilt a recording, of which another try may succeed.
type SpoiltError struct{ error }

func (e *SpoiltError) Unwrap() error { return e.error }

// Record carries out the trial that records its page, into dir. Of its pictures it needs those from its start until the
// page is at rest, or the journey at its end: they say when that is. So a screen that is interrupted in between spoils
// it, as does a device that ends or loses its controls: then the error is a *SpoiltError. What is interrupted before
// the start is waited for, and afterwards it does not matter.
func (r *Runner) Record(ctx context.Context, p Plan, dir string) (*lab.Trial, error) {
	p.Steps, p.recording = lab.StepsOf(p.Steps, 0), true
	t, broken, err := r.attempt(ctx, p, 0, dir)
	if err == nil && broken.isTemporary() && !cameToEnd(t) {
		err = &SpoiltError{broken}
	}
	return t, err
}

// cameToEnd says whether a trial's load or journey ended before something broke.
func cameToEnd(t *lab.Trial) bool {
	return slices.ContainsFunc(t.Events, func(e lab.Event) bool { return e.Name == "end" })
}

// listenOn goes on recording what a page still asks for after its load or journey has come to its end, until the network
// has been silent for as long as patience waits in a replay, and for no longer than that if it never is. What belongs to
// the page may come late on a busy machine, above all what a service worker loads once the browser has started it; and a
// replay whose end is seen later than the recording's gets further. Pictures do not matter any more.
func (r *Runner) listenOn(ctx context.Context, still time.Duration, session Session) error {
	begun, beat := r.Clock(), time.NewTicker(poll)
	defer beat.Stop()
	for {
		now, traffic := r.Clock(), session.Traffic()
		silence := lateSilence(still, traffic)
		if now.Sub(traffic.LastActivity) >= silence || now.Sub(begun) >= silence {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-beat.C:
		}
	}
}

// lateSilence is how long the network must be silent until a page asks for nothing late: a service worker loads what it
// keeps once the browser has started it.
func lateSilence(still time.Duration, t Traffic) time.Duration {
	if t.Workers > 0 {
		return max(2*still, unaskedWait)
	}
	return 2 * still
}

// AwaitKept waits until a page that nobody films has loaded all that its browser is to keep for later loads. A page that
// never rests for as long as that, such as one that polls, has done so at the limit if it has rested at all.
func AwaitKept(ctx context.Context, life Life, session Session, rest Rest, clock lab.Clock, still, limit time.Duration) error {
	deadline, beat := clock().Add(limit), time.NewTicker(poll)
	defer beat.Stop()
	for hasRested := false; ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-life.Done():
			return life.Err()
		case <-beat.C:
		}
		if err := Crash(life); err != nil {
			return err
		}
		now, t := clock(), session.Traffic()
		silent := now.Sub(t.LastActivity)
		if t.Requests == 0 || t.InFlight > 0 {
			silent = 0
		}
		hasRested = hasRested || silent >= still
		switch {
		case now > deadline && hasRested:
			return nil
		case now > deadline:
			return fmt.Errorf("the page did not come to rest within %v", limit)
		case silent < still/2:
			rest.Moved()
		case silent < still:
			rest.Begin(now)
		case rest.IsBusy(now):
		case silent < max(patience(still, t), lateSilence(still, t)):
			rest.Again(now)
		default:
			return nil
		}
	}
}

// breaks are the interruptions of a source.
type breaks struct {
	most  int      // that spoil nothing
	count int      // noted so far
	since lab.Time // when the last one was noted
}

// newBreaks bears none, and of a recording each before its start.
func newBreaks(p Plan) *breaks {
	if p.recording {
		return &breaks{most: math.MaxInt}
	}
	return &breaks{}
}

// stillFor is how long the screen is known to have been still, without what was not seen.
func (b *breaks) stillFor(film Film, s FilmStatus, now lab.Time) time.Duration {
	if s.Interruptions > b.count {
		b.count, b.since = s.Interruptions, now
	}
	still := stillFor(film, s)
	if b.count > 0 {
		still = min(still, s.LastFrame.Sub(b.since))
	}
	return still
}

// begin says that from now on each interruption spoils the trial.
func (b *breaks) begin() { b.most = b.count }
