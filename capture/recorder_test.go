package capture_test

import (
	"bytes"
	"context"
	"errors"
	"image"
	"io"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"eidetic/capture"
	"eidetic/capture/reel"
	"eidetic/capture/synthetic"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

func TestMain(m *testing.M) { testlab.NoLeaks(m) }

var small = lab.Format{Pixels: lab.BGRX, Width: 320, Height: 200, Rate: 60}

// script is a source that delivers given frames when it is told to.
type script struct {
	format lab.Format
	frames chan lab.Frame
	closed bool
}

func (s *script) Format() lab.Format { return s.format }
func (s *script) Close() error       { s.closed = true; return nil }
func (s *script) Next(ctx context.Context) (lab.Frame, error) {
	select {
	case f, ok := <-s.frames:
		if !ok {
			return f, io.EOF
		}
		return f, nil
	case <-ctx.Done():
		return lab.Frame{}, ctx.Err()
	}
}

// gated is a sink that waits for leave before each frame, and remembers all.
type gated struct {
	mu     sync.Mutex
	leave  chan struct{} // nil: at once
	infos  []lab.FrameInfo
	pix    [][]byte
	gaps   []lab.Gap
	events []lab.SourceEvent
	failAt int // frame at which WriteFrame fails; 0: never
}

var errSink = errors.New("disk full")

func (g *gated) WriteFrame(f lab.Frame) error {
	if g.leave != nil {
		<-g.leave
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.failAt > 0 && len(g.infos) == g.failAt {
		return errSink
	}
	f.Changed = append([]image.Rectangle(nil), f.Changed...)
	g.infos, g.pix = append(g.infos, f.FrameInfo), append(g.pix, bytes.Clone(f.Pix))
	return nil
}

func (g *gated) WriteGap(gap lab.Gap) error {
	g.gaps = append(g.gaps, gap)
	return nil
}

func (g *gated) WriteEvent(e lab.SourceEvent) error {
	e.Before = len(g.infos)
	g.events = append(g.events, e)
	return nil
}

func frame(seq int, value byte, flags lab.FrameFlags) lab.Frame {
	pix := bytes.Repeat([]byte{value}, small.FrameSize())
	f := lab.Frame{Pix: pix}
	f.Seq, f.Time, f.Flags = uint64(seq), lab.Time(seq)*16_666_667, flags
	f.Changed = []image.Rectangle{small.Bounds()}
	return f
}

func TestSequenceGapIsCountedAndWritten(t *testing.T) {
	src := &script{format: small, frames: make(chan lab.Frame, 10)}
	for _, seq := range []int{7, 8, 12} {
		src.frames <- frame(seq, byte(seq), 0)
	}
	close(src.frames)
	var sink gated
	r, err := capture.Start(context.Background(), src, &sink, capture.Options{NoPriority: true})
	if err != nil {
		t.Fatal(err)
	}
	<-r.Done()
	st, err := r.Stop()
	if err != nil || st.Frames != 3 || st.Lost != 3 || st.Reasons[lab.GapSource] != 3 || !src.closed {
		t.Errorf("Stop() = %+v, %v, source closed: %v; want 3 frames, 3 lost by the source, true", st, err, src.closed)
	}
	if len(sink.gaps) != 1 || sink.gaps[0].Seq != 9 || sink.gaps[0].Count != 3 {
		t.Errorf("gaps %+v", sink.gaps)
	}
}

func TestFullRingLosesWholeFramesAndSaysSo(t *testing.T) {
	const frames, ring = 40, 4
	src := &script{format: small, frames: make(chan lab.Frame)}
	sink := &gated{leave: make(chan struct{})}
	r, err := capture.Start(context.Background(), src, sink, capture.Options{Ring: ring, NoPriority: true})
	if err != nil {
		t.Fatal(err)
	}
	for seq := range frames {
		// The second half repeats the last picture, which the sink may lack.
		flags := lab.FrameFlags(0)
		if seq >= frames/2 {
			flags = lab.FrameRepeat
		}
		src.frames <- frame(seq, byte(min(seq, frames/2-1)), flags)
	}
	close(sink.leave) // the sink runs on
	for seq := frames; seq < frames+3; seq++ {
		src.frames <- frame(seq, frames/2-1, lab.FrameRepeat)
	}
	close(src.frames)
	<-r.Done()
	st, err := r.Stop()
	if err != nil || st.Lost == 0 || st.Frames+st.Lost != frames+3 || st.Reasons[lab.GapRing] != st.Lost {
		t.Fatalf("Stop() = %+v, %v; want %d frames, some of them lost because the ring was full", st, err, frames+3)
	}
	if st.RingPeak > ring {
		t.Errorf("%d buffers of %d were used", st.RingPeak, ring)
	}
	lost := 0
	for _, g := range sink.gaps {
		lost += g.Count
	}
	for i, info := range sink.infos {
		if want := byte(min(info.Seq, frames/2-1)); sink.pix[i][0] != want {
			t.Errorf("frame of sequence %d shows %d, want %d", info.Seq, sink.pix[i][0], want)
		}
	}
	if last := sink.infos[len(sink.infos)-1]; int(last.Seq) == frames+2 && lost != st.Lost {
		t.Errorf("the gaps in the sink name %d frames, the statistics %d", lost, st.Lost)
	}
}

func TestChangesAreExact(t *testing.T) {
	src := &script{format: small, frames: make(chan lab.Frame, 10)}
	a, b, c := frame(0, 9, 0), frame(1, 9, 0), frame(2, 9, 0)
	box := image.Rect(70, 30, 90, 35)
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			c.Pix[4*(y*small.Width+x)+1] = 1
		}
	}
	src.frames <- a
	src.frames <- b
	src.frames <- c
	close(src.frames)
	var sink gated
	r, err := capture.Start(context.Background(), src, &sink, capture.Options{NoPriority: true})
	if err != nil {
		t.Fatal(err)
	}
	<-r.Done()
	if got := sink.infos[1].Changed; len(got) != 0 {
		t.Errorf("an equal frame has changes %v", got)
	}
	if got := sink.infos[2].Changed; len(got) != 1 || got[0] != box {
		t.Errorf("changes %v, want %v", got, box)
	}
	if s := r.Status(); s.LastChange != c.Time || s.LastFrame != c.Time || s.FirstFrame != a.Time {
		t.Errorf("Status() = %+v, want the last change and frame at %v, the first frame at %v", s, c.Time, a.Time)
	}
	seen := r.Latest(func(_ lab.Format, f lab.Frame) {
		if !bytes.Equal(f.Pix, c.Pix) || f.Seq != 2 {
			t.Error("Latest is not the newest frame")
		}
	})
	if !seen {
		t.Error("there is no newest frame")
	}
	if _, err := r.Stop(); err != nil {
		t.Error(err)
	}
}

