package reel_test

import (
	"bytes"
	"context"
	"errors"
	"image"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"eidetic/capture/reel"
	"eidetic/capture/synthetic"
	"eidetic/internal/lab"
)

var allFormats = []lab.PixelFormat{lab.BGRX, lab.BGR24, lab.YUYV, lab.UYVY, lab.NV12, lab.Grey}

// mutate changes a picture as screens do: boxes, scrolls, noise, or nothing.
func mutate(t *rapid.T, f lab.Format, pix []byte) {
	stride := f.Stride()
	switch rapid.SampledFrom([]string{"same", "box", "scroll", "noise", "fill", "point", "shades", "grey"}).Draw(t, "change") {
	case "box":
		x, y := rapid.IntRange(0, stride-1).Draw(t, "x"), rapid.IntRange(0, f.Height-1).Draw(t, "y")
		w, h := rapid.IntRange(1, stride-x).Draw(t, "w"), rapid.IntRange(1, f.Height-y).Draw(t, "h")
		v := rapid.Byte().Draw(t, "v")
		for row := y; row < y+h; row++ {
			for i := x; i < x+w; i++ {
				pix[row*stride+i] = v + byte(i*row)
			}
		}
	case "scroll":
		n := rapid.IntRange(1, f.Height-1).Draw(t, "rows") * stride
		if rapid.Bool().Draw(t, "up") {
			copy(pix, pix[n:])
		} else {
			copy(pix[n:], bytes.Clone(pix[:len(pix)-n]))
		}
	case "noise":
		seed := rapid.Uint32().Draw(t, "seed")
		for i := range pix {
			seed = seed*1664525 + 1013904223
			pix[i] += byte(seed>>24) & 3
		}
	case "fill":
		v := rapid.Byte().Draw(t, "v")
		for i := range pix {
			pix[i] = v
		}
	case "shades":
		seed := rapid.Uint32().Draw(t, "seed")
		for i := range pix {
			seed = seed*1664525 + 1013904223
			pix[i] = byte(i/stride+i%stride/16) + byte(seed>>24&seed>>28&1)
		}
	case "grey":
		seed := rapid.Uint32().Draw(t, "seed")
		value := func(i int) byte { return byte(uint32(i/20)*2654435761>>29) * byte(seed) }
		for i := range pix {
			switch {
			case f.Pixels == lab.BGRX && i%4 == 3:
				pix[i] = 0
			case f.Pixels == lab.BGRX:
				pix[i] = value(i / 4)
			case f.Pixels == lab.BGR24:
				pix[i] = value(i / 3)
			case f.Pixels == lab.YUYV && i%2 == 1, f.Pixels == lab.UYVY && i%2 == 0:
				pix[i] = 128
			default:
				pix[i] = value(i / 2)
			}
		}
	case "point":
		pix[rapid.IntRange(0, len(pix)-1).Draw(t, "at")]++
	}
}

func TestRoundTripIsBitExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := lab.Format{
			Pixels: rapid.SampledFrom(allFormats).Draw(t, "pixels"),
			Width:  rapid.IntRange(1, 200).Draw(t, "width"),
			Height: rapid.IntRange(2, 120).Draw(t, "height"),
			Rate:   60,
		}
		var file bytes.Buffer
		w, err := reel.NewWriter(&file, reel.Header{Format: f})
		if err != nil {
			t.Fatal(err)
		}
		var want [][]byte
		var infos []lab.FrameInfo
		pix := make([]byte, f.FrameSize())
		for i := range rapid.IntRange(0, 12).Draw(t, "frames") {
			mutate(t, f, pix)
			fr := lab.Frame{Pix: pix}
			fr.Seq, fr.Time, fr.Uncertainty = uint64(2*i), lab.Time(i)*16_666_667-5, time.Duration(i)
			fr.Flags = lab.FrameFlags(rapid.SampledFrom([]int{0, 2}).Draw(t, "flags"))
			fr.Changed = []image.Rectangle{f.Bounds()}
			if err := w.WriteFrame(fr); err != nil {
				t.Fatal(err)
			}
			want, infos = append(want, bytes.Clone(pix)), append(infos, fr.FrameInfo)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := reel.NewReader(bytes.NewReader(file.Bytes()), int64(file.Len()))
		if err != nil {
			t.Fatal(err)
		}
		if r.Len() != len(want) || r.Recovered() != nil {
			t.Fatalf("%d frames, %v; want %d", r.Len(), r.Recovered(), len(want))
		}
		order := rapid.Permutation(seq(len(want))).Draw(t, "order")
		kept := &keptRows{t: t, want: want}
		for _, i := range append(seq(len(want)), order...) {
			got, err := r.Pixels(i)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want[i]) {
				t.Fatalf("frame %d differs", i)
			}
			kept.maybe(r, i)
			info := r.Info(i)
			if i > 0 {
				outside(t, f, want[i-1], want[i], info.Changed)
			}
			info.Changed = infos[i].Changed
			if diff := cmp.Diff(infos[i], info); diff != "" {
				t.Fatalf("frame %d: %s", i, diff)
			}
			if i > 0 && (r.Sum(i) == r.Sum(i-1)) != bytes.Equal(want[i], want[i-1]) {
				t.Fatalf("frame %d: the sum does not tell whether it equals the one before", i)
			}
		}
	})
}

