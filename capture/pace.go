package capture

import (
	"context"
	"time"

	"eidetic/internal/lab"
)

// Pace is an absolute schedule for sources without a clock of their own: tick
// k is due at start + k·Period, whatever happened before. A tick is missed
// only when the next one is already due. The first call starts it.
type Pace struct {
	Period time.Duration
	Clock  lab.Clock
	Wait   func(lab.Time) // until then: SleepUntil

	start lab.Time
	tick  uint64 // the last one taken
	begun bool
}

// mostAsleep is how long nothing wakes who waits for a tick: of a slow rate it would be until long after the end.
const mostAsleep = 100 * time.Millisecond

// Next waits for the next tick and returns its number, from 0.
func (p *Pace) Next(ctx context.Context) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	now := p.Clock()
	if !p.begun {
		p.begun, p.start = true, now
		return 0, nil
	}
	k := max(p.tick+1, uint64(now.Sub(p.start)/p.Period))
	if due := p.start.Add(time.Duration(k) * p.Period); due > now {
		if err := WaitUntil(ctx, now, due, p.Wait); err != nil {
			return 0, err
		}
		// A caller that oversleeps until the next tick is due has missed this one too.
		k = max(k, uint64(p.Clock().Sub(p.start)/p.Period))
	}
	p.tick = k
	return k, ctx.Err()
}

// WaitUntil waits from now until a tick is due, and ends soon after ctx has.
func WaitUntil(ctx context.Context, now, due lab.Time, wait func(lab.Time)) error {
	for at := now.Add(mostAsleep); at < due && ctx.Err() == nil; at = at.Add(mostAsleep) {
		wait(at)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	wait(due)
	return nil
}

// Due is when tick k is due.
func (p *Pace) Due(k uint64) lab.Time { return p.start.Add(time.Duration(k) * p.Period) }
