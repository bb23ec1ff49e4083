package head

import (
	"net/http"
	"sync"
	"time"

	"eidetic/internal/fleet"
	"eidetic/internal/lab"
)

// refusalsPerMinute bounds what the log says of those who may not join: strangers may ask as often as they like.
const refusalsPerMinute = 30

// refusals count those in the log of the minute that began last, and those that were left out since the last one there.
type refusals struct {
	mu              sync.Mutex
	minute          time.Time
	logged, leftOut int
}

// take says whether one more is logged, and how many were left out before it.
func (c *refusals) take(now time.Time) (leftOut int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := now.Sub(c.minute); d > time.Minute || d < 0 {
		c.minute, c.logged = now, 0
	}
	if c.logged >= refusalsPerMinute {
		c.leftOut++
		return 0, false
	}
	c.logged++
	leftOut, c.leftOut = c.leftOut, 0
	return leftOut, true
}

// refused logs why a box may not join.
func (h *Head) refused(r *http.Request, name string, why error) {
	if leftOut, ok := h.refusals.take(h.Now()); ok {
		h.Log.Warn("a box may not join", "name", lab.Clip(name, fleet.MaxNameBytes), "from", r.RemoteAddr, "why", lab.Clip(why.Error(), mostWhy),
			"left_out_before", leftOut)
	}
}
