package experiment

import (
	"time"

	"eidetic/internal/lab"
)

// busyShare is the share of a core above which a browser counts as busy: its page may
// still compute and request more, although screen and network are still. A waiting page
// uses a few hundredths of a core, a computing one a whole core.
const busyShare = 0.5

// rest decides whether a page whose screen and network are still is at rest.
type rest struct {
	usage func() map[string]time.Duration // by consumer; nil if unknown
	since lab.Time                        // when used was read; 0 if it was not
	used  time.Duration
}

// moved records that screen or network were not still for long enough. Processor time is
// not read then, since reading it would disturb the measurement.
func (r *rest) moved() { r.since = 0 }

// begin reads the processor time when half of the plan's stillness has passed.
func (r *rest) begin(now lab.Time) {
	if r.usage == nil || r.since != 0 {
		return
	}
	r.since, r.used = now, r.usage()["browser"]
}

// isBusy says whether the browser has computed since begin, and if so begins again.
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
