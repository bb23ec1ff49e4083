package head

import (
	"context"
	"slices"
	"sync"
	"time"

	"eidetic/internal/fleet"
	"eidetic/internal/fleet/ledger"
)

const (
	// glance is how often a head looks for parts that it was not asked for: another head was, or a lease ran out.
	glance = 2 * time.Second
	// woken is how many boxes are woken for one part: one of them may have gone.
	woken = 2
)

// waiters are claims that found nothing. A part that is added wakes a few boxes that could carry it out, and nobody
// else: a look at the ledger by each box that waits, for each part, is what a head of hundreds of idle boxes would do
// all the time.
type waiters struct {
	mu  sync.Mutex
	all map[*waiter]struct{}
	// left is the first part of each queue for which nobody waited at the last glance.
	left map[string]int64
}

type waiter struct {
	box  ledger.Box
	free []string
	rung chan struct{} // capacity 1
}

func newWaiters() *waiters { return &waiters{all: map[*waiter]struct{}{}, left: map[string]int64{}} }

// add has a claim wait, until leave.
func (s *waiters) add(box ledger.Box, free []string) *waiter {
	w := &waiter{box, free, make(chan struct{}, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[w] = struct{}{}
	return w
}

func (s *waiters) leave(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, w)
}

func (w *waiter) fits(need fleet.Need) bool {
	if !need.Reference && w.box.IsReserved() {
		return false
	}
	return slices.ContainsFunc(need.Fits(w.box.Name, w.box.Offer), func(d string) bool { return slices.Contains(w.free, d) })
}

func (w *waiter) ring() (was bool) {
	select {
	case w.rung <- struct{}{}:
		return true
	default:
		return false // it is about to look
	}
}

// wake wakes claims that could get a part with a need, and says how many. Go goes through a map in random order, so it
// is not always the same boxes' turn.
func (s *waiters) wake(need fleet.Need) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.all {
		if w.fits(need) && w.ring() {
			if n++; n == woken {
				break
			}
		}
	}
	return n
}

// wakeBox wakes the claims of one box: a device of it is free, or people have changed what it may do.
func (s *waiters) wakeBox(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.all {
		if w.box.ID == id {
			w.ring()
		}
	}
}

// glance wakes claims for parts that wait. A queue is gone through again only if its first part is another one, or
// somebody was woken for it, and did not take it.
func (h *Head) glance(ctx context.Context) error {
	queues, err := h.ledger.Waiting(ctx)
	if err != nil {
		return err
	}
	left := make(map[string]int64, len(queues))
	for _, q := range queues {
		if h.waiters.left[q.Name] == q.First || h.waiters.wake(q.Need) == 0 {
			left[q.Name] = q.First
		}
	}
	h.waiters.left = left
	return nil
}
