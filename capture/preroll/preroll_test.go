package preroll_test

import (
	"context"
	"testing"
	"time"

	"eidetic/capture/preroll"
	"eidetic/capture/reel"
	"eidetic/capture/synthetic"
	"eidetic/internal/lab"
)

// film is a synthetic screen behind a pre-roll ring, and the reel it goes to.
type film struct {
	t    *testing.T
	src  *synthetic.Source
	ring *preroll.Ring
	file *reel.Memory
	w    *reel.Writer
}

func newFilm(t *testing.T, o preroll.Options, content synthetic.Content) *film {
	t.Helper()
	f := &film{t: t, file: reel.NewMemory(1 << 30)}
	var err error
	if f.src, err = synthetic.New(synthetic.Options{Format: o.Format, Content: content}); err == nil {
		if f.w, err = reel.NewWriter(f.file, reel.Header{Format: o.Format}); err == nil {
			f.ring, err = preroll.New(f.w, o)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// must fails the test on an error.
func (f *film) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// shoot films the next frames.
func (f *film) shoot(frames int) {
	f.t.Helper()
	for range frames {
		fr, err := f.src.Next(context.Background())
		f.must(err)
		f.must(f.ring.WriteFrame(fr))
	}
}

// develop closes the reel, and checks that it holds the frames up to last
// without a hole; it returns the number of the first.
func (f *film) develop(last int) (*reel.Reader, int) {
	f.t.Helper()
	f.must(f.w.Close())
	r, err := reel.NewReader(f.file, f.file.Size())
	f.must(err)
	first := last + 1 - r.Len()
	for i := range r.Len() {
		pix, err := r.Pixels(i)
		f.must(err)
		if n, ok := synthetic.ReadCounter(r.Format(), pix); !ok || int(n) != first+i || r.Info(i).Seq != uint64(n) {
			f.t.Fatalf("frame %d shows %d (%v) and has the number %d, want %d", i, n, ok, r.Info(i).Seq, first+i)
		}
	}
	return r, first
}

func TestRecordingBeginsBeforeTheTrigger(t *testing.T) {
	f := newFilm(t, preroll.Options{Format: lab.Format{Pixels: lab.BGRX, Width: 320, Height: 60, Rate: 60}, Length: time.Second},
		synthetic.Scroll)
	const trigger, frames = 300, 330
	f.shoot(trigger - 20)
	f.must(f.ring.WriteGap(lab.Gap{Seq: 1, Count: 2}))
	f.must(f.ring.WriteEvent(lab.SourceEvent{Kind: lab.SourceSignalLost}))
	f.shoot(20)
	if f.w.Frames() > 0 || f.ring.Begun() {
		t.Fatalf("%d frames went on before the trigger", f.w.Frames())
	}
	f.ring.Trigger()
	f.shoot(frames - trigger)
	r, first := f.develop(frames - 1)
	if before := trigger - first; before < 60 || before > 80 {
		t.Errorf("the recording begins %d frames before the trigger", before)
	}
	notes := r.Notes()
	if len(notes) != 2 || notes[0].Gap == nil || notes[1].Event == nil || notes[0].Before() != trigger-20-first || f.ring.Dropped() != 0 {
		t.Errorf("notes %v, %d frames dropped", notes, f.ring.Dropped())
	}
	for i := range r.Len() {
		// What changed is exact again from the second frame after the trigger on.
		if whole := r.Info(i).Changed[0] == r.Format().Bounds(); i == trigger-first && !whole {
			t.Errorf("frame %d, the first after those that were kept, names what changed since a frame that its writer does not know", i)
		}
	}
}

func TestLimitDropsTheOldest(t *testing.T) {
	f := newFilm(t, preroll.Options{Format: lab.Format{Pixels: lab.Grey, Width: 320, Height: 60, Rate: 60}, Length: 10 * time.Second,
		Limit: 4 << 20}, synthetic.Noise)
	f.shoot(400)
	f.ring.Trigger()
	f.shoot(1)
	if _, first := f.develop(400); first == 0 || f.ring.Dropped() != first {
		t.Errorf("%d dropped of 400, the first kept is %d", f.ring.Dropped(), first)
	}
}

func TestCompressedFramesAreKeptToo(t *testing.T) {
	f := lab.Format{Pixels: lab.MJPEG, Width: 320, Height: 60, Rate: 60}
	file := reel.NewMemory(1 << 20)
	w, err := reel.NewWriter(file, reel.Header{Format: f})
	if err != nil {
		t.Fatal(err)
	}
	ring, err := preroll.New(w, preroll.Options{Format: f, Length: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 100 {
		if n == 90 {
			ring.Trigger()
		}
		fr := lab.Frame{Pix: []byte{0xff, 0xd8, byte(n)}}
		fr.Seq, fr.Time = uint64(n), lab.Time(n)*16_666_667
		if err := ring.WriteFrame(fr); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := reel.NewReader(file, file.Size())
	if err != nil || r.Len() < 70 || r.Len() > 85 {
		t.Fatalf("%d frames, %v", r.Len(), err)
	}
	for i := range r.Len() {
		if pix, err := r.Pixels(i); err != nil || pix[2] != byte(r.Info(i).Seq) {
			t.Errorf("frame %d: %v, %v", i, pix, err)
		}
	}
}
