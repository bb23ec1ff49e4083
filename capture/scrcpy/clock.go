package scrcpy

import (
	"errors"
	"time"

	"eidetic/internal/lab"
)

const (
	// drift is by how much the phone's clock and the box's may differ in speed: 100 ppm.
	drift = 1e-4
	// enough is of how many pictures, each within pause of the one before, the earliest counts as having come as fast
	// as pictures come.
	enough = 10
	pause  = time.Second
	// longest bounds how late a picture can come: beyond it the phone's clock was set, or the stream has stood still.
	longest = 10 * time.Second
)

// errClock says that time stamps cannot be believed.
var errClock = errors.New("the phone's time stamps jumped by more than 10 s: its clock was set, or the box could not read its pictures for so long") // constant

// clocks maps the phone's clock to the box's: what arrives is older than its arrival by the time that encoding and
// the cable take, and the least of these differences is the one to be taken from all stamps. It lies in [low, high];
// between pictures the clocks drift apart.
type clocks struct {
	low, high time.Duration // arrival less stamp
	last      lab.Time      // arrival of the newest picture
	row       int           // pictures so far without a pause
	begun     bool
}

// add takes the stamp of a picture and its arrival.
func (c *clocks) add(stamp time.Duration, arrived lab.Time) error {
	d := time.Duration(arrived) - stamp
	if !c.begun {
		c.begun, c.low, c.high, c.last, c.row = true, d, d, arrived, 1
		return nil
	}
	if d > c.high+longest || d < c.high-longest {
		return errClock
	}
	since := arrived.Sub(c.last)
	apart := time.Duration(float64(since) * drift)
	c.last = arrived
	if c.row++; since > pause {
		c.row = 1
	}
	c.high = min(d, c.high+apart)
	if c.low = min(c.low-apart, c.high); c.row >= enough {
		c.low = c.high
	}
	return nil
}

// at is when a picture of this stamp would have arrived, had it come as fast as pictures come, and how much earlier
// that may have been.
func (c *clocks) at(stamp time.Duration) (at lab.Time, uncertain time.Duration) {
	return lab.Time(stamp + c.high), c.high - c.low
}

// settle takes what is known for good, when a source begins.
func (c *clocks) settle() { c.low = c.high }
