package capture_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"eidetic/capture"
	"eidetic/internal/lab"
)

// recorded records frames.
func recorded(t *testing.T, o capture.Options, frames ...lab.Frame) (*gated, capture.Stats) {
	t.Helper()
	src := &script{format: small, frames: make(chan lab.Frame, len(frames))}
	for _, f := range frames {
		src.frames <- f
	}
	close(src.frames)
	var sink gated
	o.NoPriority, o.Ring = true, len(frames)+4 // the source does not wait for the sink
	r, err := capture.Start(t.Context(), src, &sink, o)
	if err != nil {
		t.Fatal(err)
	}
	<-r.Done()
	st, err := r.Stop()
	if err != nil {
		t.Fatal(err)
	}
	return &sink, st
}

// TestDamagedFrameIsLost: in a trial nobody knows what the screen showed when a damaged frame was taken.
func TestDamagedFrameIsLost(t *testing.T) {
	frames := []lab.Frame{frame(0, 1, 0), frame(1, 9, lab.FrameCorrupt|lab.FrameShort), frame(3, 1, lab.FrameRepeat), frame(4, 2, 0)}
	sink, st := recorded(t, capture.Options{Whole: true}, frames...)
	want := map[string]int{lab.GapCorrupt: 1, lab.GapSource: 1}
	if diff := cmp.Diff(want, st.Reasons); diff != "" || st.Lost != 2 || st.Corrupt != 0 {
		t.Errorf("lost %d, damaged %d, reasons (-want +got):\n%s", st.Lost, st.Corrupt, diff)
	}
	const both = lab.GapCorrupt + ", and " + lab.GapSource
	if len(sink.gaps) != 1 || sink.gaps[0].Seq != 1 || sink.gaps[0].Count != 2 || sink.gaps[0].Reason != both {
		t.Errorf("gaps %+v; want one of two frames from 1 on, %q", sink.gaps, both)
	}
	if len(sink.infos) != 3 || len(sink.infos[1].Changed) != 0 {
		t.Errorf("frames %+v; want three, the second as the first", sink.infos)
	}
	if sink, st = recorded(t, capture.Options{}, frames...); len(sink.infos) != 4 || st.Corrupt != 1 || st.Short != 1 {
		t.Errorf("otherwise %d frames, %d damaged, %d short; want 4, with the damaged one", len(sink.infos), st.Corrupt, st.Short)
	}
}

// coloured is a frame of one colour.
func coloured(seq int, b, g, r byte) lab.Frame {
	f := frame(seq, 0, 0)
	for i := 0; i < len(f.Pix); i += 4 {
		copy(f.Pix[i:], []byte{b, g, r})
	}
	return f
}

// TestBlueStretchIsNamed: a grabber that shows one blue for a while has no signal; a moment of it, other colours, and a
// page on blue do not count.
func TestBlueStretchIsNamed(t *testing.T) {
	var frames []lab.Frame
	for seq := range 100 {
		f := coloured(seq, 255, 255, 255)
		switch {
		case seq >= 10 && seq < 30, seq >= 80: // the second one until the end
			f = coloured(seq, 250, 4, 3)
		case seq == 40: // a moment
			f = coloured(seq, 255, 0, 0)
		case seq >= 50 && seq < 70: // a page
			f = coloured(seq, 255, 0, 0)
			f.Pix[len(f.Pix)-2] = 1
		case seq >= 70:
			f = coloured(seq, 0, 0, 0)
		}
		frames = append(frames, f)
	}
	sink, st := recorded(t, capture.Options{Card: true}, frames...)
	at := func(seq int) lab.Time { return frame(seq, 0, 0).Time }
	want := []lab.Blue{{From: at(10), To: at(30), Frames: 20}, {From: at(80), To: at(99), Frames: 20}}
	if diff := cmp.Diff(want, st.Blue); diff != "" {
		t.Errorf("blue (-want +got):\n%s", diff)
	}
	if len(sink.events) != 2 || sink.events[0].Kind != lab.SourceBlue || sink.events[0].Before != 30 || sink.events[1].Before != 100 {
		t.Errorf("events %+v", sink.events)
	}
	if sink, st = recorded(t, capture.Options{}, frames...); len(st.Blue)+len(sink.events) > 0 {
		t.Errorf("of no card: %+v, events %+v; want none", st.Blue, sink.events)
	}
}

// TestBlueOfEachFormat: the blue of each format is one.
func TestBlueOfEachFormat(t *testing.T) {
	for pixels, unit := range map[lab.PixelFormat][]byte{
		lab.BGR24: {255, 0, 0}, lab.YUYV: {41, 240, 41, 110}, lab.UYVY: {240, 41, 110, 41}, lab.NV12: nil, lab.Grey: nil,
	} {
		format := lab.Format{Pixels: pixels, Width: 8, Height: 4, Rate: 60}
		pix := make([]byte, 0, format.FrameSize())
		for unit != nil && len(pix) < format.FrameSize() {
			pix = append(pix, unit...)
		}
		switch pixels {
		case lab.NV12:
			for i := range format.FrameSize() {
				pix = append(pix, []byte{41, 240, 110}[min(i/32, 1)*(1+i&1)])
			}
		case lab.Grey:
			pix = append(pix, make([]byte, format.FrameSize())...)
		}
		if got := capture.IsBlue(format, pix); got != (pixels != lab.Grey) {
			t.Errorf("%s: IsBlue() = %v", pixels, got)
		}
	}
}
