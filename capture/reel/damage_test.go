package reel

import (
	"bytes"
	"image"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"eidetic/internal/lab"
)

// sample is a reel with everything in it, and what is known of it.
type sample struct {
	data   []byte
	blocks []block
	pix    [][]byte // of each frame
}

var sampleFormat = lab.Format{Pixels: lab.BGRX, Width: 70, Height: 40, Rate: 60}

// newSample writes key frames and chains of frames on them, gaps and events.
func newSample(t *testing.T) sample {
	t.Helper()
	f := sampleFormat
	var file bytes.Buffer
	w, err := NewWriter(&file, Header{Format: f, Source: "sample"})
	if err != nil {
		t.Fatal(err)
	}
	var s sample
	pix := make([]byte, f.FrameSize())
	noise := uint32(1)
	for n := range 24 {
		switch {
		case n%6 == 0: // all new: a key frame
			for i := range pix {
				noise = noise*1664525 + 1013904223
				pix[i] = byte(noise >> 24)
			}
		case n%6 == 5: // nothing changes
		default:
			copy(pix, pix[f.Stride():])
		}
		fr := lab.Frame{Pix: pix}
		fr.Seq, fr.Time, fr.Changed = uint64(n), lab.Time(n)*16_666_667, []image.Rectangle{f.Bounds()}
		err := w.WriteFrame(fr)
		if n == 7 && err == nil {
			err = w.WriteGap(lab.Gap{Seq: 100, Count: 3, Reason: lab.GapSource})
		}
		if n%10 == 8 && err == nil {
			err = w.WriteEvent(lab.SourceEvent{Kind: lab.SourceIrregular, Time: fr.Time})
		}
		if err != nil {
			t.Fatal(err)
		}
		s.pix = append(s.pix, bytes.Clone(pix))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	s.data = file.Bytes()
	for at := int64(len(magic)); at < int64(len(s.data)); {
		b, err := readBlock(bytes.NewReader(s.data), at, int64(len(s.data)))
		if err != nil {
			t.Fatal(err)
		}
		s.blocks = append(s.blocks, b)
		at = b.end()
	}
	return s
}

// frame returns how many frames begin before block n.
func (s sample) frame(n int) int {
	frames := 0
	for _, b := range s.blocks[:n] {
		if b.kind == blockFrame {
			frames++
		}
	}
	return frames
}

// keyFrom returns the first key frame from frame i on.
func (s sample) keyFrom(t *rapid.T, i int) int {
	frame := 0
	for _, b := range s.blocks {
		if b.kind != blockFrame {
			continue
		}
		h, err := parseFrameHead(b.head, image.Rect(0, 0, 70, 40))
		if err != nil {
			t.Fatal(err)
		}
		if h.key && frame >= i {
			return frame
		}
		frame++
	}
	return frame
}

// recover writes data to a file and recovers it.
func (s sample) recover(t *rapid.T, dir string, data []byte) (Report, *Reader) {
	in, out := filepath.Join(dir, "in.reel"), filepath.Join(dir, "out.reel")
	_ = os.Remove(out) // of the case before
	if err := os.WriteFile(in, data, 0o644); err != nil {
		t.Fatal(err)
	}
	verified, err := Verify(in)
	if err != nil {
		t.Fatal(err)
	}
	report, err := Recover(in, out)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Damage) != len(verified.Damage) {
		t.Fatalf("verify names %v, recover %v", verified.Damage, report.Damage)
	}
	if again, err := Verify(out); err != nil || !again.Good() || again.Frames != report.Frames {
		t.Fatalf("what was recovered is %+v, %v", again, err)
	}
	r, err := Open(out)
	if err != nil {
		t.Fatal(err)
	}
	return report, r
}

// has checks that the recovered reel holds frames from … to, as they were.
func (s sample) has(t *rapid.T, r *Reader, from, to int) {
	found := 0
	for i := range r.Len() {
		n := int(r.Info(i).Seq)
		pix, err := r.Pixels(i)
		if err != nil || !bytes.Equal(pix, s.pix[n]) {
			t.Fatalf("frame %d is not as it was (%v)", n, err)
		}
		if n >= from && n < to {
			found++
		}
	}
	if found != to-from {
		t.Fatalf("%d of the frames %d … %d were recovered", found, from, to-1)
	}
}

