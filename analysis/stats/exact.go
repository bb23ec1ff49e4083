package stats

import (
	"math"
	"slices"
)

// quickExact and maxExact bound the steps of an exact p-value, to some 0.1 and 10 ms.
// Blocks of five trials of each arm stay below them up to about 25 and a hundred pairs.
const quickExact, maxExact = 200_000, 20_000_000

// sums is the distribution of a sum: share[i] is the probability of low + i.
type sums struct {
	low   int
	share []float64
}

// exactP is the share of all reassignments within the blocks whose rank sum is at
// least observed away from the mean. The sums of a block are counted by a recursion
// over its ranks, those of blocks are convolved. It is false if that would take more
// steps than limit.
func exactP(blocks []rankBlock, mean, observed float64, limit int) (p float64, ok bool) {
	scale := latticeScale(blocks)
	lower, upper := int(math.Floor((mean-observed)*scale)), int(math.Ceil((mean+observed)*scale))
	if observed <= 0 || lower >= upper {
		return 1, true
	}
	// Two halves: their tails are then added up without convolving them.
	halves := [2]sums{{share: []float64{1}}, {share: []float64{1}}}
	steps := 0
	for i, b := range blocks {
		one, cost := b.distribution(scale, limit-steps)
		half := &halves[i%2]
		if steps += cost + len(one.share)*len(half.share); one.share == nil || steps > limit {
			return 0, false
		}
		*half = half.plus(one)
	}
	a, b := halves[0], halves[1]
	below := make([]float64, len(b.share)+1) // below[j] is P(sum < b.low + j)
	for j, share := range b.share {
		below[j+1] = below[j] + share
	}
	all := below[len(b.share)]
	for i, share := range a.share {
		at := a.low + i + b.low
		left := min(max(lower-at+1, 0), len(b.share))
		right := min(max(upper-at, 0), len(b.share))
		p += float64(share * (below[left] + (all - below[right])))
	}
	return min(p, 1), true
}

// latticeScale makes whole numbers of ranks.
func latticeScale(blocks []rankBlock) float64 {
	for _, b := range blocks {
		if slices.ContainsFunc(b.ranks, func(r float64) bool { return r != math.Trunc(r) }) {
			return 2 // ties share half ranks
		}
	}
	return 1
}

// plus is the distribution of the sum of two independent ones.
func (s sums) plus(other sums) sums {
	out := sums{low: s.low + other.low, share: make([]float64, len(s.share)+len(other.share)-1)}
	for j, weight := range other.share {
		if weight == 0 {
			continue
		}
		into := out.share[j:]
		for i, share := range s.share {
			into[i] += float64(weight * share)
		}
	}
	return out
}

// distribution is that of the treatment's rank sum, in units of 1 ÷ scale, over all
// reassignments within the block, and the steps that it took. Its share is nil if
// they would be more than limit.
func (b rankBlock) distribution(scale float64, limit int) (sums, int) {
	n, chosen := len(b.ranks), b.treatment
	if chosen == 0 || chosen == n {
		return sums{low: int(math.Round(b.sum() * scale)), share: []float64{1}}, n
	}
	least := slices.Min(b.ranks)
	span := chosen * int(math.Round((slices.Max(b.ranks)-least)*scale))
	cost := n * chosen * (span + 1)
	if cost > limit {
		return sums{}, cost
	}
	// share[k][s] is the probability that k of the ranks so far are chosen, and that
	// they exceed the least by s together; a rank is chosen with the probability that
	// is left for it, so that all choices of b.treatment ranks are equally likely.
	share := make([][]float64, chosen+1)
	for k := range share {
		share[k] = make([]float64, span+1)
	}
	share[0][0] = 1
	top := make([]int, chosen+1) // of k ranks, the greatest sum so far
	for i, rank := range b.ranks {
		more := int(math.Round((rank - least) * scale))
		left := float64(n - i)
		for k := min(i, chosen); k >= 0; k-- {
			take := float64(chosen-k) / left
			if k < chosen {
				top[k+1] = max(top[k+1], top[k]+more)
			}
			for s, p := range share[k][:top[k]+1] {
				if p == 0 {
					continue
				}
				if k < chosen {
					share[k+1][s+more] += float64(p * take)
				}
				share[k][s] = float64(p * (1 - take))
			}
		}
	}
	// No rank is chosen twice, so that the ends of the span are not reached.
	out := sums{low: int(math.Round(least * float64(chosen) * scale)), share: share[chosen]}
	for out.share[0] == 0 {
		out.low, out.share = out.low+1, out.share[1:]
	}
	for last := len(out.share) - 1; out.share[last] == 0; last-- {
		out.share = out.share[:last]
	}
	return out, cost
}
