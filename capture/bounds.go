package capture

import (
	"time"

	"eidetic/internal/lab"
)

// bounds finds out how well the time of each change is known.
type bounds struct {
	period time.Duration
	have   bool
	before lab.FrameInfo

	missedProven, missedDrawn int
	worst                     time.Duration
	list                      []lab.Unseen
	untold                    int // beyond maxEvents

	// How often each uncertainty came, in steps: for its median.
	frames int
	counts [512]int
}

// step is how finely the median of the uncertainty is known.
const step = 250 * time.Microsecond

// add takes the next frame, in the order of the recording. drawn is false for a frame
// that the source proved to be a repeat. The result is true for a change that is
// listed, because its time is known worse than normal by half a period or more.
func (b *bounds) add(f lab.FrameInfo, drawn bool) (late lab.Unseen, ok bool) {
	before, have := b.before, b.have
	b.before, b.have = f, true
	b.before.Changed = nil // its memory is used again
	b.frames++
	b.counts[min(int(f.Uncertainty/step), len(b.counts)-1)]++
	switch {
	case drawn:
		b.missedDrawn += f.Missed
	case f.Flags&lab.FrameProven != 0:
		b.missedProven += f.Missed + 1
	default:
		b.missedProven += f.Missed
	}
	if !drawn || !have {
		return late, false
	}
	// The frame before shows the screen at an instant after its time less its uncertainty.
	late = lab.Unseen{From: before.Time.Add(-before.Uncertainty), To: f.Time, Missed: f.Missed}
	b.worst = max(b.worst, late.Bound())
	// Only looks are listed: for other sources, gaps and irregular timestamps say it.
	if f.Flags&lab.FrameLook == 0 || late.Bound() < b.normal()+b.period/2 {
		return late, false
	}
	if len(b.list) == maxEvents {
		b.untold++
		return late, false
	}
	b.list = append(b.list, late)
	return late, true
}

// normal is a period and the median of the uncertainty so far.
func (b *bounds) normal() time.Duration {
	seen := 0
	for i, n := range b.counts {
		if seen += n; 2*seen >= b.frames {
			return b.period + time.Duration(i+1)*step
		}
	}
	return b.period
}

// fill completes the statistics.
func (b *bounds) fill(st *Stats) {
	st.MissedProven, st.MissedDrawn, st.Unseen = b.missedProven, b.missedDrawn, b.list
	st.NormalBound, st.WorstBound = b.normal().Seconds()*1e3, b.worst.Seconds()*1e3
}
