package diff_test

import (
	"bytes"
	"image"
	"testing"

	"pgregory.net/rapid"

	"eidetic/capture/diff"
	"eidetic/internal/lab"
)

func TestRectanglesCoverEveryDifferenceAndNothingTwice(t *testing.T) {
	formats := []lab.PixelFormat{lab.BGRX, lab.BGR24, lab.YUYV, lab.UYVY, lab.NV12, lab.Grey}
	var find diff.Finder
	rapid.Check(t, func(t *rapid.T) {
		f := lab.Format{
			Pixels: rapid.SampledFrom(formats).Draw(t, "pixels"),
			Width:  rapid.IntRange(1, 700).Draw(t, "width"),
			Height: rapid.IntRange(1, 60).Draw(t, "height"),
			Rate:   60,
		}
		prev := make([]byte, f.FrameSize())
		cur := bytes.Clone(prev)
		for range rapid.IntRange(0, 6).Draw(t, "changes") {
			at := rapid.IntRange(0, len(cur)-1).Draw(t, "at")
			for i := at; i < min(len(cur), at+rapid.IntRange(1, 300).Draw(t, "length")); i++ {
				cur[i]++
			}
		}
		for _, p := range diff.Planes(f) {
			rects := find.Plane(nil, p, prev, cur, p.Bounds())
			seen := make([]int, p.Size())
			for _, r := range rects {
				if r.Empty() || !r.In(p.Bounds()) {
					t.Fatalf("rectangle %v of plane %v", r, p.Bounds())
				}
				for y := r.Min.Y; y < r.Max.Y; y++ {
					for i := r.Min.X * p.Unit; i < r.Max.X*p.Unit; i++ {
						seen[y*p.Stride+i]++
					}
				}
			}
			for i, n := range seen {
				if differs := prev[p.Off+i] != cur[p.Off+i]; n > 1 || differs && n == 0 {
					t.Fatalf("byte %d of the plane (differs: %v) is in %d of %v", i, differs, n, rects)
				}
			}
			if bytes.Equal(prev, cur) && len(rects) > 0 {
				t.Fatalf("equal frames differ in %v", rects)
			}
		}
	})
}

func TestDisjoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var rs []image.Rectangle
		for range rapid.IntRange(0, 80).Draw(t, "n") {
			x, y := rapid.IntRange(0, 50).Draw(t, "x"), rapid.IntRange(0, 50).Draw(t, "y")
			rs = append(rs, image.Rect(x, y, x+rapid.IntRange(1, 9).Draw(t, "w"), y+rapid.IntRange(1, 9).Draw(t, "h")))
		}
		in := append([]image.Rectangle(nil), rs...)
		out := diff.Disjoint(rs)
		for i, r := range out {
			for _, q := range out[:i] {
				if r.Overlaps(q) {
					t.Fatalf("%v and %v overlap", r, q)
				}
			}
		}
		for _, r := range in {
			inside := false
			for _, q := range out {
				inside = inside || r.In(q)
			}
			if !inside {
				t.Fatalf("%v is not in %v", r, out)
			}
		}
	})
}

func TestPrefixAndSuffix(t *testing.T) {
	for n := range 40 {
		a := make([]byte, 40)
		b := bytes.Clone(a)
		b[n] = 1
		if got := diff.Prefix(a, b); got != n {
			t.Errorf("prefix %d, want %d", got, n)
		}
		if got := diff.Suffix(a, b); got != 39-n {
			t.Errorf("suffix %d, want %d", got, 39-n)
		}
	}
	same := make([]byte, 17)
	if diff.Prefix(same, same) != 17 || diff.Suffix(same, same) != 17 {
		t.Error("equal bytes are not equal")
	}
}