func TestFailingSinkEndsTheRecording(t *testing.T) {
	src := &script{format: small, frames: make(chan lab.Frame, 10)}
	for seq := range 6 {
		src.frames <- frame(seq, byte(seq), 0)
	}
	sink := &gated{failAt: 3}
	r, err := capture.Start(context.Background(), src, sink, capture.Options{NoPriority: true})
	if err != nil {
		t.Fatal(err)
	}
	<-r.Done()
	st, err := r.Stop()
	if !errors.Is(err, errSink) || st.Frames != 3 || !src.closed {
		t.Errorf("Stop() = %+v, %v, source closed: %v; want 3 frames, %v, true", st, err, src.closed, errSink)
	}
}

func TestRecordingProvesThatItIsWhole(t *testing.T) {
	for _, content := range []synthetic.Content{synthetic.Static, synthetic.Load, synthetic.Scroll, synthetic.Noise} {
		src, err := synthetic.New(synthetic.Options{Format: small, Content: content, Frames: 200})
		if err != nil {
			t.Fatal(err)
		}
		var file bytes.Buffer
		w, err := reel.NewWriter(&file, reel.Header{Format: small})
		if err != nil {
			t.Fatal(err)
		}
		// The source does not wait, so the ring must hold all.
		r, err := capture.Start(context.Background(), src, w, capture.Options{Ring: 256})
		if err != nil {
			t.Fatal(err)
		}
		<-r.Done()
		st, err := r.Stop()
		if err != nil || st.Frames != 200 || st.Lost != 0 {
			t.Fatalf("%s: Stop() = %+v, %v; want 200 frames, none lost", content, st, err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		got, err := reel.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()))
		if err != nil {
			t.Fatal(err)
		}
		again, err := synthetic.New(synthetic.Options{Format: small, Content: content})
		if err != nil {
			t.Fatal(err)
		}
		for i := range got.Len() {
			want, _ := again.Next(context.Background())
			pix, err := got.Pixels(i)
			if err != nil || !bytes.Equal(pix, want.Pix) {
				t.Fatalf("%s: frame %d differs (%v)", content, i, err)
			}
			if n, ok := synthetic.ReadCounter(small, pix); !ok || n != uint32(i) {
				t.Fatalf("%s: frame %d shows the number %d (%v)", content, i, n, ok)
			}
		}
	}
}