// keptRows are rows of frames, which nobody may write to.
type keptRows struct {
	t      *rapid.T
	want   [][]byte
	frames []int
	rows   [][][]byte
}

// maybe reads a frame's rows, or not, and looks whether the reader has written to some that it gave before.
func (k *keptRows) maybe(r *reel.Reader, frame int) {
	if rapid.Bool().Draw(k.t, "rows") {
		rows, moves, err := r.Rows(frame)
		if err != nil {
			k.t.Fatal(err)
		}
		for _, m := range moves {
			if box := r.Format().Bounds(); !m.R.In(box) || !m.R.Add(image.Pt(m.DX, m.DY)).In(box) {
				k.t.Fatalf("frame %d: %+v leaves the frame", frame, m)
			}
		}
		if rows != nil {
			k.frames, k.rows = append(k.frames, frame), append(k.rows, rows)
		}
	}
	for n, f := range k.frames {
		if !bytes.Equal(bytes.Join(k.rows[n], nil), k.want[f]) {
			k.t.Fatalf("after frame %d: the rows of frame %d are not its picture", frame, f)
		}
	}
}

// outside fails when a pixel outside of changed differs (first plane only).
func outside(t *rapid.T, f lab.Format, a, b []byte, changed []image.Rectangle) {
	for i := range f.Stride() * f.Height {
		if a[i] == b[i] {
			continue
		}
		p := image.Pt(i%f.Stride()*f.Width/f.Stride(), i/f.Stride())
		inside := false
		for _, r := range changed {
			inside = inside || p.In(r)
		}
		if !inside {
			t.Fatalf("pixel %v changed, which is outside of %v", p, changed)
		}
	}
}

func seq(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}

// film writes frames of a synthetic screen to a file and returns its path and the frames.
func film(t testing.TB, content synthetic.Content, frames int) (string, [][]byte) {
	t.Helper()
	f := lab.Format{Pixels: lab.BGRX, Width: 320, Height: 200, Rate: 60}
	src, err := synthetic.New(synthetic.Options{Format: f, Content: content, Frames: frames})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "test.reel")
	w, err := reel.Create(path, reel.Header{Format: f, Source: "synthetic", Wall: time.Unix(1e9, 0).UTC()})
	if err != nil {
		t.Fatal(err)
	}
	var want [][]byte
	for {
		fr, err := src.Next(context.Background())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := w.WriteFrame(fr); err != nil {
			t.Fatal(err)
		}
		want = append(want, bytes.Clone(fr.Pix))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path, want
}

func TestVerifyGoodReel(t *testing.T) {
	for _, c := range []synthetic.Content{synthetic.Static, synthetic.Load, synthetic.Scroll, synthetic.Noise} {
		path, want := film(t, c, 90)
		report, err := reel.Verify(path)
		if err != nil || !report.Good() || report.Frames != len(want) {
			t.Errorf("%s: %+v, %v", c, report, err)
		}
	}
}

