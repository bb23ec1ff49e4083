package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Test is the outcome of a test of "no difference between the arms".
type Test struct {
	P float64 `json:"p"` // two-sided
	// Z is the standardised statistic, positive where the treatment's values
	// are larger; a sequential plan compares it with its bounds.
	Z float64 `json:"z"`
	// Permutations that P was estimated from, with Seed; 0 if it is exact.
	Permutations int    `json:"permutations"`
	Seed         uint64 `json:"seed"`
}

// AlignedRank tests for a difference between two arms whose trials were run in
// blocks, in an order of the arms that was drawn by lot within each: each value is
// aligned by subtracting its block's median, all are ranked together (ties share
// the mean rank), and the treatment's rank sum is compared with those of random
// reassignments of the arms within the blocks (Hodges and Lehmann 1962; Lehmann,
// Nonparametrics, §3.3). Drift slower than a block cancels, outliers count by
// rank only, ties do no harm. Since the reassignments are the orders that could
// have been drawn, P is right whatever the machine does meanwhile, and a trial
// that is left out, blind to its value, takes no other with it.
//
// If there are at most as many reassignments as permutations asks for, all are
// tried and P is exact. Otherwise P = (1 + as extreme) ÷ (1 + permutations)
// (Phipson and Smyth 2010), the same for the same seed.
func AlignedRank(all []Block, permutations int, seed uint64) (Test, error) {
	if err := checkBlocks(all, 2); err != nil {
		return Test{}, fmt.Errorf("aligned rank test: %w", err)
	}
	if permutations < 1 {
		return Test{}, fmt.Errorf("aligned rank test: %d permutations: at least 1", permutations)
	}
	blocks := alignedRanks(all)
	var statistic, mean, variance float64
	for _, b := range blocks {
		m, v := b.moments()
		statistic, mean, variance = statistic+b.sum(), mean+m, variance+v
	}
	t := Test{P: 1, Seed: seed}
	if variance == 0 { // every value equals its block's median
		return t, nil
	}
	t.Z = (statistic - mean) / math.Sqrt(variance)
	observed := math.Abs(statistic-mean) - 1e-9*math.Abs(mean) // equal up to rounding is as extreme
	if n := assignments(blocks, permutations); n <= permutations {
		extreme := 0
		enumerate(blocks, 0, func(sum float64) {
			if math.Abs(sum-mean) >= observed {
				extreme++
			}
		})
		t.P = float64(extreme) / float64(n)
		return t, nil
	}
	t.Permutations = permutations
	r := rand.New(rand.NewPCG(seed, 0x616c69676e6564)) // "aligned"
	extreme := 1
	for range permutations {
		sum := 0.0
		for _, b := range blocks {
			sum += b.draw(r)
		}
		if math.Abs(sum-mean) >= observed {
			extreme++
		}
	}
	t.P = float64(extreme) / float64(1+permutations)
	return t, nil
}

// rankBlock holds the ranks of a block, those of the treatment first.
type rankBlock struct {
	ranks     []float64
	treatment int // how many are the treatment's
}

// alignedRanks ranks the values of all blocks together.
func alignedRanks(all []Block) []rankBlock {
	var blocks []rankBlock
	var values []float64
	for _, b := range all {
		block := slices.Concat(b.Treatment, b.Control)
		median := Quantile(slices.Sorted(slices.Values(block)), 0.5)
		for i := range block {
			block[i] -= median
		}
		blocks, values = append(blocks, rankBlock{block, len(b.Treatment)}), append(values, block...)
	}
	ranks := Ranks(values)
	for _, b := range blocks {
		copy(b.ranks, ranks)
		ranks = ranks[len(b.ranks):]
	}
	return blocks
}

func (b rankBlock) sum() (s float64) {
	for _, r := range b.ranks[:b.treatment] {
		s += r
	}
	return s
}

// moments returns mean and variance of the treatment's rank sum when any of the
// block's trials are equally likely to be the treatment's.
func (b rankBlock) moments() (mean, variance float64) {
	n, k := float64(len(b.ranks)), float64(b.treatment)
	if len(b.ranks) < 2 {
		return b.sum(), 0
	}
	total := 0.0
	for _, r := range b.ranks {
		total += r
	}
	centre, squares := total/n, 0.0
	for _, r := range b.ranks {
		squares += float64((r - centre) * (r - centre))
	}
	return k * centre, k * (n - k) / n / (n - 1) * squares
}

// draw deals out the block anew and returns the treatment's rank sum.
func (b rankBlock) draw(r *rand.Rand) (sum float64) {
	for i := range b.treatment {
		j := i + r.IntN(len(b.ranks)-i)
		b.ranks[i], b.ranks[j] = b.ranks[j], b.ranks[i]
		sum += b.ranks[i]
	}
	return sum
}

// assignments counts the reassignments, or returns more than limit.
func assignments(blocks []rankBlock, limit int) int {
	n := 1
	for _, b := range blocks {
		fewer := min(b.treatment, len(b.ranks)-b.treatment)
		c := 1
		for i := 1; i <= fewer; i++ {
			if c = c * (len(b.ranks) - fewer + i) / i; c > limit {
				return limit + 1
			}
		}
		if n *= c; n > limit {
			return limit + 1
		}
	}
	return n
}

// enumerate calls f with the rank sum of every reassignment.
func enumerate(blocks []rankBlock, sum float64, f func(sum float64)) {
	if len(blocks) == 0 {
		f(sum)
		return
	}
	b := blocks[0]
	var choose func(from, left int, sum float64)
	choose = func(from, left int, sum float64) {
		if left == 0 {
			enumerate(blocks[1:], sum, f)
			return
		}
		for i := from; i+left <= len(b.ranks); i++ {
			choose(i+1, left-1, sum+b.ranks[i])
		}
	}
	choose(0, b.treatment, sum)
}

// Ranks returns the rank of each value from 1 on; equal values share the mean
// of their ranks.
func Ranks(values []float64) []float64 {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		switch {
		case values[a] < values[b]:
			return -1
		case values[a] > values[b]:
			return 1
		}
		return 0
	})
	ranks := make([]float64, len(values))
	for from := 0; from < len(order); {
		to := from + 1
		for to < len(order) && values[order[to]] == values[order[from]] {
			to++
		}
		for _, i := range order[from:to] {
			ranks[i] = float64(from+1+to) / 2
		}
		from = to
	}
	return ranks
}
