package experiment

import (
	"time"

	"eidetic/internal/lab"
)

// busyShare is the share of a core that a browser uses, from which on its page is not at
// rest though screen and network are still: it computes, and may ask for more when it
// has done so. A page that waits uses some hundredths, one that works a whole core, or as
// much of one as others leave it.
const busyShare = 0.25

// leastLook is the shortest time over which a share is taken: processor time is counted
// in hundredths of a second.
const leastLook = 100 * time.Millisecond

// Rest judges whether a page whose screen and network are still is at rest.
type Rest struct {
	// Usage is the processor time by who took it; nil when it is not known.
	Usage func() map[string]time.Duration

	since lab.Time // when used was read; 0 for not yet
	used  time.Duration
}

// Moved says that screen or network were not still for long enough to ask for the
// processor time. Nothing is asked of the machine then: it would disturb what is measured.
func (r *Rest) Moved() { r.since = 0 }

// Begin reads the processor time when half of the stillness that a plan asks for is over.
func (r *Rest) Begin(now lab.Time) {
	if r.Usage == nil || r.since != 0 {
		return
	}
	r.since, r.used = now, r.Usage()["browser"]
}

// IsBusy says whether the browser has worked since Begin, and begins anew if it has.
func (r *Rest) IsBusy(now lab.Time) bool {
	if r.Usage == nil || r.since == 0 {
		return false
	}
	if now.Sub(r.since) < leastLook {
		return true // not known yet
	}
	used := r.Usage()["browser"]
	if float64(used-r.used) < busyShare*float64(now.Sub(r.since)) {
		return false
	}
	r.since, r.used = now, used
	return true
}
