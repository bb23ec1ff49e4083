package diff

import (
	"bytes"
	"image"

	"github.com/zeebo/xxh3"
)

// Mover finds out by how many rows a region scrolled. The zero value is ready; it is for one goroutine.
type Mover struct {
	Last  int // the displacement found last: scrolling goes on
	rows  map[uint64]int
	votes map[int]int
}

// Regions smaller than this are not worth a search.
const (
	moveMinRows  = 16
	moveMinBytes = 128
)

// Find returns the displacement dy for which most rows y of r in cur equal the
// rows y + dy of prev, or 0. The answer is a guess: the caller compares.
func (m *Mover) Find(p Plane, prev, cur []byte, r image.Rectangle) int {
	if r.Dy() < moveMinRows || r.Dx()*p.Unit < moveMinBytes {
		return 0
	}
	if m.Last != 0 && m.holds(p, prev, cur, r, m.Last) {
		return m.Last
	}
	if m.rows == nil {
		m.rows, m.votes = make(map[uint64]int), make(map[int]int)
	}
	clear(m.rows)
	clear(m.votes)
	for y := r.Min.Y; y < r.Max.Y; y++ {
		row := p.Row(prev, y, r.Min.X, r.Max.X)
		if Flat(row, p.Unit) {
			continue
		}
		h := xxh3.Hash(row)
		if _, twice := m.rows[h]; twice {
			m.rows[h] = -1 // a repeated row says nothing about where it came from
		} else {
			m.rows[h] = y
		}
	}
	for y := r.Min.Y; y < r.Max.Y; y++ {
		if from, ok := m.rows[xxh3.Hash(p.Row(cur, y, r.Min.X, r.Max.X))]; ok && from >= 0 && from != y {
			m.votes[from-y]++
		}
	}
	best, count := 0, 3
	for dy, n := range m.votes {
		if n > count || n == count && best != 0 && abs(dy) < abs(best) {
			best, count = dy, n
		}
	}
	if best != 0 {
		m.Last = best
	}
	return best
}

// holds tries a displacement on a few rows that are not flat.
func (m *Mover) holds(p Plane, prev, cur []byte, r image.Rectangle, dy int) bool {
	const enough = 4
	good := 0
	for y := r.Min.Y; y < r.Max.Y && good < enough; y += max(1, r.Dy()/64) {
		if y+dy < 0 || y+dy >= p.Rows {
			continue
		}
		row := p.Row(cur, y, r.Min.X, r.Max.X)
		if Flat(row, p.Unit) {
			continue
		}
		if bytes.Equal(row, p.Row(prev, y+dy, r.Min.X, r.Max.X)) {
			good++
		}
	}
	return good >= enough
}

func abs(n int) int { return max(n, -n) }

// Flat says whether all units of a row are equal.
func Flat(row []byte, unit int) bool {
	return bytes.Equal(row[unit:], row[:len(row)-unit])
}
