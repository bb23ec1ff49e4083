package reel_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"eidetic/capture/reel"
	"eidetic/capture/synthetic"
	"eidetic/internal/lab"
)

// shoot writes the next frames of src.
func shoot(t *testing.T, w *reel.Writer, src *synthetic.Source, frames int) error {
	t.Helper()
	for range frames {
		f, err := src.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := w.WriteFrame(f); err != nil {
			return err
		}
	}
	return nil
}

// holds checks that r has the first frames of a synthetic screen, whole.
func holds(t *testing.T, r *reel.Reader, content synthetic.Content) {
	t.Helper()
	src, err := synthetic.New(synthetic.Options{Format: r.Format(), Content: content})
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.Len() {
		want, err := src.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got, err := r.Pixels(i); err != nil || !bytes.Equal(got, want.Pix) {
			t.Fatalf("frame %d of %d differs (%v)", i, r.Len(), err)
		}
	}
}

func TestAppend(t *testing.T) {
	f := lab.Format{Pixels: lab.YUYV, Width: 96, Height: 64, Rate: 60}
	src, err := synthetic.New(synthetic.Options{Format: f, Content: synthetic.Scroll})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "joined.reel")
	w, err := reel.Create(path, reel.Header{Format: f})
	if err != nil {
		t.Fatal(err)
	}
	if err := shoot(t, w, src, 3); err != nil {
		t.Fatal(err)
	}
	for range 2 { // own frames between two foreign reels
		part := reel.NewMemory(1 << 20)
		pw, err := reel.NewWriter(part, reel.Header{Format: f})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(shoot(t, pw, src, 5), pw.WriteGap(lab.Gap{Count: 1}), pw.Close()); err != nil {
			t.Fatal(err)
		}
		r, err := reel.NewReader(part, part.Size())
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.Append(r), shoot(t, w, src, 4)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if report, err := reel.Verify(path); err != nil || !report.Good() || report.Frames != 21 || len(report.Gaps) != 2 ||
		report.Gaps[1].Before != 17 {
		t.Errorf("%+v, %v", report, err)
	}
	r, err := reel.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	holds(t, r, synthetic.Scroll)

	other := reel.NewMemory(1 << 20)
	f.Width = 48
	ow, err := reel.NewWriter(other, reel.Header{Format: f})
	if err != nil {
		t.Fatal(err)
	}
	if err := ow.Append(r); err == nil {
		t.Error("a reel of another format is appended")
	}
}

func TestFullMemoryKeepsWhatItHas(t *testing.T) {
	f := lab.Format{Pixels: lab.Grey, Width: 200, Height: 100, Rate: 60}
	src, err := synthetic.New(synthetic.Options{Format: f, Content: synthetic.Noise})
	if err != nil {
		t.Fatal(err)
	}
	const limit = 3<<20 + 77
	file := reel.NewMemory(limit)
	w, err := reel.NewWriter(file, reel.Header{Format: f})
	if err != nil {
		t.Fatal(err)
	}
	if err := shoot(t, w, src, 1000); !errors.Is(err, reel.ErrMemoryFull) {
		t.Fatal(err)
	}
	if err := w.Close(); !errors.Is(err, reel.ErrMemoryFull) {
		t.Errorf("Close does not tell: %v", err)
	}
	if file.Size() > limit+limit/16 {
		t.Errorf("%d bytes of %d", file.Size(), limit)
	}
	path := filepath.Join(t.TempDir(), "memory.reel")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteTo(out); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := reel.Open(path)
	if err != nil || r.Recovered() != nil || r.Len() != w.Frames() || r.Len() < 140 {
		t.Fatal(fmt.Sprint(r.Len(), w.Frames(), r.Recovered()), err)
	}
	defer r.Close()
	holds(t, r, synthetic.Noise)
}