// interrupting is a source that delivers frames and errors in a given order.
type interrupting struct {
	script
	list []any // lab.Frame or error
}

func (s *interrupting) Next(context.Context) (lab.Frame, error) {
	if len(s.list) == 0 {
		return lab.Frame{}, io.EOF
	}
	next := s.list[0]
	s.list = s.list[1:]
	if err, ok := next.(error); ok {
		return lab.Frame{}, err
	}
	return next.(lab.Frame), nil
}

var errUnplugged = errors.New("the device was unplugged")

func TestEventsOfTheSourceAreRecordedInOrder(t *testing.T) {
	late := frame(14, 6, 0)
	late.Time += 10_000_000
	src := &interrupting{script: script{format: small}, list: []any{
		frame(0, 1, 0), frame(1, 2, 0),
		&capture.Interruption{Event: lab.SourceEvent{Kind: lab.SourceSignalLost, Time: 5}},
		&capture.Interruption{Event: lab.SourceEvent{Kind: lab.SourceSignalBack, Time: 6}},
		frame(12, 4, 0), frame(13, 5, 0), late,
		&capture.Interruption{Event: lab.SourceEvent{Kind: lab.SourceUnplugged, Time: 9}, Ends: errUnplugged},
		frame(99, 9, 0), // never asked for
	}}
	var file bytes.Buffer
	w, err := reel.NewWriter(&file, reel.Header{Format: small})
	if err != nil {
		t.Fatal(err)
	}
	r, err := capture.Start(context.Background(), src, w, capture.Options{NoPriority: true})
	if err != nil {
		t.Fatal(err)
	}
	<-r.Done()
	st, err := r.Stop()
	if !errors.Is(err, errUnplugged) || st.Frames != 5 || st.Lost != 10 || st.Interruptions != 3 || st.Irregular != 1 || !src.closed {
		t.Errorf("Stop() = %+v, %v, source closed: %v; want 5 frames, 10 lost, 3 interruptions, 1 irregular, %v, true", st, err,
			src.closed, errUnplugged)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := reel.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil || got.Recovered() != nil {
		t.Fatal(err, got.Recovered())
	}
	var list []string
	for _, n := range got.Notes() {
		list = append(list, n.String())
	}
	want := []string{
		"before frame 2: signal lost",
		"before frame 2: signal back",
		"before frame 2: 10 frames lost, missed by the source",
		"before frame 4: irregular timestamp, frame number 14 is stamped 26.67 ms after number 13, 16.67 are due",
		"before frame 5: unplugged",
	}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Error(diff)
	}
}

