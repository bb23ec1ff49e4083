package link

import (
	"sort"
	"time"

	"eidetic/internal/lab"
)

// chain bounds by how much a link's late departures can have moved what came
// after them.
//
// A packet that leaves late moves what it causes by no more than its lateness,
// and lateness adds up only along a chain of causes: the next packet of a chain
// comes to the link after the one before has left it. Packets that were on their
// way at the same time cannot have caused one another, so what one stall did to
// a hundred of them counts once. The bound is therefore the largest sum of
// lateness over packets whose stays on the link do not overlap (weighted
// interval scheduling); real chains are among these, and none has more.
//
// What it leaves out is what a delay sets off beyond itself: a retransmission
// that was not needed, an order of events that turns round. What that comes to
// is measured (docs/network.md).
type chain struct {
	steps []lab.Late // both fields only grow
}

const (
	// grain is the least step that is kept; less than it is left out of the sum.
	grain = time.Microsecond
	// maxSteps of a chain are kept; beyond, every second one is left out.
	maxChain = 1 << 14
	// maxLate is how many steps a report has.
	maxLate = 256
)

// add takes a packet that came, and left that much too late. Packets are added
// in the order in which they left.
func (c *chain) add(came, left lab.Time, late time.Duration) {
	if late <= 0 {
		return
	}
	sum := lab.LateAt(c.steps, came) + late
	last := lab.Late{}
	if n := len(c.steps); n > 0 {
		last = c.steps[n-1]
	}
	if sum-last.Sum < grain {
		return
	}
	if len(c.steps) > 0 && left <= last.At {
		c.steps[len(c.steps)-1].Sum = sum
		return
	}
	if c.steps = append(c.steps, lab.Late{At: left, Sum: sum}); len(c.steps) > maxChain {
		c.steps = thin(c.steps, maxChain/2)
	}
}

// report returns at most maxLate steps.
func (c *chain) report() []lab.Late { return thin(c.steps, maxLate) }

// thin keeps at most so many steps, the largest rises. What is left out counts as
// if it had come with the step before it: the sums stay bounds.
func thin(steps []lab.Late, most int) []lab.Late {
	if len(steps) <= most {
		return append([]lab.Late(nil), steps...)
	}
	rises := make([]time.Duration, 0, len(steps))
	for i := 1; i < len(steps); i++ {
		rises = append(rises, steps[i].Sum-steps[i-1].Sum)
	}
	sort.Slice(rises, func(i, j int) bool { return rises[i] > rises[j] })
	least := rises[most-2] // the first is kept in any case
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
