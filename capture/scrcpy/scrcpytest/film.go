package scrcpytest

import (
	"context"
	"errors"
	"testing"
	"time"

	"eidetic/capture"
	"eidetic/internal/base/adbserver/adbtest"
	"eidetic/internal/lab"
)

const (
	repeatAfter = 100 * time.Millisecond // an encoder of Android shows a still screen again
	mostRepeats = 10                     // so often
	keyEvery    = 600                    // pictures
)

// Film sends what a screen shows, as a phone does: a picture when something was drawn, with the time of drawing, and a
// few repeats of it. The source is closed when ctx ends.
func Film(ctx context.Context, t testing.TB, s *Stream, screen capture.Source) {
	defer screen.Close()
	encoder, err := NewEncoder(ctx, screen.Format(), keyEvery)
	if err != nil {
		t.Error(err)
		return
	}
	defer encoder.Close()
	var last lab.Time
	repeats := 0
	for s.Err() == nil {
		f, err := screen.Next(ctx)
		if err != nil {
			if ctx.Err() == nil && !errors.Is(err, context.Canceled) {
				t.Errorf("the simulated phone's screen: %v", err)
			}
			return
		}
		if f.Flags&lab.FrameRepeat == 0 {
			repeats = 0
		} else if f.Time.Sub(last) < repeatAfter || repeats == mostRepeats {
			continue
		}
		repeats, last = repeats+1, f.Time
		list, err := encoder.Encode(f.Pix)
		if err != nil {
			if ctx.Err() == nil {
				t.Error(err)
			}
			return
		}
		for _, p := range list {
			s.Packet(p, time.Duration(f.Time+adbtest.Ahead))
		}
	}
}