func TestCopyKeepsEvents(t *testing.T) {
	src := &interrupting{script: script{format: small}, list: []any{
		frame(0, 1, 0),
		&capture.Interruption{Event: lab.SourceEvent{Kind: lab.SourceSignalLost}},
		frame(3, 4, 0),
	}}
	var sink gated
	st, err := capture.Copy(context.Background(), src, &sink)
	if err != nil || st.Frames != 2 || st.Interruptions != 1 || len(sink.events) != 1 || sink.events[0].Before != 1 || len(sink.gaps) != 1 {
		t.Errorf("Copy() = %+v, %v, events %+v, %d gaps; want 2 frames, 1 interruption before frame 1, 1 gap", st, err, sink.events,
			len(sink.gaps))
	}
}

func TestIrregularTimestamps(t *testing.T) {
	for _, c := range []struct {
		name  string
		steps []int64 // time since the frame before, in µs
		want  int
	}{
		{"regular", []int64{16667, 16667, 16667}, 0},
		{"59.94 called 60", []int64{16683, 16683, 16684}, 0},
		{"jitter of a millisecond", []int64{17667, 15667, 16667}, 0},
		{"a frame stamped a period late, the next on time", []int64{33333, 1, 16667}, 2},
		{"stands still", []int64{0, 16667}, 1},
		{"runs backwards", []int64{-5000}, 1},
	} {
		src := &interrupting{script: script{format: small}, list: []any{frame(0, 0, 0)}}
		at := int64(0)
		for i, d := range c.steps {
			f := frame(i+1, byte(i), 0)
			at += d * 1000
			f.Time = lab.Time(at)
			src.list = append(src.list, f)
		}
		var sink gated
		r, err := capture.Start(context.Background(), src, &sink, capture.Options{NoPriority: true})
		if err != nil {
			t.Fatal(err)
		}
		<-r.Done()
		if st, err := r.Stop(); err != nil || st.Irregular != c.want || len(sink.events) != c.want {
			t.Errorf("%s: %d irregular, want %d: %+v (%v)", c.name, st.Irregular, c.want, sink.events, err)
		}
	}
}

// A source whose rate changes is at its end: times before and after do not compare. One whose driver is wrong of its
// rate from the beginning is not.
func TestRateThatChanges(t *testing.T) {
	for _, c := range []struct {
		name         string
		before, then int64 // intervals in µs
		want         string
	}{
		{"to half", 16667, 33333, "before frame 71: format changed to 320 × 200 BGRX at 30/s, 30 frames in a row came at this rate"},
		{"to double", 16667, 8333, "before frame 71: format changed to 320 × 200 BGRX at 120/s, 30 frames in a row came at this rate"},
		{"a little", 16667, 17500, ""},
		{"never what was said", 33333, 33333, ""},
	} {
		src := &interrupting{script: script{format: small}, list: []any{frame(0, 0, 0)}}
		at := int64(0)
		for i := range 100 {
			f := frame(i+1, byte(i), 0)
			at += c.before * 1000
			if i >= 40 {
				at += (c.then - c.before) * 1000
			}
			f.Time = lab.Time(at)
			src.list = append(src.list, f)
		}
		var sink gated
		r, err := capture.Start(context.Background(), src, &sink, capture.Options{NoPriority: true, Ring: 128})
		if err != nil {
			t.Fatal(err)
		}
		<-r.Done()
		_, err = r.Stop()
		last := ""
		for _, e := range sink.events {
			if e.Kind == lab.SourceResized {
				last = e.String()
			}
		}
		if c.want != "" && r.Status().Trouble != err.(interface{ Unwrap() error }).Unwrap().Error() {
			t.Errorf("%s: the trial is told %q, want %q", c.name, r.Status().Trouble, err)
		}
		if last != c.want || errors.Is(err, capture.ErrRate) != (c.want != "") {
			t.Errorf("%s: event %q, %v; want %q", c.name, last, err, c.want)
		}
	}
}
