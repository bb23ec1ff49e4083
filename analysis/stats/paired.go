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
// P is exact, over all reassignments. Only of samples for which that takes too long, such as
// hundreds of values most of which are equal, it is (1 + as extreme) ÷ (1 + permutations)
// of as many drawn at random (Phipson and Smyth 2010), the same for the same seed.
func AlignedRank(all []Block, permutations int, seed uint64) (Test, error) {
	return alignedRank([][]Block{all}, nil, permutations, seed)
}

// alignedRank is AlignedRank of several groups of blocks, each of which is ranked by itself. Their ranks count by
// weights; nil are equal ones.
func alignedRank(groups [][]Block, weights []float64, permutations int, seed uint64) (Test, error) {
	if err := checkBlocks(slices.Concat(groups...), 2); err != nil {
		return Test{}, fmt.Errorf("aligned rank test: %w", err)
	}
	if permutations < 1 {
		return Test{}, fmt.Errorf("aligned rank test: %d permutations: at least 1", permutations)
	}
	return testRanks(rankedGroups(groups, weights, 0), permutations, seed), nil
}

// rankedGroups ranks the values of each group together, those of the treatment less shift, and multiplies the ranks by
// its weight.
func rankedGroups(groups [][]Block, weights []float64, shift float64) (all []rankBlock) {
	for n, g := range groups {
		blocks := alignedRanks(g, shift)
		for _, b := range blocks {
			for i := range b.ranks {
				if weights != nil {
					b.ranks[i] *= weights[n]
				}
			}
		}
		all = append(all, blocks...)
	}
	return all
}

// testRanks is the test of ranks that were aligned already.
func testRanks(blocks []rankBlock, permutations int, seed uint64) Test {
	t := Test{P: 1, Seed: seed}
	statistic, mean, variance := score(blocks)
	if variance == 0 { // every value equals its block's median
		return t
	}
	t.Z = (statistic - mean) / math.Sqrt(variance)
	observed := math.Abs(statistic-mean) - 1e-9*math.Abs(mean) // equal up to rounding is as extreme
	p, ok := exactP(blocks, mean, observed, quickExact)
	if !ok {
		p, ok = smoothP(blocks, mean, observed, variance)
	}
	if !ok {
		p, ok = exactP(blocks, mean, observed, maxExact)
	}
	if ok {
		t.P = settled(p)
		return t
	}
	t.P, t.Permutations = sampledP(blocks, mean, observed, permutations, seed), permutations
	return t
}

// settled takes the rounding off a share, so that one in twenty is 0.05.
func settled(p float64) float64 {
	const places = 1e12
	if p < 1e-6 {
		return p
	}
	return math.Round(p*places) / places
}

// score returns the treatment's rank sum, with its mean and variance over all
// reassignments.
func score(blocks []rankBlock) (statistic, mean, variance float64) {
	for _, b := range blocks {
		m, v := b.moments()
		statistic, mean, variance = statistic+b.sum(), mean+m, variance+v
	}
	return statistic, mean, variance
}

// sampledP estimates what exactP computes. The same seed draws the same
// reassignments whatever the ranks are.
func sampledP(blocks []rankBlock, mean, observed float64, permutations int, seed uint64) float64 {
	dealt := make([]rankBlock, len(blocks))
	for i, b := range blocks {
		dealt[i] = rankBlock{slices.Clone(b.ranks), b.treatment}
	}
	r := rand.New(rand.NewPCG(seed, 0x616c69676e6564)) // "aligned"
	extreme := 1
	for range permutations {
		sum := 0.0
		for _, b := range dealt {
			sum += b.draw(r)
		}
		if math.Abs(sum-mean) >= observed {
			extreme++
		}
	}
	return float64(extreme) / float64(1+permutations)
}

// rankBlock holds the ranks of a block, those of the treatment first.
type rankBlock struct {
	ranks     []float64
	treatment int // how many are the treatment's
}

// alignedRanks ranks the values of all blocks together, those of the treatment less
// shift.
func alignedRanks(all []Block, shift float64) []rankBlock {
	aligned := alignedValues(all, shift)
	ranks := Ranks(slices.Concat(aligned...))
	blocks := make([]rankBlock, len(all))
	for i, block := range aligned {
		blocks[i] = rankBlock{ranks[:len(block):len(block)], len(all[i].Treatment)}
		ranks = ranks[len(block):]
	}
	return blocks
}

// alignedValues are the values of each block less its median, those of the treatment
// first and less shift.
func alignedValues(all []Block, shift float64) [][]float64 {
	aligned := make([][]float64, len(all))
	for n, b := range all {
		block := slices.Concat(b.Treatment, b.Control)
		for i := range b.Treatment {
			block[i] -= shift
		}
		median := Quantile(slices.Sorted(slices.Values(block)), 0.5)
		for i := range block {
			block[i] -= median
		}
		aligned[n] = block
	}
	return aligned
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
