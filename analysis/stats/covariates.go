package stats

import (
	"math"
	"slices"
)

// Covariate is a number of each trial that was known before an arm could act, such as how fast the machine was just
// then. Its blocks hold a number for each of the values that it goes with, in the same order; NaN where it is unknown.
type Covariate struct {
	Name   string
	Blocks []Block
}

// Adjustment says what covariates did to a comparison.
type Adjustment struct {
	Names []string `json:"covariates"` // that were used
	// Explained is the share of the variance within blocks that they took out, Spread the standard deviation within
	// blocks that is left, and RawSpread the one without them; the shift between the arms is in neither.
	Explained float64 `json:"explained_share"`
	Spread    float64 `json:"spread"`
	RawSpread float64 `json:"raw_spread"`
	// Raw is the comparison without covariates.
	Raw           Interval `json:"raw_shift"`
	RawTest       Test     `json:"raw_test"`
	MinimalEffect float64  `json:"raw_minimal_effect"`
}

const (
	// DropShare of the level of a comparison is spent on looking whether the arms differ in a covariate; the rest is
	// the adjusted test's. So both together have the level.
	DropShare = 0.02
	// pairsPerCovariate is how many pairs each covariate that is used takes: eight trials for one slope.
	pairsPerCovariate = 4
	// mostCovariates is the most that are used.
	mostCovariates = 6
	// leastForCovariates is the fewest pairs with which any is used.
	leastForCovariates = 6
	// huber is where the regression begins to count a residual less, in standard deviations: 95 % efficiency for
	// normal values (Huber 1981).
	huber = 1.345
	// clipped is how far, in standard deviations, a covariate may lie from its block's middle: beyond that a trial
	// was odd, and the line may not hold.
	clipped = 3.0
	// rounds of the regression's reweighting, and of looking for an end of the interval with the slopes that fit it.
	weightRounds, fitRounds = 12, 3
)

// regression takes the covariates out of values, within their blocks and without the arms.
type regression struct {
	blocks []Block
	rows   []float64   // all values, block by block, those of the treatment first
	x      [][]float64 // covariate × row: in standard deviations from the block's middle
	names  []string
}

// newRegression uses the first covariates, as many as the pairs allow; nil for none.
func newRegression(blocks []Block, all []Covariate) *regression {
	control, _ := paired(blocks)
	most := min(len(control)/pairsPerCovariate, mostCovariates)
	if len(control) < leastForCovariates {
		most = 0
	}
	r := &regression{blocks: blocks}
	for _, b := range blocks {
		r.rows = append(append(r.rows, b.Treatment...), b.Control...)
	}
	for _, c := range all {
		if len(r.x) == most {
			break
		}
		if x, ok := withinBlocks(c.Blocks); ok && len(x) == len(r.rows) {
			r.x, r.names = append(r.x, x), append(r.names, c.Name)
		}
	}
	if len(r.x) == 0 {
		return nil
	}
	return r
}

// withinBlocks are numbers less the middle of their block, in robust standard deviations, none too far out. An unknown
// one lies in the middle. It is false if they do not vary.
func withinBlocks(blocks []Block) (x []float64, ok bool) {
	for _, b := range blocks {
		block := slices.Concat(b.Treatment, b.Control)
		known := slices.DeleteFunc(slices.Clone(block), math.IsNaN)
		middle := Median(known)
		for _, v := range block {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				v = middle
			}
			if v -= middle; math.IsNaN(v) { // all of the block are unknown
				v = 0
			}
			x = append(x, v)
		}
	}
	scale := robustSpread(x)
	if !(scale > 0) || math.IsInf(scale, 0) {
		return nil, false
	}
	for i := range x {
		x[i] = max(-clipped, min(clipped, x[i]/scale))
	}
	from := 0
	for _, b := range blocks {
		to := from + len(b.Treatment) + len(b.Control)
		mean := 0.0
		for _, v := range x[from:to] {
			mean += v / float64(to-from)
		}
		for i := from; i < to; i++ {
			x[i] -= mean
		}
		from = to
	}
	return x, true
}

// robustSpread estimates the standard deviation of values around 0 by their median size, or by their mean one where
// most are 0.
func robustSpread(values []float64) float64 {
	sizes, sum := make([]float64, len(values)), 0.0
	for i, v := range values {
		sizes[i] = math.Abs(v)
		sum += sizes[i]
	}
	if len(sizes) == 0 {
		return 0
	}
	if s := Median(sizes) / 0.6745; s > 0 {
		return s
	}
	return sum / float64(len(sizes)) * math.Sqrt(math.Pi/2)
}

