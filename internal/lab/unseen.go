package lab

import (
	"fmt"
	"time"
)

// Unseen is an interval at whose ends the picture is known, in which something
// was drawn, and in which nobody looked at the screen for longer than usual.
// The change is in it, and pictures may have come and gone in it; nothing is lost
// outside of it.
type Unseen struct {
	From   Time `json:"from_ns"` // the old picture is proven up to here
	To     Time `json:"to_ns"`   // the new picture had come by then
	Missed int  `json:"missed"`  // ticks in between at which the source should have looked and did not
}

// Bound is how well the time of the change is known.
func (u Unseen) Bound() time.Duration { return u.To.Sub(u.From) }

func (u Unseen) String() string {
	return fmt.Sprintf("something was drawn within %.1f ms in which nobody looked (%d ticks missed)", u.Bound().Seconds()*1e3, u.Missed)
}

// WorstUnseen returns the longest interval that reaches into [from, to]; false
// when none does.
func WorstUnseen(list []Unseen, from, to Time) (worst Unseen, ok bool) {
	for _, u := range list {
		if u.To < from || u.From > to {
			continue
		}
		if !ok || u.Bound() > worst.Bound() {
			worst, ok = u, true
		}
	}
	return worst, ok
}
