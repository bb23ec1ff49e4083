package experiment

import (
	"context"
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
		silence := 2 * still
		if traffic.Workers > 0 {
			silence = max(silence, unaskedWait)
		}
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
