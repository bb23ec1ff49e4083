package tearing

import (
	"slices"

	"eidetic/analysis/lines"
)

// scroll finds tears in a page that moves up and down. In a torn frame bands of rows show
// the page where it was before and bands show it moved; the frame after has moved as a
// whole. A header that stays is the same in all three frames and says nothing.
type scroll struct {
	shown []shown // the last distinct frames
	torn  map[int]bool
	tears []Tear
}

// mostShown is how many distinct frames are kept: two torn ones between whole ones, and one
// that is to be judged.
const mostShown = 5

// mostTorn is for how many captured frames a screen shows a torn picture: what stays longer
// is what was drawn.
const mostTorn = 2

func newScroll() *scroll { return &scroll{torn: map[int]bool{}} }

func (s *scroll) frame(i int, l *lineSet) {
	if n := len(s.shown); n > 0 && slices.Equal(s.shown[n-1].l.whole, l.whole) {
		return
	}
	s.shown = append(s.shown, shown{i, l})
	if n := len(s.shown); n > mostShown {
		delete(s.torn, s.shown[0].frame)
		s.shown = s.shown[1:]
	}
	n := len(s.shown)
	if n >= 3 {
		s.judge(n-2, n-3)
	}
	if n >= 4 { // two torn frames between two whole ones
		s.judge(n-3, n-4)
		s.judge(n-2, n-4)
	}
}

// judge compares a frame with the newest and one before it, which is whole.
func (s *scroll) judge(k, before int) {
	frame, old := s.shown[k], s.shown[before]
	if s.torn[frame.frame] || s.torn[old.frame] || s.shown[k+1].frame-frame.frame > mostTorn {
		return
	}
	if before != k-1 && !s.torn[s.shown[k-1].frame] {
		return
	}
	rows, ok := bandsOf(old.l, frame.l, s.shown[len(s.shown)-1].l)
	if !ok {
		return
	}
	s.torn[frame.frame] = true
	at, _ := slices.BinarySearchFunc(s.tears, frame.frame, func(t Tear, f int) int { return t.Frame - f })
	s.tears = slices.Insert(s.tears, at, Tear{Frame: frame.frame, Rows: rows, How: "scrolled page"})
}

// tally counts votes for displacements, of −rows … rows.
type tally []int32

// votes counts, for the rows of now that differ from old in their place, by how much a row
// that occurs once in old is displaced.
func votes(old, now *lineSet) tally {
	count := make(tally, 2*len(now.whole)+1)
	var where lines.Table
	for k := range now.strips {
		count.count(&where, old.strips[k], now.strips[k])
	}
	return count
}

// count adds the votes of one strip.
func (t tally) count(where *lines.Table, old, now []uint64) {
	where.Reset(len(old))
	for y, h := range old {
		where.Add(h, y)
	}
	for y, h := range now {
		if h == 0 || h == old[y] {
			continue
		}
		if from := where.At(h); from >= 0 {
			t[y-from+len(now)]++
		}
	}
}

// leading returns the displacement with the most votes, and their number. That of the most whole rows mostly has
// more than half of all, which takes a comparison each to see; else all are counted.
func leading(old, now *lineSet) (by, n int) {
	if now.follows == old.frame {
		return now.lead, now.leads
	}
	defer func() { now.follows, now.lead, now.leads = old.frame, by, n }()
	guess := make(tally, 2*len(now.whole)+1)
	var where lines.Table
	guess.count(&where, old.whole, now.whole)
	if by, n = guess.most(0); n > 0 {
		n, most := 0, 0
		for k, strip := range now.strips {
			was, once := old.strips[k], old.unique(&where, k)
			for y, h := range strip {
				if h == 0 || h == was[y] {
					continue
				}
				most++
				if from := y - by; from >= 0 && from < len(was) && was[from] == h && once[from] {
					n++
				}
			}
		}
		if 2*n > most {
			return by, n
		}
	}
	return votes(old, now).most(0)
}

// unique says which rows of a strip have a sum that no other has.
func (l *lineSet) unique(where *lines.Table, k int) []bool {
	if l.once == nil {
		l.once = make([][]bool, len(l.strips))
	}
	if l.once[k] == nil {
		l.once[k] = make([]bool, len(l.whole))
		where.Reset(len(l.whole))
		for y, h := range l.strips[k] {
			where.Add(h, y)
		}
		for y, h := range l.strips[k] {
			l.once[k][y] = where.At(h) == y
		}
	}
	return l.once[k]
}

// most returns the displacement with the most votes, without one that is given; of several the
// least.
func (t tally) most(without int) (by, n int) {
	for i, c := range t {
		if d := i - len(t)/2; d != without && int(c) > n {
			by, n = d, int(c)
		}
	}
	return by, n
}

// mayDiffer is the share of rows, in percent, that may have been drawn anew meanwhile.
const mayDiffer = 5