func TestGapsAreKept(t *testing.T) {
	f := lab.Format{Pixels: lab.Grey, Width: 8, Height: 8, Rate: 60}
	var file bytes.Buffer
	w, err := reel.NewWriter(&file, reel.Header{Format: f})
	if err != nil {
		t.Fatal(err)
	}
	pix := make([]byte, 64)
	gap := lab.Gap{Seq: 1, Count: 3, Reason: lab.GapRing, From: 10, To: 50}
	steps := []error{
		w.WriteFrame(lab.Frame{FrameInfo: lab.FrameInfo{Seq: 0, Time: 10}, Pix: pix}),
		w.WriteGap(gap),
		w.WriteFrame(lab.Frame{FrameInfo: lab.FrameInfo{Seq: 4, Time: 50}, Pix: pix}),
		w.Close(),
	}
	if err := errors.Join(steps...); err != nil {
		t.Fatal(err)
	}
	gap.Before = 1
	for _, size := range []int{file.Len(), file.Len() - 5} { // with the index, and without
		r, err := reel.NewReader(bytes.NewReader(file.Bytes()), int64(size))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]lab.Gap{gap}, r.Gaps()); diff != "" || r.Lost() != 3 {
			t.Errorf("%d bytes: %s", size, diff)
		}
	}
}

func TestErrorsSayWhatIsWrong(t *testing.T) {
	f := lab.Format{Pixels: lab.BGRX, Width: 4, Height: 4, Rate: 60}
	newWriter := func() *reel.Writer {
		w, err := reel.NewWriter(io.Discard, reel.Header{Format: f})
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	full, err := reel.NewWriter(&limited{200}, reel.Header{Format: f})
	if err != nil {
		t.Fatal(err)
	}
	big := lab.Format{Pixels: lab.BGRX, Width: lab.MaxSide, Height: lab.MaxSide, Rate: 60}
	_, bigErr := reel.NewWriter(io.Discard, reel.Header{Format: big})
	_, notReel := reel.NewReader(bytes.NewReader(make([]byte, 1000)), 1000)
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"no pixels", newWriter().WriteFrame(lab.Frame{}), "write frame 0 of the reel: the first frame has no pixels"},
		{"short", newWriter().WriteFrame(lab.Frame{Pix: make([]byte, 3)}),
			"write frame 0 of the reel: the frame has 3 bytes, the format 64"},
		{"disk full", full.WriteFrame(lab.Frame{Pix: []byte("0123456789abcdef0123456789ABCDEF0123456789abcdef0123456789ABCDEF")}),
			"write frame 0 of the reel: no space left on device"},
		{"too large", bigErr, "create reel: a frame of 16384 × 16384 BGRX has 1073741824 bytes, more than 268435456"},
		{"no reel", notReel, "this is not a reel (its first bytes are not a reel's)"},
	} {
		if c.err == nil || c.err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.name, c.err, c.want)
		}
	}
}

// limited is a disk with room for n bytes.
type limited struct{ n int }

func (l *limited) Write(b []byte) (int, error) {
	if len(b) > l.n {
		return 0, errors.New("no space left on device")
	}
	l.n -= len(b)
	return len(b), nil
}

func TestRecoveryKeepsEvents(t *testing.T) {
	f := lab.Format{Pixels: lab.Grey, Width: 8, Height: 8, Rate: 60}
	dir := t.TempDir()
	path := filepath.Join(dir, "whole.reel")
	w, err := reel.Create(path, reel.Header{Format: f})
	if err != nil {
		t.Fatal(err)
	}
	write := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	still := func(seq uint64) lab.Frame {
		fr := lab.Frame{Pix: make([]byte, f.FrameSize())}
		fr.Seq, fr.Time, fr.Changed = seq, lab.Time(seq), []image.Rectangle{f.Bounds()}
		return fr
	}
	next := f
	next.Width = 16
	write(w.WriteFrame(still(0)))
	write(w.WriteEvent(lab.SourceEvent{Kind: lab.SourceSignalLost, Time: 1, Detail: "cable"}))
	write(w.WriteGap(lab.Gap{Seq: 1, Count: 4, Reason: lab.GapSource}))
	write(w.WriteFrame(still(5)))
	write(w.WriteEvent(lab.SourceEvent{Kind: lab.SourceResized, Time: 6, Format: &next}))
	write(w.Close())

	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(dir, "cut.reel")
	write(os.WriteFile(cut, data[:len(data)-10], 0o644)) // the index is gone
	saved := filepath.Join(dir, "saved.reel")
	if _, err := reel.Recover(cut, saved); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"before frame 1: signal lost, cable",
		"before frame 1: 4 frames lost, missed by the source",
		"before frame 2: format changed to 16 × 8 GREY at 60/s",
	}
	for _, path := range []string{path, cut, saved} {
		r, err := reel.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, n := range r.Notes() {
			got = append(got, n.String())
		}
		r.Close()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
}
