package link

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"eidetic/internal/lab"
)

// Stall holds everything that is due for a time, once after each start, at a
// moment that is drawn anew: what comes meanwhile is taken in, and leaves late.
// Only the packet back end can; connections that pass the link by are held too.
type Stall struct {
	For  time.Duration `json:"for_ns"`
	From time.Duration `json:"from_ns"` // the moment is drawn between From and To
	To   time.Duration `json:"to_ns"`
}

// Stalled is a stall that was made on purpose: when it began, since the start,
// and how long it was.
type Stalled struct {
	At  time.Duration `json:"at_ns"`
	For time.Duration `json:"for_ns"`
}

// parseStall reads 100ms@200ms-1.5s, or 100ms@1s.
func parseStall(value string) (*Stall, error) {
	length, when, ok := strings.Cut(value, "@")
	if !ok {
		return nil, fmt.Errorf("%q is not a stall such as 100ms@200ms-1.5s (how long, and between which times it begins)", value)
	}
	from, to, ranged := strings.Cut(when, "-")
	if !ranged {
		to = from
	}
	s := &Stall{}
	for _, part := range []struct {
		text string
		into *time.Duration
	}{{length, &s.For}, {from, &s.From}, {to, &s.To}} {
		var err error
		if *part.into, err = duration(part.text, maxDelay); err != nil {
			return nil, err
		}
	}
	if s.To < s.From {
		return nil, fmt.Errorf("%q: the second time is before the first", value)
	}
	return s, nil
}

// stall is when everything is held.
type stall struct{ from, to lab.Time }

// stall draws when this one is, in the turn-th trial.
func (p Profile) stall(since lab.Time, turn uint64) stall {
	if p.Stall == nil || p.Stall.For == 0 {
		return stall{}
	}
	at := p.Stall.From
	if room := int64(p.Stall.To - p.Stall.From); room > 0 {
		at += time.Duration(rand.New(rand.NewPCG(p.Seed^0x7374616c6c, turn)).Int64N(room))
	}
	from := since.Add(at)
	return stall{from, from.Add(p.Stall.For)}
}

func (s stall) holds(now lab.Time) bool { return s.from <= now && now < s.to }

// after is when what is due then can leave.
func (s stall) after(due lab.Time) lab.Time {
	if s.holds(due) {
		return s.to
	}
	return due
}
