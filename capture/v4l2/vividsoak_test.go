//go:build guest

package v4l2

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"eidetic/capture"
	"eidetic/capture/reel"
	"eidetic/internal/lab"
)

// TestSoakVivid records from the kernel's virtual grabber for EIDETIC_SOAK, at each size and rate. How many pictures come is the
// machine's affair, as vivid draws each; but each that did not come is one that the reel names.
func TestSoakVivid(t *testing.T) {
	length, err := time.ParseDuration(os.Getenv("EIDETIC_SOAK"))
	if err != nil {
		t.Fatalf("EIDETIC_SOAK: %v", err)
	}
	for _, f := range []lab.Format{
		{Width: 1920, Height: 1080, Rate: 60}, {Width: 1920, Height: 1080, Rate: 30}, {Width: 1280, Height: 720, Rate: 60},
		{Width: 1280, Height: 720, Rate: 30}, {Width: 720, Height: 480, Rate: 60}, {Width: 640, Height: 480, Rate: 60},
	} {
		t.Run(fmt.Sprintf("%dx%d at %v", f.Width, f.Height, f.Rate), func(t *testing.T) {
			s := signalled(t, vivid(t, onHDMI), f) // with vivid's clock in the picture, so that each differs
			path := filepath.Join(t.TempDir(), "soak.reel")
			w, err := reel.Create(path, reel.Header{Format: s.Format(), Source: "vivid"})
			if err != nil {
				t.Fatal(err)
			}
			before := used(t)
			r, err := capture.Start(t.Context(), &finite{s, int(length.Seconds() * f.Rate)}, w, capture.Options{})
			if err != nil {
				t.Fatal(err)
			}
			select {
			case <-r.Done():
			case <-time.After(length):
			}
			st, err := r.Stop()
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			spent := used(t) - before
			// vivid numbers by the kernel's ticks and stamps by its clock. Where it has no time to draw all, more are missing by
			// number than by the clock; none may be missing that is not named, by its number or as an interruption.
			due, twice := named(t, path, st)
			if st.Interruptions == 0 && due > st.Lost+clockStamps {
				t.Errorf("%+v; the clock says that %d are missing", st, due)
			}
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%v/s: %d pictures, %d with the number of the one before, %d named as missing, %d missing by time, %d interruptions; "+
				"%.0f %% of a processor, %d MB", s.Format().Rate, st.Frames, twice, st.Lost, due, st.Interruptions,
				100*spent.Seconds()/length.Seconds(), info.Size()>>20)
		})
	}
}

// signalled opens the device at path, whose signal gets the size and the rate.
func signalled(t *testing.T, path string, f lab.Format) *Source {
	t.Helper()
	const modes, selected = 200, 4
	for index := range modes {
		n, err := openNode(path)
		if err != nil {
			t.Fatal(err)
		}
		turn(t, path, n, typeCapture, "DV Timings", index)
		turn(t, path, n, typeCapture, "DV Timings Signal Mode", selected)
		if err := n.close(); err != nil {
			t.Fatal(err)
		}
		s, err := Open(Options{Path: path, Format: lab.Format{Pixels: lab.YUYV}})
		if err != nil {
			continue // interlaced
		}
		if got := s.Format(); got.Width == f.Width && got.Height == f.Height && math.Abs(got.Rate-f.Rate) < 0.5 {
			return s
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatalf("vivid has no signal of %d × %d at %v", f.Width, f.Height, f.Rate)
	return nil
}

// used is the processor time of this process.
func used(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