// fit is what the covariates explain of the values, less shift in the treatment: Huber's regression, of which each
// covariate, as far as those before it do not tell the same, keeps the part that chance would not explain (1 − 1/F, of
// James and Stein's kind, and never less than nothing). So a useless covariate mostly explains nothing at all. The arms
// are not looked at: if the shift is the true one, the fit is the same whatever arm each trial had.
func (r *regression) fit(shift float64) []float64 {
	y := r.aligned(shift)
	out := make([]float64, len(y))
	scale := robustSpread(y)
	free := float64(len(y) - len(r.blocks) - len(r.x))
	if !(scale > 0) || !(free > 0) {
		return out
	}
	residual, weights := slices.Clone(y), make([]float64, len(y))
	var parts []part
	for range weightRounds {
		for i, v := range residual {
			weights[i] = 1
			if size := math.Abs(v); size > huber*scale {
				weights[i] = huber * scale / size
			}
		}
		copy(residual, y)
		if parts = r.parts(y, weights); len(parts) == 0 {
			return out
		}
		for _, p := range parts {
			for i := range residual {
				residual[i] -= float64(p.slope * p.x[i])
			}
		}
		scale = max(robustSpread(residual), precision*scale)
	}
	noise := weighted(residual, residual, weights) / free
	for _, p := range parts {
		keep := max(0, 1-noise/float64(float64(p.slope*p.slope)*p.size))
		if !(keep > 0) { // also of a covariate that explains nothing
			continue
		}
		for i := range out {
			out[i] += float64(float64(keep*p.slope) * p.x[i])
		}
	}
	return out
}

// part is a covariate without what those before it tell, with its slope.
type part struct {
	x           []float64
	size, slope float64 // size is the weighted sum of squares
}

// parts makes the covariates orthogonal, by Gram and Schmidt's method, and finds their slopes by weighted least
// squares.
func (r *regression) parts(y, weights []float64) (all []part) {
	for _, x := range r.x {
		p := part{x: slices.Clone(x)}
		whole := weighted(x, x, weights)
		for _, q := range all {
			f := weighted(p.x, q.x, weights) / q.size
			for i := range p.x {
				p.x[i] -= float64(f * q.x[i])
			}
		}
		if p.size = weighted(p.x, p.x, weights); p.size <= 1e-6*whole { // it tells nothing new
			continue
		}
		p.slope = weighted(p.x, y, weights) / p.size
		all = append(all, p)
	}
	return all
}

// weighted is the weighted sum of the products of two columns.
func weighted(a, b, weights []float64) (sum float64) {
	for i := range a {
		sum += float64(weights[i] * float64(a[i]*b[i]))
	}
	return sum
}

// aligned are the values less shift in the treatment and less the median of their block.
func (r *regression) aligned(shift float64) []float64 {
	return slices.Concat(alignedValues(r.blocks, shift)...)
}

// at are the blocks with the covariates taken out, as the values are if shift is the true one.
func (r *regression) at(shift float64) []Block {
	left := slices.Clone(r.rows)
	for i, v := range r.fit(shift) {
		left[i] -= v
	}
	return r.inBlocks(left)
}

// inBlocks puts values back into blocks.
func (r *regression) inBlocks(rows []float64) []Block {
	out := make([]Block, len(r.blocks))
	for i, b := range r.blocks {
		n, all := len(b.Treatment), len(b.Treatment)+len(b.Control)
		out[i] = Block{Treatment: rows[:n:n], Control: rows[n:all:all]}
		rows = rows[all:]
	}
	return out
}

// spreadWithin is the standard deviation within blocks of values, less shift in the treatment.
func spreadWithin(blocks []Block, shift float64) float64 {
	sum, free := 0.0, 0
	for _, block := range alignedValues(blocks, shift) {
		mean := 0.0
		for _, v := range block {
			mean += v / float64(len(block))
		}
		for _, v := range block {
			sum += float64((v - mean) * (v - mean))
		}
		free += max(len(block)-1, 0)
	}
	if free == 0 {
		return 0
	}
	return math.Sqrt(sum / float64(free))
}

// explained compares the spreads within blocks, without covariates and with them.
func (a *Adjustment) explained(raw, adjusted []Block) {
	a.RawSpread, a.Spread = spreadWithin(raw, a.Raw.Value), spreadWithin(adjusted, a.Raw.Value)
	if a.RawSpread > 0 {
		a.Explained = max(0, 1-float64(a.Spread*a.Spread)/float64(a.RawSpread*a.RawSpread))
	}
}
