package settle

import (
	"image"
	"testing"

	"eidetic/analysis/visual"
	"eidetic/internal/lab"

	"github.com/google/go-cmp/cmp"
)

// TestUnrest: what changes once is content, what changes again and again is not; blinking parts of one
// thing are one region, and what rested before the instant is none.
func TestUnrest(t *testing.T) {
	content := image.Rect(16, 8, 16+160, 8+80)
	u := NewUnrest(content)
	now := &visual.Picture{Area: content, Pix: make([]uint32, content.Dx()*content.Dy())}
	paint := func(at int, parts ...image.Rectangle) {
		before := *now
		now = &visual.Picture{Area: content, Pix: append([]uint32(nil), before.Pix...)}
		for _, r := range parts {
			for y := r.Min.Y; y < r.Max.Y; y++ {
				for x := r.Min.X; x < r.Max.X; x++ {
					now.Row(y, x, x+1)[0]++
				}
			}
		}
		u.Add(lab.Time(at), &before, now)
	}
	dots, caret, old, content1 := image.Rect(20, 12, 22, 14), image.Rect(36, 12, 38, 20), image.Rect(100, 70, 104, 74), image.Rect(60, 20, 160, 60)
	paint(1, old)
	paint(2, old)
	for at := 10; at < 20; at++ {
		paint(at, dots, caret)
	}
	paint(20, content1)
	// The caret spans two rows of cells; the dots are two cells away, and so belong to it.
	want := []image.Rectangle{image.Rect(16, 8, 40, 24)}
	if d := cmp.Diff(want, u.Regions(5)); d != "" {
		t.Errorf("Regions() since 5 (-want +got):\n%s", d)
	}
	if all := u.Regions(0); len(all) != 2 {
		t.Errorf("Regions() since the beginning = %v; want what rested later, too", all)
	}
}
