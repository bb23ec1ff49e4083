package visual

// span is a stretch of a row, from … to−1; empty where from ≥ to.
type span struct{ from, to int }

func (s span) empty() bool { return s.from >= s.to }

// with returns the span that covers both.
func (s span) with(o span) span {
	switch {
	case o.empty():
		return s
	case s.empty():
		return o
	}
	return span{min(s.from, o.from), max(s.to, o.to)}
}

// wider reaches further on both sides, inside a row of a width.
func (s span) wider(reach, width int) span {
	if s.empty() {
		return s
	}
	return span{max(s.from-reach, 0), min(s.to+reach, width)}
}

// spread fills in dst, for each row, what depends on pixels of src up to reach rows and columns away. Where borders
// are reflected, a pixel depends on none that is further away than reach, as long as the picture is larger than that.
func spread(dst, src []span, reach, width int) {
	for y := range dst {
		var s span
		for _, o := range src[max(y-reach, 0):min(y+reach+1, len(src))] {
			s = s.with(o)
		}
		dst[y] = s.wider(reach, width)
	}
}

// everything marks whole rows.
func everything(dst []span, width int) {
	for y := range dst {
		dst[y] = span{0, width}
	}
}
