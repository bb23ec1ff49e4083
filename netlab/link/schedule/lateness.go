package schedule

import (
	"sort"
	"time"

	"eidetic/internal/lab"
)

// Lateness bounds by how much a link's late departures can have delayed later
// events. The zero value is ready.
//
// A packet that leaves late delays what it causes by at most its lateness, and
// lateness adds up only along a chain of causes. The packets of such a chain
// alternate between the directions, since the device sends because of what it
// received and the other end likewise, and each packet arrives at the link after
// the one before has left it. Packets that were on the link at the same time
// cannot have caused one another, so one stall that a hundred packets meet counts
// once. The bound is therefore the largest sum of lateness over packets of
// alternating directions whose stays on the link do not overlap (weighted
// interval scheduling); every chain of causes is among these.
//
// The bound leaves out what a delay triggers beyond itself: a needless
// retransmission, or two events in the other order. docs/network.md has
// measurements of that.
type Lateness struct {
	ending [2][]lab.Late // the largest sums of chains that end with a packet up, and down; time and sum only grow
}

const (
	// usual is how late a thread wakes up in any case. Every packet of every
	// trial has it, as if the link's delay were a little longer, so it is no
	// difference between trials.
	usual = 100 * time.Microsecond
	// grain is the smallest step that is kept; a smaller one is left out of the sum.
	grain = time.Microsecond
	// maxChain bounds the steps; beyond it the smaller half is merged away.
	maxChain = 1 << 14
	// maxLate is how many steps Report returns.
	maxLate = 256
)

// Add counts a packet that arrived, and left late by the given duration. Packets
// are added in the order in which they left.
func (l *Lateness) Add(down bool, arrived, left lab.Time, late time.Duration) {
	if late -= usual; late <= 0 {
		return
	}
	same, other := 0, 1
	if down {
		same, other = 1, 0
	}
	sum := lab.LateAt(l.ending[other], arrived) + late
	l.ending[same] = appendStep(l.ending[same], left, sum)
	if len(l.ending[same]) > maxChain {
		l.ending[same] = largestSteps(l.ending[same], maxChain/2)
	}
}

// appendStep appends a step when the sum has grown by at least grain.
func appendStep(steps []lab.Late, at lab.Time, sum time.Duration) []lab.Late {
	n := len(steps)
	switch {
	case n == 0:
		return append(steps, lab.Late{At: at, Sum: sum})
	case sum-steps[n-1].Sum < grain:
		return steps
	case at <= steps[n-1].At:
		steps[n-1].Sum = sum
		return steps
	}
	return append(steps, lab.Late{At: at, Sum: sum})
}

// Report returns the sum over time, in at most maxLate steps.
func (l *Lateness) Report() []lab.Late {
	var all []lab.Late
	up, down := l.ending[0], l.ending[1]
	for len(up)+len(down) > 0 {
		next := &up
		if len(up) == 0 || len(down) > 0 && down[0].At < up[0].At {
			next = &down
		}
		all = appendStep(all, (*next)[0].At, (*next)[0].Sum)
		*next = (*next)[1:]
	}
	return largestSteps(all, maxLate)
}

// largestSteps keeps at most most steps, those with the largest rises. A step
// that is left out is added to the step before it, so that the sums stay bounds.
func largestSteps(steps []lab.Late, most int) []lab.Late {
	if len(steps) <= most {
		return append([]lab.Late(nil), steps...)
	}
	rises := make([]time.Duration, 0, len(steps))
	for i := 1; i < len(steps); i++ {
		rises = append(rises, steps[i].Sum-steps[i-1].Sum)
	}
	sort.Slice(rises, func(i, j int) bool { return rises[i] > rises[j] })
	least := rises[most-2] // the first step is kept in any case
	out := steps[:1:1]
	for i := 1; i < len(steps); i++ {
		if rise := steps[i].Sum - steps[i-1].Sum; rise >= least && len(out) < most {
			out = append(out, steps[i])
			continue
		}
		out[len(out)-1].Sum = steps[i].Sum
	}
	return out
}
