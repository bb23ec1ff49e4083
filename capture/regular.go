package capture

import (
	"fmt"
	"time"

	"eidetic/internal/lab"
)

// regular checks that the times of a source's frames fit their sequence
// numbers: a driver that numbers frames without a gap, but stamps one of them
// two periods after the one before, did not take it when it says.
type regular struct {
	period time.Duration // nominal
	have   bool
	last   lab.FrameInfo

	fits  int           // frames so far whose interval is that of the nominal rate
	apart int           // frames in a row with a longer interval; shorter ones count below 0
	took  time.Duration // from the first to the last of these
	steps float64       // in their numbers
}

// otherRate is after how many frames in a row with another interval, by a fifth, the source's rate has changed.
const otherRate = 30

// drift is by how much a source's true rate may differ from the nominal one
// without being irregular: 59.94 is reported as 60.
const drift = 0.01

// look takes the next frame and says what is wrong with its time, "" if nothing is.
func (c *regular) look(f lab.FrameInfo) string {
	before, have := c.last, c.have
	c.last, c.have = f, true
	c.last.Changed = nil // its memory is the source's
	// A source that looks by itself stamps its own look: no driver can get that wrong.
	if !have || f.Flags&lab.FrameLook != 0 {
		return ""
	}
	c.follow(before, f)
	if f.Seq <= before.Seq {
		return fmt.Sprintf("frame number %d follows %d", f.Seq, before.Seq)
	}
	took := f.Time.Sub(before.Time)
	if took <= 0 {
		return fmt.Sprintf("frame number %d is stamped %v before the one before it", f.Seq, -took)
	}
	steps := float64(f.Seq - before.Seq)
	due := time.Duration(steps * float64(c.period))
	// Frames are told apart by half a period. A stamp's stated uncertainty is allowed on top.
	slack := c.period/2 + time.Duration(drift*float64(due))
	if took-f.Uncertainty > due+slack || took+before.Uncertainty < due-slack {
		return fmt.Sprintf("frame number %d is stamped %.2f ms after number %d, %.2f are due", f.Seq, took.Seconds()*1e3, before.Seq,
			due.Seconds()*1e3)
	}
	return ""
}

// follow counts the frames whose interval is another one.
func (c *regular) follow(before, f lab.FrameInfo) {
	steps, took := float64(f.Seq)-float64(before.Seq), f.Time.Sub(before.Time)
	due := steps * float64(c.period)
	sign := 0
	switch {
	case steps <= 0 || took <= 0:
	case float64(took-f.Uncertainty) > 1.2*due:
		sign = 1
	case float64(took+before.Uncertainty) < 0.8*due:
		sign = -1
	default:
		c.fits++
	}
	if sign == 0 || sign*c.apart < 0 {
		c.apart, c.took, c.steps = 0, 0, 0
	}
	if sign != 0 {
		c.apart, c.took, c.steps = c.apart+sign, c.took+took, c.steps+steps
	}
}

// changed returns the interval that the source has instead of the nominal one; 0 while it has that one, and if it never
// had it: drivers that are wrong of their rate are common.
func (c *regular) changed() time.Duration {
	if c.fits < otherRate || max(c.apart, -c.apart) < otherRate {
		return 0
	}
	return time.Duration(float64(c.took) / c.steps)
}

// forget drops the last frame: after an interruption no particular time is expected.
func (c *regular) forget() { *c = regular{period: c.period} }
