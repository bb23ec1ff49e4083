package stats

import (
	"math"
	"math/cmplx"
)

// smoothP is what exactP computes, from the characteristic function of the rank sum: it
// is the product of those of the blocks, and fades, so that a few dozen of its values
// hold the whole distribution. It is false where that is not so, as with few blocks or
// many ties.
//
// The distribution is folded at ± width standard deviations, where a sum that is so near
// to normal has less than 1e-20 of itself, and the function is cut off below faded: P
// is right to some 1e-8, as the tests show against exactP.
func smoothP(blocks []rankBlock, mean, observed, variance float64) (p float64, ok bool) {
	const width, faded = 12, 1e-9
	scale := latticeScale(blocks)
	lower, upper := int(math.Floor((mean-observed)*scale)), int(math.Ceil((mean+observed)*scale))
	if observed <= 0 || lower >= upper {
		return 1, true
	}
	// Ranks that are all multiples of a number, as where few values differ, give a periodic
	// function. Ties cause it (an odd block has one at its median); the period of every
	// second rank is added up here, and those of every third, fourth and sixth are checked.
	function := func(t float64) complex128 { return characteristic(blocks, t*scale, mean) }
	if tied(blocks) > len(blocks) {
		return 0, false
	}
	for _, n := range []float64{3, 4, 6} {
		if cmplx.Abs(function(2*math.Pi/n)) > faded {
			return 0, false
		}
	}
	half := math.Ceil(width * math.Sqrt(variance) * scale)
	count := float64(upper - lower - 1) // sums that are less extreme
	if count >= 2*half {
		return 0, true
	}
	centre := float64(lower+upper)/2 - mean*scale
	term := func(n float64) (value float64, small bool) {
		t := math.Pi * n / half
		f, kernel := function(t), count
		if n > 0 {
			kernel = math.Sin(count*t/2) / math.Sin(t/2)
		}
		return kernel * real(f*cmplx.Rect(1, -t*centre)), cmplx.Abs(f) < faded
	}
	inside := count
	for n := 1.0; ; n++ {
		value, small := term(n)
		if inside += 2 * value; small {
			break
		}
		if n > half/4 {
			return 0, false
		}
	}
	value, small := term(half)
	inside += value
	for n := half - 1; !small; n-- {
		if n < half*3/4 {
			return 0, false
		}
		value, small = term(n)
		inside += 2 * value
	}
	return min(max(1-inside/(2*half), 0), 1), true
}

// tied is how many ranks are not the only ones of their size.
func tied(blocks []rankBlock) (count int) {
	seen := map[float64]int{}
	for _, b := range blocks {
		for _, r := range b.ranks {
			seen[r]++
		}
	}
	for _, n := range seen {
		if n > 1 {
			count += n
		}
	}
	return count
}

// characteristic is the expectation of exp(i·t·(sum − mean)) over all reassignments.
func characteristic(blocks []rankBlock, t, mean float64) complex128 {
	product := complex(1, 0)
	var chosen []complex128
	for _, b := range blocks {
		centre, _ := b.moments()
		product *= cmplx.Rect(1, -t*centre)
		// chosen[k] is the share of the ways to take k of the ranks so far, each
		// turned by its sum; see distribution.
		chosen = append(chosen[:0], 1)
		for range b.treatment {
			chosen = append(chosen, 0)
		}
		for i, rank := range b.ranks {
			turn := cmplx.Rect(1, t*rank)
			left := float64(len(b.ranks) - i)
			for k := min(i, b.treatment); k >= 0; k-- {
				take := float64(b.treatment-k) / left
				if k < b.treatment {
					chosen[k+1] += chosen[k] * turn * complex(take, 0)
				}
				chosen[k] *= complex(1-take, 0)
			}
		}
		product *= chosen[b.treatment]
	}
	return product
}
