package link

import (
	"sort"
	"time"

	"eidetic/internal/lab"
)

// chain bounds by how much a link's late departures can have moved what came
// after them.
//
// A packet that leaves late moves what it causes by no more than its lateness, and
// lateness adds up only along a chain of causes. Its packets go one way and the
// other by turns, since what the device sends comes of what it got and the other way round,
// and each comes to the link after the one before has left it: packets that were on
// their way at the same time cannot have caused one another, so what one
// stall did to a hundred of them counts once. The bound is therefore the largest sum of
// lateness over packets of alternating directions whose stays on the link do not
// overlap (weighted interval scheduling); real chains are among these.
//
// What it leaves out is what a delay sets off beyond itself: a retransmission
// that was not needed, an order of events that turns round. What that comes to
// is measured (docs/network.md).
type chain struct {
	ending [2][]lab.Late // the best chains that end with a packet up, and down; both fields only grow
}

const (
	// usual is how late a thread gets up in any case: it is so in every packet of every
	// trial, as if the link's delay were a little longer, and is no difference between them.
	usual = 100 * time.Microsecond
	// grain is the least step that is kept; less than it is left out of the sum.
	grain = time.Microsecond
	// maxChain of the steps are kept; beyond, the smaller half is left out.
	maxChain = 1 << 14
	// maxLate is how many steps a report has.
	maxLate = 256
)

// add takes a packet that came, and left that much too late. Packets are added
// in the order in which they left.
func (c *chain) add(down bool, came, left lab.Time, late time.Duration) {
	if late -= usual; late <= 0 {
		return
	}
	mine, other := 0, 1
	if down {
		mine, other = 1, 0
	}
	sum := lab.LateAt(c.ending[other], came) + late
	c.ending[mine] = raise(c.ending[mine], left, sum)
	if len(c.ending[mine]) > maxChain {
		c.ending[mine] = thin(c.ending[mine], maxChain/2)
	}
}

// raise appends a step, if it is one.
func raise(steps []lab.Late, at lab.Time, sum time.Duration) []lab.Late {
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

// report returns at most maxLate steps.
func (c *chain) report() []lab.Late {
	var all []lab.Late
	up, down := c.ending[0], c.ending[1]
	for len(up)+len(down) > 0 {
		next := &up
		if len(up) == 0 || len(down) > 0 && down[0].At < up[0].At {
			next = &down
		}
		all = raise(all, (*next)[0].At, (*next)[0].Sum)
		*next = (*next)[1:]
	}
	return thin(all, maxLate)
}

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
