package packet

import (
	"math/rand/v2"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/link"
)

// stall is the time in which no packet leaves; the zero value is none.
type stall struct{ from, to lab.Time }

// drawStall draws when the profile's stall happens in the turn-th trial.
func drawStall(p link.Profile, since lab.Time, turn uint64) stall {
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

// holds reports whether the stall is under way.
func (s stall) holds(now lab.Time) bool { return s.from <= now && now < s.to }

// after returns when a packet that is due at the given time can leave.
func (s stall) after(due lab.Time) lab.Time {
	if s.holds(due) {
		return s.to
	}
	return due
}
