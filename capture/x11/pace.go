package x11

import (
	"context"
	"time"

	"eidetic/internal/lab"
)

// pace is an absolute schedule: tick k is due at start + k·period, whatever
// happened before. A tick is missed only when the next one is already due.
type pace struct {
	start  lab.Time
	period time.Duration
	clock  lab.Clock
	wait   func(lab.Time)
	tick   uint64 // the last one taken
	begun  bool
}

// next waits for the next tick and returns its number, from 0.
func (p *pace) next(ctx context.Context) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	now := p.clock()
	if !p.begun {
		p.begun, p.start = true, now
		return 0, nil
	}
	k := max(p.tick+1, uint64(now.Sub(p.start)/p.period))
	if due := p.start.Add(time.Duration(k) * p.period); due > now {
		p.wait(due)
	}
	p.tick = k
	return k, ctx.Err()
}
