package capture

import (
	"bytes"
	"fmt"
	"time"

	"eidetic/capture/diff"
	"eidetic/internal/lab"
)

// blue finds the stretches in which a grabber shows a picture of its own: all of it one blue, to the last sample. USB
// sticks do so while they have no signal, also for seconds after the device's mode has changed, and say nothing.
type blue struct {
	format lab.Format
	now    lab.Blue // without frames while there is none
	list   []lab.Blue
}

// leastBlue is how long a stretch lasts at least: what is faded in may be blue for a moment.
const leastBlue = 200 * time.Millisecond

// look takes the next frame, and returns the stretch that it ends.
func (b *blue) look(f lab.Frame) (ended lab.Blue, ok bool) {
	on := b.now.Frames > 0
	if len(f.Changed) > 0 {
		on = isBlue(b.format, f.Pix)
	}
	if !on {
		return b.end(f.Time)
	}
	if b.now.Frames == 0 {
		b.now.From = f.Time
	}
	b.now.Frames, b.now.To = b.now.Frames+1, f.Time
	return ended, false
}

// end ends a stretch, if there is one, and returns it if it was long enough.
func (b *blue) end(at lab.Time) (ended lab.Blue, ok bool) {
	ended, b.now = b.now, lab.Blue{}
	if ended.Frames == 0 {
		return ended, false
	}
	ended.To = max(ended.To, at)
	if ended.To.Sub(ended.From) < leastBlue || len(b.list) == maxEvents {
		return ended, false
	}
	b.list = append(b.list, ended)
	return ended, true
}

func blueEvent(b lab.Blue) lab.SourceEvent {
	return lab.SourceEvent{Kind: lab.SourceBlue, Time: b.To, From: b.From, Detail: fmt.Sprintf(
		"%d frames in %.1f s were one blue, as a grabber shows while it has no signal", b.Frames, b.To.Sub(b.From).Seconds())}
}

// isBlue says whether a picture is one blue. Of other pictures it reads little: their first pixel is not blue, or their
// first row differs.
func isBlue(f lab.Format, pix []byte) bool {
	if len(pix) < f.FrameSize() {
		return false
	}
	var r, g, bl byte
	switch f.Pixels {
	case lab.BGRX, lab.BGR24:
		r, g, bl = pix[2], pix[1], pix[0]
	case lab.YUYV:
		r, g, bl = f.YCbCr().RGB(pix[0], pix[1], pix[3])
	case lab.UYVY:
		r, g, bl = f.YCbCr().RGB(pix[1], pix[0], pix[2])
	case lab.NV12:
		uv := pix[f.Width*f.Height:]
		r, g, bl = f.YCbCr().RGB(pix[0], uv[0], uv[1])
	}
	if bl < 128 || r > bl/4 || g > bl/4 {
		return false
	}
	for _, p := range diff.Planes(f) {
		plane := pix[p.Off:][:p.Size()]
		if !bytes.Equal(plane[p.Unit:p.Stride], plane[:p.Stride-p.Unit]) || !bytes.Equal(plane[p.Stride:], plane[:len(plane)-p.Stride]) {
			return false
		}
	}
	return true
}
