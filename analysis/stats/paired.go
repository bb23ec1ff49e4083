package stats

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// ErrPairs is returned for samples that are not pairs of finite numbers.
var ErrPairs = errors.New("not pairs of finite numbers")

// checkPairs refuses what cannot be compared pair by pair.
func checkPairs(control, treatment []float64, least int) error {
	if len(control) != len(treatment) {
		return fmt.Errorf("%w: %d values of the control, %d of the treatment", ErrPairs, len(control), len(treatment))
	}
	if len(control) < least {
		return fmt.Errorf("%w: %d pairs, at least %d are needed", ErrPairs, len(control), least)
	}
	for i := range control {
		if d := treatment[i] - control[i]; math.IsNaN(d) || math.IsInf(d, 0) {
			return fmt.Errorf("%w: pair %d is %v and %v", ErrPairs, i+1, control[i], treatment[i])
		}
	}
	return nil
}

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

// AlignedRank tests for a difference between two arms whose pairs were run one
// after another: pairs are put into blocks of about blockPairs in order
// of time, each value is aligned by subtracting its block's median, all are
// ranked together (ties share the mean rank), and the treatment's rank sum is
// compared with those of random reassignments of the arms within the blocks
// (Hodges and Lehmann 1962; Lehmann, Nonparametrics, §3.3). Drift slower than a
// block cancels, outliers count by rank only, ties do no harm.
//
// If there are at most as many reassignments as permutations asks for, all are
// tried and P is exact. Otherwise P = (1 + as extreme) ÷ (1 + permutations)
// (Phipson and Smyth 2010), the same for the same seed.
func AlignedRank(control, treatment []float64, blockPairs, permutations int, seed uint64) (Test, error) {
	if err := checkPairs(control, treatment, 2); err != nil {
		return Test{}, fmt.Errorf("aligned rank test: %w", err)
	}
	if blockPairs < 1 || permutations < 1 {
		return Test{}, fmt.Errorf("aligned rank test: blocks of %d pairs and %d permutations: both must be at least 1", blockPairs, permutations)
	}
	blocks := alignedRanks(control, treatment, blockPairs)
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

// rankBlock holds the ranks of a block, the treatment's in the second half.
type rankBlock []float64

// alignedRanks splits pairs into blocks of nearly equal size and ranks them.
func alignedRanks(control, treatment []float64, blockPairs int) []rankBlock {
	n := len(control)
	count := max((n+blockPairs/2)/blockPairs, 1)
	var blocks []rankBlock
	var all []float64
	for b := range count {
		from, to := b*n/count, (b+1)*n/count
		block := slices.Concat(control[from:to], treatment[from:to])
		sorted := slices.Sorted(slices.Values(block))
		median := Quantile(sorted, 0.5)
		for i := range block {
			block[i] -= median
		}
		blocks, all = append(blocks, block), append(all, block...)
	}
	ranks := Ranks(all)
	for _, b := range blocks {
		copy(b, ranks)
		ranks = ranks[len(b):]
	}
	return blocks
}

func (b rankBlock) sum() (s float64) {
	for _, r := range b[len(b)/2:] {
		s += r
	}
	return s
}

// moments returns mean and variance of the treatment's rank sum when any half
// of the block is equally likely to be the treatment.
func (b rankBlock) moments() (mean, variance float64) {
	n := float64(len(b))
	total := 0.0
	for _, r := range b {
		total += r
	}
	centre, squares := total/n, 0.0
	for _, r := range b {
		squares += float64((r - centre) * (r - centre))
	}
	return total / 2, n / 4 / (n - 1) * squares
}

// draw shuffles half of the block and returns the rank sum of that half.
func (b rankBlock) draw(r *rand.Rand) (sum float64) {
	for i := range len(b) / 2 {
		j := i + r.IntN(len(b)-i)
		b[i], b[j] = b[j], b[i]
		sum += b[i]
	}
	return sum
}

// assignments counts the reassignments, or returns more than limit.
func assignments(blocks []rankBlock, limit int) int {
	n := 1
	for _, b := range blocks {
		c := 1
		for i := 1; i <= len(b)/2; i++ {
			if c = c * (len(b)/2 + i) / i; c > limit {
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
		for i := from; i+left <= len(b); i++ {
			choose(i+1, left-1, sum+b[i])
		}
	}
	choose(0, len(b)/2, sum)
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
