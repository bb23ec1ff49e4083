package motion

import (
	"eidetic/analysis/lines"
	"eidetic/analysis/visual"
	"eidetic/internal/lab"
)

// Strips of the area whose rows vote: enough of them that no page has all in its
// margins, narrow enough that reading them costs little.
// leastVotes are needed in any case.
const (
	stripCount = 6
	stripWidth = 48
	leastVotes = 4
)

// lineSet holds a hash of each row of the strips, of two frames; with across of each
// column of horizontal strips.
type lineSet struct {
	access   visual.Access
	o        Options
	across   bool
	length   int // rows, or columns
	strips   []int
	width    int
	now, old [][]uint64 // strip, line; 0: the line has one colour
	tell     [][]uint32 // the pixels, where a tolerance has to be kept
	told     [][]uint32
	row      []uint32
	found    lines.Table
	votes    []int
}

func newLines(a visual.Access, o Options, across bool) *lineSet {
	l := &lineSet{access: a, o: o, across: across}
	l.length = o.Area.Dy()
	side := o.Area.Dx()
	if across {
		l.length, side = side, l.length
	}
	l.width = min(stripWidth, side)
	for i := range stripCount {
		at := (side - l.width) * (2*i + 1) / (2 * stripCount)
		if n := len(l.strips); n > 0 && at < l.strips[n-1]+l.width {
			continue
		}
		l.strips = append(l.strips, at)
		l.now, l.old = append(l.now, make([]uint64, l.length)), append(l.old, make([]uint64, l.length))
		l.tell, l.told = append(l.tell, nil), append(l.told, nil)
	}
	if l.o.Tolerance != (visual.Tolerance{}) {
		for i := range l.strips {
			l.tell[i], l.told[i] = make([]uint32, l.length*l.width), make([]uint32, l.length*l.width)
		}
	}
	l.row = make([]uint32, max(l.width, l.length))
	l.votes = make([]int, 2*l.length+1)
	return l
}

const hashPrime = 0x9e3779b97f4a7c15

// read makes the frame the present one, and the present one the one before.
// What stood in the frame before, if that was read last, is taken from its sums.
func (l *lineSet) read(pix visual.Raster, follows bool) {
	l.now, l.old = l.old, l.now
	l.tell, l.told = l.told, l.tell
	var moves []lab.Move
	if follows {
		moves = pix.Moves()
	}
	for s, at := range l.strips {
		if l.across {
			l.readColumns(pix, s, at)
		} else {
			l.readRows(pix, s, at, moves)
		}
	}
}

func (l *lineSet) readRows(pix visual.Raster, s, at int, moves []lab.Move) {
	known := l.moved(s, at, moves)
	for y := range l.length {
		if l.tell[s] != nil {
			l.access.Row(l.tell[s][y*l.width:][:l.width], pix, l.o.Area.Min.Y+y, l.o.Area.Min.X+at)
		}
		if known != nil && known[y] {
			continue
		}
		l.now[s][y] = l.access.StretchSum(pix, l.o.Area.Min.Y+y, l.o.Area.Min.X+at, l.width, l.row)
	}
}

// moved copies the sums of a strip's rows that moved up or down, and says which; nil for none.
func (l *lineSet) moved(s, at int, moves []lab.Move) (known []bool) {
	if l.tell[s] != nil {
		return nil
	}
	for _, m := range moves {
		box := m.R.Sub(l.o.Area.Min)
		if m.DX != 0 || at < box.Min.X || at+l.width > box.Max.X {
			continue
		}
		if known == nil {
			known = make([]bool, l.length)
		}
		for y := max(box.Min.Y, -m.DY, 0); y < min(box.Max.Y, l.length-m.DY, l.length); y++ {
			l.now[s][y], known[y] = l.old[s][y+m.DY], true
		}
	}
	return known
}

func (l *lineSet) readColumns(pix visual.Raster, s, at int) {
	row, hashes := l.row[:l.length], l.now[s]
	flat := make([]bool, l.length)
	first := make([]uint32, l.length)
	for k := range l.width {
		l.access.Row(row, pix, l.o.Area.Min.Y+at+k, l.o.Area.Min.X)
		if l.tell[s] != nil {
			copy(l.tell[s][k*l.length:], row)
		}
		if k == 0 {
			copy(first, row)
			for x := range hashes {
				hashes[x], flat[x] = 1, true
			}
		}
		for x, c := range row {
			h := (hashes[x] ^ uint64(c)) * hashPrime
			hashes[x] = h ^ h>>29
			flat[x] = flat[x] && c == first[x]
		}
	}
	for x := range hashes {
		if flat[x] {
			hashes[x] = 0
		}
	}
}

// changed says whether any line of the strips differs by more than the tolerance.
func (l *lineSet) changed() bool {
	for s := range l.strips {
		if l.tell[s] == nil {
			for i, h := range l.now[s] {
				if h != l.old[s][i] {
					return true
				}
			}
			continue
		}
		for i, c := range l.tell[s] {
			if c != l.told[s][i] && !l.o.Tolerance.Same(c, l.told[s][i]) {
				return true
			}
		}
	}
	return false
}

// vote returns the displacement on which the lines that changed agree, and the share
// of those that could agree which do.
func (l *lineSet) vote() (shift int, share float64, ok bool) {
	clear(l.votes)
	for s := range l.strips {
		l.index(l.old[s])
		for i, h := range l.now[s] {
			if h == 0 || h == l.old[s][i] {
				continue
			}
			if from := l.found.At(h); from >= 0 {
				l.votes[i-from+l.length]++
			}
		}
	}
	best := 0
	for v, n := range l.votes {
		if n > l.votes[best] {
			best = v
		}
	}
	votes := l.votes[best]
	shift = best - l.length
	if votes < leastVotes || shift == 0 {
		return 0, 0, false
	}
	could := 0
	for s := range l.strips {
		for i, h := range l.now[s] {
			if h == 0 || h == l.old[s][i] || i-shift < 0 || i-shift >= l.length {
				continue
			}
			could++
		}
	}
	// Lines that occur twice have no vote; they count as agreeing where they do.
	agree := 0
	for s := range l.strips {
		for i, h := range l.now[s] {
			if h != 0 && h != l.old[s][i] && i-shift >= 0 && i-shift < l.length && l.old[s][i-shift] == h {
				agree++
			}
		}
	}
	share = float64(agree) / float64(max(could, 1))
	second := 0
	for v, n := range l.votes {
		if v != best {
			second = max(second, n)
		}
	}
	// Much may have been drawn at the same time: many votes without a rival will do.
	return shift, share, share >= 0.5 || votes >= 20 && votes >= 5*second
}

// index notes where each hash stands, −1 where it stands twice.
func (l *lineSet) index(hashes []uint64) {
	l.found.Reset(len(hashes))
	for i, h := range hashes {
		if h != 0 {
			l.found.Add(h, i)
		}
	}
}
