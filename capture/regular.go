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
}

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

// forget drops the last frame: after an interruption no particular time is expected.
func (c *regular) forget() { c.have = false }
