package experiment

import (
	"time"

	"eidetic/internal/lab"
)

// Wait is a request whose answer has not ended.
type Wait struct {
	Request int      // its number
	Heard   lab.Time // the last byte from the origin, or the request's arrival
}

// polls notices when a page that is being recorded came to rest but for requests that wait. It takes
// seconds until such a request is known to be a long poll; a replay knows it from the recording, and ends
// when the page rests. What the page asks for meanwhile is not to be expected of a replay.
type polls struct {
	atRest Rest
	since  lab.Time // when the page came to rest; 0 if it did not
	waits  []Wait   // what waited then
}

// look is called at each look at the page. still is for how long the screen has not changed and no
// request has begun or ended; enough is the plan's stillness.
func (c *polls) look(now lab.Time, still, enough time.Duration, waits []Wait) {
	if c.since != 0 && isAnswered(c.waits, waits) {
		c.since = 0 // it was a slow answer, and no poll
	}
	if c.since != 0 || len(waits) == 0 {
		return
	}
	for _, w := range waits {
		still = min(still, now.Sub(w.Heard))
	}
	switch {
	case still < enough/2:
		c.atRest.Moved()
	case still < enough:
		c.atRest.Begin(now)
	case !c.atRest.IsBusy(now):
		c.since, c.waits = now, waits
	}
}

// isAnswered tells that an origin has sent something for one of the requests that waited.
func isAnswered(before, now []Wait) bool {
	heard := map[int]lab.Time{}
	for _, w := range now {
		heard[w.Request] = w.Heard
	}
	for _, w := range before {
		if at, waits := heard[w.Request]; !waits || at != w.Heard {
			return true
		}
	}
	return false
}

// unaskedWait is how long the network must be silent before a page that has asked for too little
// of what was recorded of it is taken for at rest: such a trial is invalid, so that time is all that is lost.
const unaskedWait = 10 * time.Second

// patience is how long the network must be silent until nothing more is expected of it.
func patience(still time.Duration, t Traffic) time.Duration {
	switch {
	case t.Asked >= t.Recorded:
		return still
	case isShort(t.Asked, t.Recorded):
		return max(still, unaskedWait)
	}
	return 2 * still // the rest may be an advertisement that is not shown this time
}

// isShort tells that a page has asked for so little of what was recorded of it that it is not that page.
func isShort(asked, recorded int) bool { return float64(asked) < leastAsked*float64(recorded) }
