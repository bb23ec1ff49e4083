package diff

import "image"

// maxDisjoint is how many rectangles are kept apart: beyond it, looking for
// overlaps would cost more than comparing the area between them.
const maxDisjoint = 64

// Disjoint returns rectangles that cover all of rs and do not overlap. It
// works in rs's memory.
func Disjoint(rs []image.Rectangle) []image.Rectangle {
	if len(rs) > maxDisjoint {
		all := image.Rectangle{}
		for _, r := range rs {
			all = all.Union(r)
		}
		return append(rs[:0], all)
	}
	for i := 0; i < len(rs); i++ {
		for j := i + 1; j < len(rs); j++ {
			if rs[i].Overlaps(rs[j]) || rs[j].Empty() {
				rs[i] = rs[i].Union(rs[j])
				rs = append(rs[:j], rs[j+1:]...)
				j = i // rs[i] has grown: look at all others again
			}
		}
	}
	// Growing rs[i] may have made it overlap an earlier one.
	for i := range rs {
		for j := range i {
			if rs[i].Overlaps(rs[j]) {
				return Disjoint(rs)
			}
		}
	}
	return rs
}
