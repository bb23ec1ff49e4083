package stats

import (
	"math"
	"slices"
)

// cell is a range of shifts that leave the values in one order, and so one p.
type cell struct {
	outer, inner float64
	blocks       []rankBlock // nil until they are asked for
	known        bool
	value        float64 // p, where it is known
}

func (c *cell) ranks(i *inversion) []rankBlock {
	if c.blocks == nil {
		c.blocks = i.ranks((c.outer + c.inner) / 2)
	}
	return c.blocks
}

func (c *cell) p(i *inversion) float64 {
	if !c.known {
		c.known, c.value = true, i.p(c.ranks(i))
	}
	return c.value
}

// moments are |z| and the kurtosis of the rank sum over all reassignments.
func (c *cell) moments(i *inversion) (z, kurtosis float64) {
	statistic, mean, variance, excess := 0.0, 0.0, 0.0, 0.0
	for _, b := range c.ranks(i) {
		m, v := b.moments()
		statistic, mean, variance = statistic+b.sum(), mean+m, variance+v
		excess += b.fourth() - float64(3*v*v)
	}
	if variance == 0 {
		return 0, math.Inf(1)
	}
	return math.Abs(statistic-mean) / math.Sqrt(variance), 3 + excess/(variance*variance)
}

// fourth is the fourth central moment of the treatment's rank sum: the expectations of
// products of up to four different ranks drawn without replacement, by power sums.
func (b rankBlock) fourth() float64 {
	n, k := float64(len(b.ranks)), float64(b.treatment)
	total := 0.0
	for _, r := range b.ranks {
		total += r
	}
	squares, fourths := 0.0, 0.0
	for _, r := range b.ranks {
		d := r - total/n
		squares, fourths = squares+float64(d*d), fourths+float64(d*d*d*d)
	}
	drawn, sum := 1.0, 0.0 // drawn is the chance that j given ranks are the treatment's
	for j, terms := range []float64{fourths, 3*(squares*squares-fourths) - 4*fourths, 6 * (2*fourths - squares*squares),
		3*squares*squares - 6*fourths} {
		if n <= float64(j) {
			break
		}
		drawn *= max(k-float64(j), 0) / (n - float64(j))
		sum += float64(drawn * terms)
	}
	return sum
}

// cells are all cells between two shifts, in that order. The order of the values
// changes where two of them meet: those of a block where the shift is their difference,
// which may also move the block's median; those of different blocks in between, where
// the aligned values move in straight lines.
func (i *inversion) cells(outer, inner float64) (all []*cell) {
	low, high := min(outer, inner), max(outer, inner)
	bends := []float64{low, high}
	for _, b := range i.blocks {
		for _, t := range b.Treatment {
			for _, c := range b.Control {
				if d := t - c; low < d && d < high {
					bends = append(bends, d)
				}
			}
		}
	}
	slices.Sort(bends)
	least := 4 * precision * i.span
	bends = slices.CompactFunc(bends, func(a, b float64) bool { return math.Abs(b-a) <= least })
	meetings := slices.Clone(bends)
	for n := 1; n < len(bends); n++ {
		meetings = append(meetings, i.meetings(bends[n-1], bends[n])...)
	}
	slices.Sort(meetings)
	meetings = slices.CompactFunc(meetings, func(a, b float64) bool { return math.Abs(b-a) <= least })
	for n := 1; n < len(meetings); n++ {
		all = append(all, &cell{outer: meetings[n-1], inner: meetings[n]})
	}
	if outer > inner {
		for _, c := range all {
			c.outer, c.inner = c.inner, c.outer
		}
		slices.Reverse(all)
	}
	return all
}

// meetings are the shifts between two bends at which aligned values of a group meet.
func (i *inversion) meetings(from, to float64) (shifts []float64) {
	for _, g := range i.ranked() {
		shifts = append(shifts, meetings(g, from, to)...)
	}
	return shifts
}

func meetings(blocks []Block, from, to float64) (shifts []float64) {
	type line struct{ from, to float64 }
	// Just inside, as the order at a bend may be a tie.
	inside := (to - from) / 8
	a, b := alignedValues(blocks, from+inside), alignedValues(blocks, to-inside)
	var lines []line
	for n := range a {
		for k := range a[n] {
			slope := (b[n][k] - a[n][k]) / 6
			lines = append(lines, line{a[n][k] - slope, b[n][k] + slope})
		}
	}
	slices.SortFunc(lines, func(a, b line) int {
		switch {
		case a.from < b.from || a.from == b.from && a.to < b.to:
			return -1
		case a.from == b.from && a.to == b.to:
			return 0
		}
		return 1
	})
	// Insertion sorting by the other end swaps each two lines that meet once.
	for n := 1; n < len(lines); n++ {
		for k := n; k > 0 && lines[k-1].to > lines[k].to; k-- {
			before := lines[k].from - lines[k-1].from
			after := lines[k-1].to - lines[k].to
			shifts = append(shifts, from+(to-from)*before/(before+after))
			lines[k-1], lines[k] = lines[k], lines[k-1]
		}
	}
	return shifts
}
