package visual

// maxNoise is the most that a channel of one colour may differ by and still count as equal: beyond
// it, grey text on white would not be seen.
const maxNoise = 64

// settle returns what a pixel counts as that was one code and is now another, in a recording with
// noise: its final code or its old one, if it is within the noise of it. The final code goes first,
// so that the walk ends at the final frame.
func (s *screen) settle(was, is, final code) code {
	switch {
	case s.near(is, final):
		return final
	case s.near(is, was):
		return was
	}
	return is
}

// near says that no channel of two codes differs by more than the noise.
func (s *screen) near(a, b code) bool {
	for shift := 0; shift <= 16; shift += 8 {
		if d := int32(a>>shift&255) - int32(b>>shift&255); d > s.noise || -d > s.noise {
			return false
		}
	}
	return true
}
