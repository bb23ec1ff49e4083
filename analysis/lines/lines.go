// Package lines finds rows of pixels again: sums of stretches of a row flow in, where each stood
// flows out. It is what motion, tearing and layout shifts are measured with.
package lines

// Table knows where each sum stands. The zero value is empty; Reset empties it without
// touching its memory.
type Table struct {
	slots []slot
	now   uint32 // of slots that are in use
	shift uint
}

type slot struct {
	sum uint64
	at  int32
	use uint32
}

// Twice is where a sum stands that stands at two places.
const Twice = -1

// Reset empties the table and makes room for n sums.
func (t *Table) Reset(n int) {
	bits := uint(6)
	for 1<<bits < 2*n {
		bits++
	}
	if len(t.slots) != 1<<bits {
		t.slots, t.now, t.shift = make([]slot, 1<<bits), 0, 64-bits
	}
	if t.now++; t.now == 0 { // after four thousand million times
		clear(t.slots)
		t.now = 1
	}
}

// Add notes that a sum stands at a place; a sum that was added before then stands at Twice. More
// than Reset made room for are left out.
func (t *Table) Add(sum uint64, at int) {
	i := sum * 0x9e3779b97f4a7c15 >> t.shift
	for range t.slots {
		s := &t.slots[i]
		if s.use != t.now {
			*s = slot{sum, int32(at), t.now}
			return
		}
		if s.sum == sum {
			s.at = Twice
			return
		}
		i = (i + 1) & uint64(len(t.slots)-1)
	}
}

// At returns where a sum stands, and Twice for one that stands nowhere or at two places.
func (t *Table) At(sum uint64) int {
	if len(t.slots) == 0 {
		return Twice
	}
	i := sum * 0x9e3779b97f4a7c15 >> t.shift
	for range t.slots {
		s := &t.slots[i]
		if s.use != t.now {
			return Twice
		}
		if s.sum == sum {
			return int(s.at)
		}
		i = (i + 1) & uint64(len(t.slots)-1)
	}
	return Twice
}
