package lab

import (
	"fmt"
	"time"
)

// Unseen is an unusually long interval between two looks at the screen during which the
// screen changed. The picture is known at both ends; other pictures may have come and
// gone in between.
type Unseen struct {
	From   Time `json:"from_ns"` // the old picture is known to have lasted until here
	To     Time `json:"to_ns"`   // the new picture was there by then
	Missed int  `json:"missed"`  // scheduled looks in between that did not happen
}

// Bound is the uncertainty of the time of the change.
func (u Unseen) Bound() time.Duration { return u.To.Sub(u.From) }

func (u Unseen) String() string {
	return fmt.Sprintf("something was drawn within %.1f ms in which nobody looked (%d ticks missed)", u.Bound().Seconds()*1e3, u.Missed)
}

// WorstUnseen returns the longest interval that overlaps [from, to], and whether there is
// one.
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
