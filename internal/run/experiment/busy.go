package experiment

import (
	"time"

	"eidetic/internal/lab"
)

// busyShare is the share of the time for which the main thread of a browser's process runs, or
// waits for a processor, from which on its page is not at rest though screen and network are
// still: it computes, and may ask for more when it has done so. The main thread of
// a page that waits wants a processor for some hundredths of the time, of one that computes all the time.
const busyShare = 0.5

// leastLook is the shortest time over which a share is taken: the kernel counts a wait when it is over,
// and on a machine with much to do it may take a tenth of a second.
const leastLook = 500 * time.Millisecond

// Rest judges whether a page whose screen and network are still is at rest.
type Rest struct {
	// MainThreads tells of each process of the browser for how long its main thread has run or
	// waited for a processor; nil when that is not known.
	MainThreads func() map[int]time.Duration

	since lab.Time // of the last look; 0 for none
	seen  map[int]time.Duration
}

// Moved says that screen or network were not still for long enough to look at the
// processes. Nothing is asked of the machine then: it would disturb what is measured.
func (r *Rest) Moved() { r.since = 0 }

// Begin looks at the processes when half of the stillness that a plan asks for is over.
func (r *Rest) Begin(now lab.Time) {
	if r.MainThreads != nil && r.since == 0 {
		r.since, r.seen = now, r.MainThreads()
	}
}

// Again begins a new look.
func (r *Rest) Again(now lab.Time) {
	r.Moved()
	r.Begin(now)
}

// IsBusy says whether a page has computed since the last look, and looks again if it has.
func (r *Rest) IsBusy(now lab.Time) bool {
	if r.MainThreads == nil {
		return false
	}
	r.Begin(now) // the network may have come to rest at once: by a request that turned out to be a poll
	elapsed := now.Sub(r.since)
	if elapsed < leastLook {
		return true // not known yet
	}
	threads := r.MainThreads()
	for pid, wanted := range threads {
		before, known := r.seen[pid]
		if known && float64(wanted-before) >= busyShare*float64(elapsed) {
			r.since, r.seen = now, threads
			return true
		}
	}
	return false
}
