package packet

import (
	"math"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/link"
)

// queue holds the frames that wait for a bottleneck, first in, first out.
type queue struct {
	limit link.Queue
	list  []*frame
	head  int
	bytes int
	codel codel
}

func (q *queue) len() int { return len(q.list) - q.head }

// isFull reports whether a frame of n bytes does not fit.
func (q *queue) isFull(n int, rate link.Rate) bool {
	l := q.limit
	return l.Packets > 0 && q.len() >= l.Packets ||
		l.Bytes > 0 && q.bytes+n > l.Bytes ||
		l.Time > 0 && rate > 0 && rate.Transmit(q.bytes+n) > l.Time
}

func (q *queue) push(f *frame) {
	if q.head > 1024 && q.head > len(q.list)/2 { // free the front of the slice
		n := copy(q.list, q.list[q.head:])
		clear(q.list[n:])
		q.list, q.head = q.list[:n], 0
	}
	q.list = append(q.list, f)
	q.bytes += f.cost()
}

func (q *queue) peek() *frame { return q.list[q.head] }

func (q *queue) pop() *frame {
	f := q.list[q.head]
	q.list[q.head] = nil
	q.head++
	q.bytes -= f.cost()
	if q.head == len(q.list) {
		q.list, q.head = q.list[:0], 0
	}
	return f
}

const (
	codelTarget   = 5 * time.Millisecond
	codelInterval = 100 * time.Millisecond
)

// codel is the state of RFC 8289, section 5.
type codel struct {
	firstAbove lab.Time // 0: the wait is not above the target
	dropNext   lab.Time
	count      int
	last       int
	dropping   bool
}

// take removes the next frame at the given instant. With CoDel it first passes
// the frames that have waited too long to drop. It returns nil for an empty queue.
func (q *queue) take(at lab.Time, drop func(*frame)) *frame {
	if q.limit.Discipline != link.CoDel {
		if q.len() == 0 {
			return nil
		}
		return q.pop()
	}
	c := &q.codel
	f, ok := q.codelPop(at)
	if c.dropping {
		if !ok {
			c.dropping = false
		}
		for f != nil && c.dropping && at >= c.dropNext {
			drop(f)
			c.count++
			if f, ok = q.codelPop(at); !ok {
				c.dropping = false
			} else {
				c.dropNext = c.control(c.dropNext)
			}
		}
	} else if f != nil && ok {
		drop(f)
		f, _ = q.codelPop(at)
		c.dropping = true
		delta := c.count - c.last
		c.count = 1
		if delta > 1 && at.Sub(c.dropNext) < 16*codelInterval {
			c.count = delta
		}
		c.dropNext = c.control(at)
		c.last = c.count
	}
	return f
}

// control returns when to drop next, after a drop at t.
func (c *codel) control(t lab.Time) lab.Time {
	return t.Add(time.Duration(float64(codelInterval) / math.Sqrt(float64(c.count))))
}

// codelPop returns the next frame and whether CoDel may drop it.
func (q *queue) codelPop(at lab.Time) (f *frame, mayDrop bool) {
	c := &q.codel
	if q.len() == 0 {
		c.firstAbove = 0
		return nil, false
	}
	f = q.pop()
	if at.Sub(f.arrived) < codelTarget || q.bytes <= link.DefaultMTU {
		c.firstAbove = 0
		return f, false
	}
	if c.firstAbove == 0 {
		c.firstAbove = at.Add(codelInterval)
		return f, false
	}
	return f, at >= c.firstAbove
}
