package reel

import (
	"bytes"
	"image"
	"testing"

	"pgregory.net/rapid"

	"eidetic/capture/diff"
	"eidetic/internal/lab"
)

func TestQuads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SliceOf(rapid.OneOf(rapid.SampledFrom([]byte{0xff, 0, 1}), rapid.Byte())).Draw(t, "residuals")
		q, rest := quads(nil, nil, s)
		if len(q) != (len(s)+3)/4 {
			t.Fatalf("%d bytes for %d residuals", len(q), len(s))
		}
		got := make([]byte, len(s))
		if !unquads(got, q, rest) || !bytes.Equal(got, s) {
			t.Fatalf("%v became %v (%v, rest %v)", s, got, q, rest)
		}
		if unquads(got, q, append(rest, 7)) {
			t.Fatal("a residual too many is not noticed")
		}
		if len(rest) > 0 && unquads(got, q, rest[1:]) {
			t.Fatal("a missing residual is not noticed")
		}
	})
}

func TestGrey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := lab.Format{
			Pixels: rapid.SampledFrom([]lab.PixelFormat{lab.BGRX, lab.BGR24, lab.YUYV, lab.UYVY}).Draw(t, "pixels"),
			Width:  rapid.IntRange(1, 40).Draw(t, "width"), Height: 3, Rate: 60,
		}
		pix := make([]byte, f.FrameSize())
		p, luma := diff.Planes(f)[0], components(f)[0][0]
		samples := rapid.SliceOfN(rapid.Byte(), luma.perRow(p, p.Units()), luma.perRow(p, p.Units())).Draw(t, "samples")
		for y := range f.Height {
			ungrey(p.Row(pix, y, 0, p.Units()), samples, f.Pixels)
		}
		all := image.Rect(0, 0, p.Units(), f.Height)
		if !isGrey(f.Pixels, p, pix, all) {
			t.Fatalf("%v is not taken as grey", pix)
		}
		got := make([]byte, len(samples))
		if luma.gather(got, p.Row(pix, 1, 0, p.Units())); !bytes.Equal(got, samples) {
			t.Fatalf("%v became %v", samples, got)
		}
		at := rapid.IntRange(0, len(pix)-1).Draw(t, "at")
		luminous := (f.Pixels == lab.YUYV && at%2 == 0) || (f.Pixels == lab.UYVY && at%2 == 1)
		pix[at]++
		if !luminous && isGrey(f.Pixels, p, pix, all) {
			t.Fatalf("byte %d has colour and is taken as grey", at)
		}
	})
}
