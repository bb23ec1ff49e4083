package x11_test

import (
	"bytes"
	"context"
	"errors"
	"image"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/capture"
	"eidetic/capture/reel"
	"eidetic/capture/x11"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/rigs/testlab/xtest"
)

// until takes frames until one fulfils ok, and returns it with how long it took
// to take; a minute's frames are enough for any machine.
func until(t *testing.T, s *x11.Source, ok func(lab.Frame) bool) (f lab.Frame, took time.Duration) {
	t.Helper()
	for range 3600 {
		before := lab.Monotonic()
		f, err := s.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if ok(f) {
			return f, lab.Monotonic().Sub(before)
		}
	}
	t.Fatal("the frame did not come within a minute")
	return f, 0
}

func TestSeesWhatIsDrawn(t *testing.T) {
	display := xvfb(t, "-screen", "0", "200x100x24")
	for _, o := range []x11.Options{
		{Display: display},
		{Display: display, NoDamage: true},
		{Display: display, NoSHM: true},
		{Display: display, NoSHM: true, NoDamage: true},
		{Display: display, Region: image.Rect(10, 20, 110, 60)},
	} {
		s, err := x11.Open(o)
		if err != nil {
			t.Fatal(err)
		}
		if s.Shared() == o.NoSHM || s.Damage() == o.NoDamage {
			t.Errorf("%+v: shared memory %v, damage %v", o, s.Shared(), s.Damage())
		}
		for _, c := range []struct {
			rgb  uint32
			bgrx []byte
		}{{0x00ff00, []byte{0, 255, 0, 0}}, {0x123456, []byte{0x56, 0x34, 0x12, 0}}} {
			xtest.Paint(t, display, c.rgb)
			f, took := until(t, s, func(f lab.Frame) bool { return f.Flags&lab.FrameRepeat == 0 && bytes.Equal(f.Pix[:4], c.bgrx) })
			if want := bytes.Repeat(c.bgrx, s.Format().Width*s.Format().Height); !bytes.Equal(f.Pix, want) {
				t.Errorf("%+v: the screen is not all %06x", o, c.rgb)
			}
			if f.Uncertainty <= 0 || f.Uncertainty > took {
				t.Errorf("%+v: uncertainty %v of a frame that took %v", o, f.Uncertainty, took)
			}
		}
		if !o.NoDamage {
			f, _ := until(t, s, func(f lab.Frame) bool { return f.Flags&lab.FrameRepeat != 0 })
			if f.Pix == nil || len(f.Changed) != 0 {
				t.Errorf("a repeat has %d bytes and changes %v", len(f.Pix), f.Changed)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestRecordsAScreen(t *testing.T) {
	display := xvfb(t, "-screen", "0", "320x200x24")
	src, err := x11.Open(x11.Options{Display: display, Rate: 60})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "screen.reel")
	w, err := reel.Create(path, reel.Header{Format: src.Format(), Source: "x11" + display})
	if err != nil {
		t.Fatal(err)
	}
	r, err := capture.Start(context.Background(), src, w, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return r.Status().Frames >= edge })
	green := []byte{0, 255, 0, 0}
	xtest.Paint(t, display, 0x00ff00)
	waitFor(t, func() bool {
		seen := false
		r.Latest(func(_ lab.Format, f lab.Frame) { seen = bytes.Equal(f.Pix[:4], green) })
		return seen
	})
	waitFor(t, func() bool { s := r.Status(); return s.LastFrame.Sub(s.LastChange) > 3*time.Second })
	still := r.Status().Frames
	waitFor(t, func() bool { return r.Status().Frames >= still+edge })
	st, err := r.Stop()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if st.Repeats == 0 || st.Lost != 0 {
		t.Errorf("Stats = %+v, want repeats and nothing lost", st)
	}
	if rate := rateOf(t, path, st); rate < 55 || rate > 65 {
		t.Errorf("%.1f ticks a second: %+v", rate, st)
	}
	report, err := reel.Verify(path)
	if err != nil || !report.Good() || report.Frames != st.Frames || report.Lost != st.Lost {
		t.Errorf("%+v, %v; recorded %+v", report, err, st)
	}
}

// edge is how many frames at each end of a recording tell its rate.
const edge = 30

// rateOf is how many ticks a second a recording's frames tell, by that frame at
// each end which came soonest: a machine that stalls makes frames late, but not all of them.
func rateOf(t *testing.T, path string, st capture.Stats) float64 {
	t.Helper()
	r, err := reel.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	proven := 0
	for i := range r.Len() {
		if r.Info(i).Flags&lab.FrameProven != 0 {
			proven++
		}
	}
	soonest := func(from, to int) lab.FrameInfo {
		late := func(i int) time.Duration {
			return r.Info(i).Time.Sub(r.Info(0).Time) - time.Duration(r.Info(i).Seq)*time.Second/60
		}
		best := from
		for i := from; i < to; i++ {
			if late(i) < late(best) {
				best = i
			}
		}
		return r.Info(best)
	}
	a, b := soonest(0, edge), soonest(r.Len()-edge, r.Len())
	withoutFrame := st.MissedDrawn + st.MissedProven - proven
	return (float64(b.Seq-a.Seq) + float64(withoutFrame)) / b.Time.Sub(a.Time).Seconds()
}

// waitFor polls until ok, for at most a minute.
func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(time.Minute)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("it did not happen within a minute")
		}
	}
}

func TestCancelAndDeadServerEndNext(t *testing.T) {
	server := xtest.Start(t, testlab.NeedProgram(t, "Xvfb"), "-screen", "0", "64x64x24")
	s, err := x11.Open(x11.Options{Display: server.Display})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Next(context.Background()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("after cancel: %v", err)
	}
	server.Stop()
	if _, err := s.Next(context.Background()); err == nil || !strings.Contains(err.Error(), "the X server") {
		t.Errorf("the server has gone: %v", err)
	}
}

func TestErrorsSayWhatIsWrong(t *testing.T) {
	display := xvfb(t, "-screen", "0", "64x64x24")
	bad := filepath.Join(t.TempDir(), "none")
	for _, c := range []struct {
		o    x11.Options
		want string
	}{
		{x11.Options{Display: "nonsense"}, `display "nonsense" is not of the form :NUMBER`},
		{x11.Options{Display: "far:0"}, "on another machine"},
		{x11.Options{Display: ":60000"}, "connect to display :60000"},
		{x11.Options{Display: display, Region: image.Rect(0, 0, 65, 10)}, "not on the screen"},
		{x11.Options{Display: display, Rate: 2000}, "frame rate 2000 is outside"},
		{x11.Options{Display: display, Authority: bad}, "authority file: open " + bad},
	} {
		if _, err := x11.Open(c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.o, err, c.want)
		}
	}
	t.Setenv("DISPLAY", "")
	if _, err := x11.Open(x11.Options{}); err == nil || !strings.Contains(err.Error(), "$DISPLAY is empty") {
		t.Errorf("no display: %v", err)
	}
}
