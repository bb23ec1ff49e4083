package experiment

import (
	"time"

	"eidetic/internal/lab"
)

// busyShare is the share of a core that a browser uses, from which on its page is not at
// rest though screen and network are still: it computes, and may ask for more when it
// has done so. A page that waits uses some hundredths, one that works a whole core.
const busyShare = 0.5

// rest judges whether a page whose screen and network are still is at rest.
type rest struct {
	usage func() map[string]time.Duration // by who took it; nil when it is not known
	since lab.Time                        // when used was read; 0 for not yet
	used  time.Duration
}

// moved says that screen or network were not still for long enough to ask for the
// processor time. Nothing is asked of the machine then: it would disturb what is measured.
func (r *rest) moved() { r.since = 0 }

// begin reads the processor time when half of the stillness that a plan asks for is over.
func (r *rest) begin(now lab.Time) {
	if r.usage == nil || r.since != 0 {
		return
	}
	r.since, r.used = now, r.usage()["browser"]
}

// isBusy says whether the browser has worked since begin, and begins anew if it has.
func (r *rest) isBusy(now lab.Time) bool {
	if r.usage == nil || r.since == 0 || now <= r.since {
		return false
	}
	used := r.usage()["browser"]
	if float64(used-r.used) < busyShare*float64(now.Sub(r.since)) {
		return false
	}
	r.since, r.used = now, used
	return true
}
