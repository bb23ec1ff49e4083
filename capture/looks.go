package capture

import (
	"context"

	"eidetic/internal/lab"
)

// Looks turns the looks that a source takes at its screen into frames, for screens
// that tell whether something was drawn since the look before. A look that finds
// nothing drawn proves the picture of the ticks missed since then: they become frames too.
//
// The ticks between two looks were missed because this machine was held up. If
// nothing was drawn between the looks, the picture at each of them is known: it
// is the one before. They are delivered as repeats with the times at which they
// were due. If something was drawn, no picture of these ticks is known, and the next
// frame says how many there were (FrameInfo.Missed).
//
// Frames are numbered one by one, so no step in the numbers stands for a missed tick.
type Looks struct {
	Pace Pace

	tick   uint64 // of this look
	begun  bool
	before uint64 // tick of the look of the newest frame
	seq    uint64 // of the next frame
	last   lab.Time

	// A look that proved ticks waits until they have been delivered.
	waiting bool
	look    lab.FrameInfo
	proven  uint64   // the next of the ticks
	known   lab.Time // nothing had been drawn until then
}

// maxProven is how many missed ticks become frames after one look, the newest
// of them: a machine that was held up for longer must not fill the recorder's queue.
const maxProven = 600

// Next returns a frame that the last look proved, or waits for the next tick and
// reports false: then the source looks at its screen and calls Frame.
func (l *Looks) Next(ctx context.Context) (lab.FrameInfo, bool, error) {
	if err := ctx.Err(); err != nil {
		return lab.FrameInfo{}, false, err
	}
	if l.waiting {
		return l.deliver(), true, nil
	}
	tick, err := l.Pace.Next(ctx)
	l.tick = tick
	return lab.FrameInfo{}, false, err
}

// Frame takes what the look at this tick found: Time, Uncertainty, Flags and
// Changed of its frame. With lab.FrameRepeat, nothing had been drawn since the look
// before until known at least. It returns the frame to deliver now.
func (l *Looks) Frame(f lab.FrameInfo, known lab.Time) lab.FrameInfo {
	missed := uint64(0)
	if l.begun {
		missed = l.tick - l.before - 1
	}
	l.begun, l.before = true, l.tick
	f.Flags |= lab.FrameLook
	if missed == 0 || f.Flags&lab.FrameRepeat == 0 {
		f.Missed = int(missed)
		return l.number(f)
	}
	l.waiting, l.look, l.known = true, f, known
	l.proven = l.tick - min(missed, maxProven)
	for l.proven < l.tick && l.Pace.Due(l.proven) <= l.last {
		l.proven++ // the look before took longer than a period and covers this tick
	}
	skipped := int(missed - (l.tick - l.proven))
	first := l.deliver()
	first.Missed = skipped
	return first
}

// Tick is that of the last look.
func (l *Looks) Tick() uint64 { return l.tick }

// deliver returns the next proven tick's frame and, after the last, the look's.
func (l *Looks) deliver() lab.FrameInfo {
	if l.proven == l.tick {
		l.waiting = false
		return l.number(l.look)
	}
	at := l.Pace.Due(l.proven)
	l.proven++
	return l.number(lab.FrameInfo{
		Time: at, Uncertainty: max(0, at.Sub(l.known)),
		Flags: lab.FrameRepeat | lab.FrameProven | lab.FrameLook,
	})
}

func (l *Looks) number(f lab.FrameInfo) lab.FrameInfo {
	f.Seq = l.seq
	l.seq++
	l.last = f.Time
	return f
}
