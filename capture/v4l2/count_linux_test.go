package v4l2

import (
	"slices"
	"testing"
)

// TestCount: frames are numbered as the driver numbers them, across the end of its 32 bits; a buffer that comes after a
// later one is left out, so it is one lost frame and not four thousand million.
func TestCount(t *testing.T) {
	const most = 1<<32 - 1
	for _, c := range []struct {
		name   string
		driver []uint32
		want   []uint64 // of those that are given
	}{
		{"in order", []uint32{5, 6, 8}, []uint64{5, 6, 8}},
		{"out of order", []uint32{5, 7, 6, 8, 9}, []uint64{5, 7, 8, 9}},
		{"none", []uint32{0, 0, 0}, []uint64{0, 1, 2}},
		{"the end of 32 bits", []uint32{most - 1, most, 1}, []uint64{most - 1, most, most + 2}},
		{"anew", []uint32{100, 101, 0, 1}, []uint64{100, 101, 102, 103}},
	} {
		s := &Source{maps: make([][][]byte, 4)}
		var got []uint64
		for _, n := range c.driver {
			if !s.isLate(n) {
				got = append(got, s.count(n))
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %d are frames %d; want %d", c.name, c.driver, got, c.want)
		}
	}
}
