package tearing

import "slices"

// replaced finds tears where a picture gives way to the next as a whole, as in a video
// or an animation: rows of a torn frame equal either the frame before or the one after.
// A page that is painted in two parts looks the same, so this counts only amid
// changes of the same rows at once.
type replaced struct {
	scroll  *scroll
	shown   []shown // the last distinct frames
	pending []Tear
	spans   []span // of every change, in order
	tears   []Tear
}

type shown struct {
	frame int
	l     *lineSet
}

// span is where the rows of two successive pictures differ.
type span struct {
	frame, top, bottom, rows int
	torn                     bool
}

func (w *replaced) frame(i int, l *lineSet) {
	if n := len(w.shown); n > 0 && slices.Equal(w.shown[n-1].l.whole, l.whole) {
		return
	}
	w.shown = append(w.shown, shown{i, l})
	if len(w.shown) > 3 {
		w.shown = w.shown[1:]
	}
	if n := len(w.shown); n > 1 {
		w.spans = append(w.spans, spanOf(w.shown[n-2].l, l, i))
	}
	if len(w.shown) < 3 {
		return
	}
	before, torn, after := w.shown[0], w.shown[1], w.shown[2]
	if n := len(w.pending); w.scroll.torn[before.frame] || n > 0 && w.pending[n-1].Frame == before.frame {
		return // the frame that completes a torn one shares rows with both
	}
	if after.frame-torn.frame > mostTorn {
		return
	}
	for _, pair := range [][2]*lineSet{{before.l, torn.l}, {torn.l, after.l}, {before.l, after.l}} {
		if _, scrolls := moved(pair[0], pair[1], nil); scrolls {
			return // that is for the other rule
		}
	}
	if rows, ok := between(before.l.whole, torn.l.whole, after.l.whole); ok {
		w.pending = append(w.pending, Tear{Frame: torn.frame, Rows: rows, How: "replaced picture"})
		w.spans[len(w.spans)-1].torn, w.spans[len(w.spans)-2].torn = true, true
	}
}

func spanOf(a, b *lineSet, frame int) span {
	s := span{frame: frame, top: -1}
	for y := range b.whole {
		if a.whole[y] != b.whole[y] {
			if s.top < 0 {
				s.top = y
			}
			s.bottom = y
			s.rows++
		}
	}
	return s
}

// between says whether the frame in the middle is made of bands of its neighbours.
func between(before, torn, after []uint64) (seams []int, ok bool) {
	var old, next, other, last, bands int
	for y := range torn {
		if before[y] == after[y] {
			if torn[y] != before[y] {
				other++
			}
			continue
		}
		is := 0
		switch torn[y] {
		case before[y]:
			old++
			is = 1
		case after[y]:
			next++
			is = 2
		default:
			other++
			continue
		}
		if is != last {
			if last != 0 {
				seams = append(seams, y)
			}
			last = is
			bands++
		}
	}
	few := max(4, len(torn)/50)
	return seams, old >= few && next >= few && other == 0 && bands >= 2 && bands <= 4
}

// evidence is within how many changes, before and after, how many others have to have
// replaced the same rows at once.
const (
	evidenceReach = 15
	evidenceLeast = 4
)

// finish keeps those tears that stand amid changes of the same rows at once.
func (w *replaced) finish() {
	for _, t := range w.pending {
		k := slices.IndexFunc(w.spans, func(s span) bool { return s.frame == t.Frame })
		if k < 0 || k+1 >= len(w.spans) {
			continue
		}
		// The picture that was torn spans both changes.
		top, bottom := min(w.spans[k].top, w.spans[k+1].top), max(w.spans[k].bottom, w.spans[k+1].bottom)
		rows := w.spans[k].rows + w.spans[k+1].rows
		alike, whole := 0, 0
		for i := max(k-evidenceReach, 0); i < min(k+evidenceReach, len(w.spans)); i++ {
			s := w.spans[i]
			if s.torn {
				continue
			}
			whole++
			slack := (bottom - top) / 10
			if s.top <= top+slack && s.bottom >= bottom-slack && 10*s.rows >= 8*rows {
				alike++
			}
		}
		if alike >= evidenceLeast && 2*alike >= whole {
			w.tears = append(w.tears, t)
		}
	}
}
