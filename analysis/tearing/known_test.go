package tearing

import (
	"testing"

	"eidetic/analysis/visual"
)

// TestKnownPictureThatStays: a torn picture that is shown for several frames is completed by the one after it, and
// counted once.
func TestKnownPictureThatStays(t *testing.T) {
	c := &visual.Curves{Regions: []visual.Curve{{Pixels: 100, Changed: []int{0, 100, 0, 30, 0, 0, 70, 0, 100, 40, 60}}}}
	r := Known(c, 0)
	if len(r.Tears) != 2 || r.Tears[0].Frame != 3 || r.Tears[1].Frame != 9 || r.Looked != 6 {
		t.Errorf("Known() = %+v; want frames 3 and 9 of 6 that differ", r)
	}
}
