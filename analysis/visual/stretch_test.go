package visual

import (
	"image"
	"math/rand/v2"
	"slices"
	"testing"

	"eidetic/internal/lab"
)

// TestStretches: equal stretches of every format have equal sums and others have others, wherever they
// stand; the sum of one colour is 0. Pieces of one colour are told from others.
func TestStretches(t *testing.T) {
	for _, pixels := range []lab.PixelFormat{lab.BGRX, lab.BGR24, lab.Grey, lab.YUYV, lab.NV12} {
		f := lab.Format{Pixels: pixels, Width: 96, Height: 24, Rate: 60}
		a, err := NewAccess(f)
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(1, 2))
		row, whole := make([]uint32, f.Width), make([]uint32, f.Width)
		contents := map[uint64]string{}
		for range 3000 {
			mem := make([]byte, f.FrameSize())
			for range 1 + r.IntN(3) { // few pixels that differ, at the beginnings and ends of words
				mem[r.IntN(len(mem))] = byte(1 + r.IntN(255))
			}
			pix := Flat(mem)
			if pixels != lab.NV12 && r.IntN(2) == 0 {
				pix = Raster{rows: slices.Collect(slices.Chunk(mem, f.Stride()))}
			}
			y, n := r.IntN(f.Height), 1+r.IntN(40)
			x := r.IntN(f.Width - n + 1)
			sum := a.StretchSum(pix, y, x, n, row)
			a.Row(whole[:n], pix, y, x)
			flat, text := true, ""
			for _, c := range whole[:n] {
				flat = flat && c == whole[0]
				text += string(rune(c&0xff)) + string(rune(c>>8&0xff)) + string(rune(c>>16&0xff))
			}
			if flat != (sum == 0) {
				t.Fatalf("%s: the sum of %x is %d, of one colour: %v", pixels, whole[:n], sum, flat)
			}
			if before, there := contents[sum]; !flat && there && before != text {
				t.Fatalf("%s: %x and %x have one sum", pixels, before, text)
			}
			contents[sum] = text
			checkPlain(t, a, f, pix, row, whole)
		}
	}
}

// checkPlain holds Plain to a look at every pixel.
func checkPlain(t *testing.T, a Access, f lab.Format, pix Raster, row, whole []uint32) {
	t.Helper()
	corner, size, side := image.Pt(3, 1), image.Pt(11, 2), 8
	got := make([]bool, size.X*size.Y)
	a.Plain(got, pix, corner, size, side, row)
	for i, is := range got {
		at := corner.Add(image.Pt(i%size.X*side, i/size.X*side))
		a.Row(whole[:1], pix, at.Y, at.X)
		first, want := whole[0], true
		for y := range side {
			a.Row(whole[:side], pix, at.Y+y, at.X)
			for _, c := range whole[:side] {
				want = want && c == first
			}
		}
		if is != want {
			t.Fatalf("%s: the piece at %v has one colour: %v, want %v", f.Pixels, at, is, want)
		}
	}
}
