package stats

import (
	"math"
	"math/bits"
	"math/rand/v2"
)

// MaxT tests many rows, each a number of the same units of two arms (one row is the values of the control's units, then
// of the treatment's), and returns p-values that hold for all rows together (Westfall and Young 1993): the share of
// reassignments of the units' arms, one for all rows at a time, in which any row has as large a statistic. So a clear
// difference in one of many rows is found with few units, where a correction of each row's own p, which cannot be
// small, would lose it. The statistic is the difference of the means over their standard error, to which floor is
// added, so that what hardly varies does not count for more than it matters (Tusher, Tibshirani and Chu 2001). P is
// exact for up to twelve units; beyond it is of 9,999 reassignments that the seed draws.
func MaxT(rows [][]float64, control int, floor float64, seed uint64) []float64 {
	p := make([]float64, len(rows))
	if len(rows) == 0 {
		return p
	}
	units := len(rows[0])
	of := func(treated []bool) []float64 {
		t := make([]float64, len(rows))
		for i, row := range rows {
			t[i] = studentised(row, treated, floor)
		}
		return t
	}
	treated := make([]bool, units)
	for i := control; i < units; i++ {
		treated[i] = true
	}
	observed, total := of(treated), 0
	count := func() {
		total++
		most := 0.0
		for _, t := range of(treated) {
			most = max(most, t)
		}
		for i, t := range observed {
			if most >= t*(1-1e-9) {
				p[i]++
			}
		}
	}
	const mostExact, permutations = 12, 9999
	if units <= mostExact {
		for chosen := range uint(1) << units {
			if bits.OnesCount(chosen) != units-control {
				continue
			}
			for i := range treated {
				treated[i] = chosen>>i&1 == 1
			}
			count()
		}
	} else {
		count()                                      // the observed one
		r := rand.New(rand.NewPCG(seed, 0x6d617874)) // "maxt"
		for range permutations {
			r.Shuffle(units, func(i, k int) { treated[i], treated[k] = treated[k], treated[i] })
			count()
		}
	}
	for i := range p {
		p[i] /= float64(total)
	}
	return p
}

// studentised is the size of the difference of two means over its standard error and a floor.
func studentised(row []float64, treated []bool, floor float64) float64 {
	var sum, squares, n [2]float64
	for i, v := range row {
		arm := 0
		if treated[i] {
			arm = 1
		}
		sum[arm], n[arm] = sum[arm]+v, n[arm]+1
	}
	for i, v := range row {
		arm := 0
		if treated[i] {
			arm = 1
		}
		d := v - sum[arm]/n[arm]
		squares[arm] += float64(d * d)
	}
	free := max(n[0]+n[1]-2, 1)
	return math.Abs(sum[1]/n[1]-sum[0]/n[0]) / (math.Sqrt((squares[0]+squares[1])/free*(1/n[0]+1/n[1])) + floor)
}
