package mjpeg

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"io"
	"slices"
	"testing"

	"eidetic/capture"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// list is a source of pictures and interruptions.
type list struct {
	format lab.Format
	all    []any // []byte or error
	n      int
	closed bool
}

func (l *list) Format() lab.Format { return l.format }
func (l *list) Close() error       { l.closed = true; return nil }

func (l *list) Next(context.Context) (lab.Frame, error) {
	if l.n == len(l.all) {
		return lab.Frame{}, io.EOF
	}
	l.n++
	switch one := l.all[l.n-1].(type) {
	case error:
		return lab.Frame{}, one
	default:
		return lab.Frame{FrameInfo: lab.FrameInfo{Seq: uint64(l.n), Time: lab.Time(l.n)}, Pix: one.([]byte)}, nil
	}
}

var format = lab.Format{Pixels: lab.MJPEG, Width: 50, Height: 34, Rate: 60}

// picture is a JPEG of one colour.
func picture(t testing.TB, c color.Color, w, h int) []byte {
	t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	for i := range w * h {
		m.Set(i%w, i/w, c)
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, m, &jpeg.Options{Quality: 95}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// withoutTables is the JPEG as grabbers send it.
func withoutTables(t testing.TB, code []byte) []byte {
	t.Helper()
	segment, ok := find(code, markerTables)
	if !ok {
		t.Fatal("the encoder writes no tables")
	}
	return slices.Concat(code[:bytes.Index(code, segment)], code[bytes.Index(code, segment)+len(segment):])
}

// TestWithoutEnd: a picture without the marker of its end is decoded, also with zeros behind it, and one with zeros or
// JPEGs of nothing before it; one that was cut off earlier is not.
func TestWithoutEnd(t *testing.T) {
	whole := picture(t, color.RGBA{200, 30, 90, 255}, format.Width, format.Height)
	f := format
	f.Pixels = lab.BGRX
	want, got := make([]byte, f.FrameSize()), make([]byte, f.FrameSize())
	if err := Decode(want, whole, f); err != nil {
		t.Fatal(err)
	}
	open := whole[:len(whole)-2]
	for name, code := range map[string][]byte{
		"no end": open, "zeros": slices.Concat(open, make([]byte, 5)), "end and zeros": slices.Concat(whole, make([]byte, 5)),
		"zeros before": slices.Concat(make([]byte, 5), whole), "nothing before": []byte("\xff\xd8\xff\xd9\xff\xd8\xff\xd9" + string(withoutTables(t, whole))),
	} {
		clear(got)
		if err := Decode(got, code, f); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v; want the picture", name, err)
		}
	}
	if err := Decode(got, whole[:len(whole)-20], f); err == nil {
		t.Error("a picture that was cut off is taken for a whole one")
	}
}

// TestSource: pictures come out in their order with their times, decoded; equal bytes are a repetition, bytes that are
// no picture, also the same ones again, mark the picture before, and an interruption stands where it stood.
func TestSource(t *testing.T) {
	green, red := picture(t, color.RGBA{0, 255, 0, 255}, 50, 34), picture(t, color.RGBA{200, 0, 0, 255}, 50, 34)
	gone := &capture.Interruption{Event: lab.SourceEvent{Kind: "signal lost"}}
	from := &list{format: format, all: []any{[]byte("no JPEG"), green, green, withoutTables(t, red), gone, red[:len(red)/2], red[:len(red)/2],
		picture(t, color.Black, 8, 8), green}}
	s := New(from)
	if s.Format().Pixels != lab.BGRX || s.Format().Width != 50 {
		t.Fatalf("format %+v", s.Format())
	}
	type got struct {
		seq     uint64
		flags   lab.FrameFlags
		colour  string
		changed bool
	}
	name := func(pix []byte) string { // the encoder rounds
		switch p := pix[4*(50*20+30):]; {
		case p[0] < 40 && p[1] > 215 && p[2] < 40:
			return "green"
		case p[0] < 40 && p[1] < 40 && p[2] > 160:
			return "red"
		case p[0]+p[1]+p[2] == 0:
			return "black"
		default:
			return fmt.Sprint(p[:4])
		}
	}
	var all []got
	gaps := 0
	for {
		f, err := s.Next(t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			if !errors.Is(err, error(gone)) || len(all) != 4 {
				t.Errorf("after %d pictures: %v", len(all), err)
			}
			gaps++
			continue
		}
		all = append(all, got{f.Seq, f.Flags, name(f.Pix), len(f.Changed) > 0})
	}
	want := []got{
		{1, lab.FrameCorrupt, "black", true}, {2, 0, "green", true}, {3, lab.FrameRepeat, "green", false}, {4, 0, "red", true},
		{6, lab.FrameCorrupt, "red", true}, {7, lab.FrameCorrupt, "red", true}, {8, lab.FrameCorrupt, "red", true}, {9, 0, "green", true},
	}
	if !slices.Equal(all, want) || gaps != 1 {
		t.Errorf("%+v, %d interruptions; want %+v and one", all, gaps, want)
	}
	if err := s.Close(); err != nil || !from.closed {
		t.Errorf("closed: %v, %v", from.closed, err)
	}
}

// TestNotCompressed: another source stays what it is.
func TestNotCompressed(t *testing.T) {
	from := &list{format: lab.Format{Pixels: lab.YUYV, Width: 2, Height: 2, Rate: 60}}
	if New(from) != capture.Source(from) {
		t.Error("a source of YUYV is decoded")
	}
}

func FuzzDecode(f *testing.F) {
	code := picture(f, color.RGBA{1, 2, 3, 255}, 50, 34)
	f.Add(code)
	f.Add(withoutTables(f, code))
	f.Add(code[:100])
	pix := make([]byte, 4*50*34)
	f.Fuzz(func(t *testing.T, b []byte) {
		testlab.Bounded(t, 16<<20, func() { _ = Decode(pix, b, format) })
	})
}

func BenchmarkDecode(b *testing.B) {
	const w, h = 1920, 1080
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	for i := range m.Pix {
		m.Pix[i] = byte(i * i >> 9)
	}
	var code bytes.Buffer
	if err := jpeg.Encode(&code, m, &jpeg.Options{Quality: 80}); err != nil {
		b.Fatal(err)
	}
	pix := make([]byte, 4*w*h)
	for b.Loop() {
		if err := Decode(pix, code.Bytes(), lab.Format{Pixels: lab.MJPEG, Width: w, Height: h}); err != nil {
			b.Fatal(err)
		}
	}
}