// TestCutAnywhere cuts the file at every block's boundary, beside it, and at
// random places, as a power cut does.
func TestCutAnywhere(t *testing.T) {
	s := newSample(t)
	dir := t.TempDir()
	cut := func(t *rapid.T, at int) {
		if at <= int(s.blocks[0].end()) { // inside the header
			if _, err := NewReader(bytes.NewReader(s.data[:at]), int64(at)); at < int(s.blocks[0].end()) && err == nil {
				t.Fatalf("cut at %d: a reel without a header is read", at)
			}
			return
		}
		n := 0 // the block that is cut, or that would begin here
		for int64(at) >= s.blocks[n].end() {
			n++
		}
		report, r := s.recover(t, dir, s.data[:at])
		defer r.Close()
		whole := s.frame(n)
		s.has(t, r, 0, whole)
		if r.Len() != whole || len(report.Damage) != 1 {
			t.Fatalf("cut at %d: %d frames instead of %d, damage %v", at, r.Len(), whole, report.Damage)
		}
		d := report.Damage[0]
		if inside := int64(at) > s.blocks[n].at; inside && (d.Offset != s.blocks[n].at || d.Frame != whole ||
			d.Length != int64(at)-s.blocks[n].at) || !inside && d.Frame != -1 {
			t.Fatalf("cut at %d, in the block at %d before frame %d: the damage is named as %+v", at, s.blocks[n].at, whole, d)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.IntRange(0, len(s.data)-1).Draw(t, "at")
		if rapid.Bool().Draw(t, "beside a boundary") {
			b := rapid.SampledFrom(s.blocks).Draw(t, "block")
			at = int(b.at) + rapid.IntRange(-1, 1).Draw(t, "beside")
		}
		cut(t, at)
	})
}

// TestFlippedBitAnywhere flips single bits. Each is named with the place of
// its block and the frame; all frames before it and from the next key frame on are saved.
func TestFlippedBitAnywhere(t *testing.T) {
	s := newSample(t)
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.IntRange(0, len(s.data)-1).Draw(t, "at")
		bad := bytes.Clone(s.data)
		bad[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if int64(at) < s.blocks[0].end() {
			if _, err := NewReader(bytes.NewReader(bad), int64(len(bad))); err == nil {
				t.Fatal("a reel with a damaged header is read")
			}
			return
		}
		n := 0
		for int64(at) >= s.blocks[n].end() {
			n++
		}
		b := s.blocks[n]
		report, r := s.recover(t, dir, bad)
		defer r.Close()
		frame := s.frame(n)
		s.has(t, r, 0, frame)
		from := frame
		if b.kind == blockFrame {
			from = s.keyFrom(t, frame+1)
		}
		s.has(t, r, from, len(s.pix))
		if missing := len(s.pix) - r.Len(); missing != r.Lost()-lostIn(r) {
			t.Fatalf("%d frames are missing, gaps name %v", missing, r.Gaps())
		}
		found := false
		for _, d := range report.Damage {
			switch b.kind {
			case blockIndex, blockEnd:
				found = found || d.Offset >= s.blocks[len(s.blocks)-2].at
			default:
				found = found || d.Offset == b.at && d.Frame == frame
			}
		}
		if !found || len(report.Damage) != 1 {
			t.Fatalf("the block at %d, of type %d before frame %d, is damaged: named as %+v", b.at, b.kind, frame, report.Damage)
		}
	})
}

// TestJoined: of two reels in one file the first is read.
func TestJoined(t *testing.T) {
	s := newSample(t)
	for name, data := range map[string][]byte{
		"both whole": append(bytes.Clone(s.data), s.data...), "the first cut off": append(bytes.Clone(s.data[:s.blocks[10].at]), s.data...),
	} {
		path := filepath.Join(t.TempDir(), "joined.reel")
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		report, err := Verify(path)
		want := len(s.pix)
		if name != "both whole" {
			want = s.frame(10)
		}
		if err != nil || report.Frames != want || len(report.Damage) == 0 || !strings.Contains(report.Damage[len(report.Damage)-1].What, "another reel begins") {
			t.Errorf("%s: %+v, %v; want %d frames, and that another reel begins", name, report, err, want)
		}
	}
}

// lostIn returns the frames that were lost while recording and are still named so.
func lostIn(r *Reader) int {
	n := 0
	for _, g := range r.Gaps() {
		if g.Reason == lab.GapSource {
			n += g.Count
		}
	}
	return n
}