// moved returns by how much the page moved as a whole between two frames: most parts of
// nearly every row that changed did. Rows that are known to stay, as a header, say nothing.
// Without such knowledge (nil) all that are equal in their place are taken to stay.
func moved(old, now *lineSet, still []bool) (by int, ok bool) {
	by, n := leading(old, now)
	if n < 8 {
		return 0, false
	}
	agree, all := 0, 0
	for y := max(by, 0); y < min(len(now.whole), len(now.whole)+by); y++ {
		if still != nil && (still[y] || still[y-by]) || still == nil && old.whole[y-by] == now.whole[y-by] {
			continue // what comes from under a header was not to be seen before
		}
		yes, no := 0, 0
		if now.whole[y] == old.whole[y-by] { // and so are all its strips
			for k := range now.strips {
				if now.strips[k][y] != old.strips[k][y] {
					agree, all = agree+1, all+1
					break
				}
			}
			continue
		}
		for k := range now.strips {
			switch h := now.strips[k][y]; {
			case still == nil && h == old.strips[k][y]:
			case h == old.strips[k][y-by]:
				if h != old.strips[k][y] {
					yes++
				}
			default:
				no++
			}
		}
		if yes+no > 0 {
			all++
		}
		if yes > no {
			agree++
		}
	}
	return by, 8*all >= len(now.whole) && 100*agree >= (100-mayDiffer)*all
}

// bandsOf says where a frame that lies between two others changes from one displacement
// to another.
func bandsOf(old, torn, next *lineSet) (seams []int, ok bool) {
	still := make([]bool, len(torn.whole))
	for y, h := range torn.whole {
		still[y] = h == old.whole[y] && h == next.whole[y]
	}
	if _, whole := moved(old, torn, still); whole { // as most frames are
		return nil, false
	}
	total, ok := moved(old, next, nil)
	if !ok {
		return nil, false
	}
	count := votes(old, torn)
	lead, n := count.most(0)
	if n < 4 || lead*total < 0 || abs(lead) > abs(total) {
		return nil, false
	}
	// Behind is where the page was: not moved, or moved less in a frame torn before.
	labels, behind := label(old, torn, next, total, lead, 0)
	if !ok || behind < 4 {
		if other, n := count.most(lead); n >= 8 && other*total > 0 {
			if abs(other) > abs(lead) {
				lead, other = other, lead
			}
			labels, _ = label(old, torn, next, total, lead, other)
		}
	}
	return bands(labels)
}

// Labels of a row.
const (
	silent = iota // it looks the same in either place
	ahead
	late
	other // it is at neither place
)

// label says of each row of a torn frame which displacement it has.
func label(old, torn, next *lineSet, total, lead, trail int) (labels []int, behind int) {
	height := len(torn.whole)
	labels = make([]int, height)
	split := 0 // less strips that have one displacement than such as have both
	at := func(l *lineSet, k, y int) (uint64, bool) {
		if y < 0 || y >= height {
			return 0, false
		}
		return l.strips[k][y], true
	}
	var has [strips][4]int
	for y := range labels {
		var n [4]int
		for k := range torn.strips {
			h := torn.strips[k][y]
			was, is := old.strips[k][y], next.strips[k][y]
			if h == was && h == is {
				continue
			}
			shows := func(by int) bool {
				v, in := at(old, k, y-by)
				if in && v == h {
					return true
				}
				v, in = at(next, k, y+total-by)
				return in && v == h
			}
			a, b := shows(lead), shows(trail)
			switch {
			case a && b:
			case a:
				n[ahead]++
				has[k][ahead]++
			case y-lead < 0 || y-lead >= height: // it was out of view
			case b:
				n[late]++
				has[k][late]++
			default:
				n[other]++
			}
		}
		best, all := silent, n[ahead]+n[late]+n[other]
		for v := ahead; v <= other; v++ {
			if n[v] > n[best] {
				best = v
			}
		}
		if 4*(all-n[best]) > all {
			best = other // a tear goes across the whole width
		}
		labels[y] = best
		if best == late {
			behind++
		}
	}
	for _, n := range has {
		switch {
		case n[ahead] >= 2 && n[late] >= 2:
			split++
		case n[ahead]+n[late] >= 4:
			split--
		}
	}
	if split < 0 { // columns that move apart, each as a whole
		return make([]int, height), 0
	}
	return labels, behind
}

// bands returns the rows at which two labels give way to each other; false if they take
// turns more often than tears do, or much is at neither place.
func bands(labels []int) (seams []int, ok bool) {
	type piece struct{ label, row, rows int }
	var pieces []piece
	var count [4]int
	for y, l := range labels {
		count[l]++
		if l != ahead && l != late {
			continue
		}
		if n := len(pieces); n == 0 || pieces[n-1].label != l {
			pieces = append(pieces, piece{l, y, 0})
		}
		pieces[len(pieces)-1].rows++
	}
	few := max(4, len(labels)/30)
	if count[ahead] < few || count[late] < few || 100*count[other] > mayDiffer*(count[ahead]+count[late]) {
		return nil, false
	}
	kept, stray, last := 0, 0, silent
	for _, p := range pieces {
		if p.label == last {
			continue
		}
		if p.rows < 2 { // a row that is like its neighbour
			if stray++; 100*stray > mayDiffer*(count[ahead]+count[late]) {
				return nil, false
			}
			continue
		}
		if last != silent {
			seams = append(seams, p.row)
		}
		last = p.label
		kept++
	}
	return seams, kept >= 2 && kept <= 4
}

func abs(n int) int { return max(n, -n) }
