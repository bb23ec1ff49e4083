package capture_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/capture"
	"eidetic/capture/reel"
	"eidetic/capture/synthetic"
	"eidetic/internal/lab"
)

// TestFullHDInRealTime records 1920 × 1080 at 60 Hz with disk, compression and checks, from a source that holds 16
// frames as package v4l2's driver does, as long as EIDETIC_SOAK says ("5m": the product's promise, which also asserts
// that nothing is lost); otherwise one second of a quarter of the width and height, in which a loaded test machine may
// lose frames, but not silently.
func TestFullHDInRealTime(t *testing.T) {
	length, promised := time.Second, false
	f := lab.Format{Pixels: lab.BGRX, Width: 480, Height: 270, Rate: 60}
	if v := os.Getenv("EIDETIC_SOAK"); v != "" {
		d, err := time.ParseDuration(v)
		if err != nil {
			t.Fatalf("EIDETIC_SOAK: %v", err)
		}
		length, promised = d, true
		f.Width, f.Height = 1920, 1080
	}
	frames := int(length.Seconds() * 60)
	src, err := synthetic.New(synthetic.Options{Format: f, Content: synthetic.Scroll, Frames: frames, Clock: lab.Monotonic,
		Wait: capture.SleepUntil, Buffers: 16})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "hd.reel")
	w, err := reel.Create(path, reel.Header{Format: f})
	if err != nil {
		t.Fatal(err)
	}
	counted := &counting{Source: src}
	r, err := capture.Start(context.Background(), counted, w, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if promised {
		hog := time.AfterFunc(length/3, func() { spin(r.Done(), min(30*time.Second, length/3)) })
		defer hog.Stop()
	}
	<-r.Done()
	st, err := r.Stop()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v; %d bytes, resident memory at most %d MB", st, w.Size(), peakMemory(t))
	// What a machine that stalls keeps the source from taking at the end leaves no trace.
	if st.Frames+st.Lost != counted.numbers || st.Frames == 0 {
		t.Errorf("%d frames recorded and %d lost are not %d", st.Frames, st.Lost, counted.numbers)
	}
	if promised && (st.Lost != 0 || st.Frames != frames) {
		t.Errorf("%d frames of %d recorded, %d lost", st.Frames, frames, st.Lost)
	}
	if peak := peakMemory(t); promised && peak > 1024 {
		t.Errorf("resident memory rose to %d MB", peak)
	}
	check(t, path, f, st)
	seeks := 10
	if promised {
		seeks = 100
	}
	if worst := worstSeek(t, path, seeks); promised && worst > 50*time.Millisecond {
		t.Errorf("the slowest of %d random frames took %v, 50 ms are promised", seeks, worst)
	} else {
		t.Logf("the slowest of %d random frames took %v", seeks, worst)
	}
}

// counting notes how far a source's numbers went.
type counting struct {
	*synthetic.Source
	numbers int
}

func (c *counting) Next(ctx context.Context) (lab.Frame, error) {
	f, err := c.Source.Next(ctx)
	if err == nil {
		c.numbers = int(f.Seq) + 1
	}
	return f, err
}

// worstSeek reads random frames; each counts with the better of two times.
func worstSeek(t *testing.T, path string, frames int) time.Duration {
	t.Helper()
	r, err := reel.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	random := rand.New(rand.NewPCG(1, 2))
	seek := func(i int) time.Duration {
		start := time.Now()
		if _, err := r.Pixels(i); err != nil {
			t.Fatal(err)
		}
		return time.Since(start)
	}
	var worst time.Duration
	for range frames {
		i := random.IntN(r.Len())
		first := seek(i)
		seek((i + r.Len()/2) % r.Len()) // away
		worst = max(worst, min(first, seek(i)))
	}
	return worst
}

// check compares every frame of the reel with the one that was drawn.
func check(t *testing.T, path string, f lab.Format, st capture.Stats) {
	t.Helper()
	got, err := reel.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	if got.Len() != st.Frames || got.Lost() != st.Lost {
		t.Errorf("the reel has %d frames and names %d as lost; recorded %+v", got.Len(), got.Lost(), st)
	}
	again, err := synthetic.New(synthetic.Options{Format: f, Content: synthetic.Scroll})
	if err != nil {
		t.Fatal(err)
	}
	want, err := again.Next(context.Background())
	for i := range got.Len() {
		for err == nil && want.Seq < got.Info(i).Seq {
			want, err = again.Next(context.Background())
		}
		pix, perr := got.Pixels(i)
		if err != nil || perr != nil || !bytes.Equal(pix, want.Pix) {
			t.Fatalf("frame %d (number %d) is not the one that was shown (%v, %v)", i, got.Info(i).Seq, err, perr)
		}
	}
}

// spin keeps a processor busy.
func spin(done <-chan struct{}, d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		select {
		case <-done:
			return
		default:
		}
	}
}

// peakMemory returns this process's largest resident set so far, in MB.
func peakMemory(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "VmHWM:")
	kb := 0
	if _, err := fmt.Sscan(rest, &kb); err != nil {
		t.Fatal(err)
	}
	return kb / 1024
}
