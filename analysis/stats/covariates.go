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
	// pairsPerCovariate is how many pairs each covariate that is used takes: 12 trials for one slope.
	pairsPerCovariate = 6
	// mostCovariates is the most that are used.
	mostCovariates = 4
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
	arm    []float64   // 1 for the treatment's
	x      [][]float64 // covariate × row: in standard deviations from the block's middle
	names  []string
}

// newRegression uses the first covariates, as many as the pairs allow; nil for none.
func newRegression(blocks []Block, all []Covariate) *regression {
	control, _ := paired(blocks)
	most := min(len(control)/pairsPerCovariate, mostCovariates)
	r := &regression{blocks: blocks}
	for _, b := range blocks {
		r.rows = append(append(r.rows, b.Treatment...), b.Control...)
		r.arm = append(append(r.arm, slices.Repeat([]float64{1}, len(b.Treatment))...), make([]float64, len(b.Control))...)
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

// robustSpread estimates the standard deviation of values around 0 by their median size, or by their mean one where most are 0.
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

// slopes are those of the values, less shift in the treatment, on the covariates: Huber's regression, shrunk by how
// much of what it explains chance would. So useless covariates have slopes of 0 most of the time. The arms are not
// looked at: if the shift is the true one, the slopes are the same whatever arm each trial had.
func (r *regression) slopes(shift float64) []float64 {
	y := r.aligned(shift)
	scale := robustSpread(y)
	b := make([]float64, len(r.x))
	if !(scale > 0) {
		return b
	}
	residual, weights := slices.Clone(y), make([]float64, len(y))
	for range weightRounds {
		for i, v := range residual {
			weights[i] = 1
			if size := math.Abs(v); size > huber*scale {
				weights[i] = huber * scale / size
			}
		}
		b = r.solve(y, weights)
		r.less(residual, y, b)
		scale = max(robustSpread(residual), precision*scale)
	}
	before, after := losses(y, scale), losses(residual, scale)
	k, free := float64(len(r.x)), float64(len(y)-len(r.blocks)-len(r.x))
	if !(before > after) || !(free > 0) {
		return make([]float64, len(r.x))
	}
	// 1 − 1/F: what remains of a share explained when chance's part is taken off (Ezekiel 1930).
	keep := max(0, 1-float64(k/free*after)/(before-after))
	for i := range b {
		b[i] *= keep
	}
	return b
}

// aligned are the values less shift in the treatment and less the median of their block.
func (r *regression) aligned(shift float64) []float64 {
	return slices.Concat(alignedValues(r.blocks, shift)...)
}

// less fills in what slopes leave of values.
func (r *regression) less(residual, y, b []float64) {
	for i := range y {
		residual[i] = y[i]
		for k, x := range r.x {
			residual[i] -= float64(b[k] * x[i])
		}
	}
}

// losses is the sum of Huber's losses.
func losses(values []float64, scale float64) (sum float64) {
	for _, v := range values {
		if z := math.Abs(v) / scale; z <= huber {
			sum += float64(z*z) / 2
		} else {
			sum += float64(huber * (z - huber/2))
		}
	}
	return sum
}

// solve is weighted least squares, with so small a ridge that equal covariates share their slope.
func (r *regression) solve(y, w []float64) []float64 {
	k := len(r.x)
	m := make([][]float64, k)
	for a := range m {
		m[a] = make([]float64, k+1)
		for i := range y {
			for c := range k {
				m[a][c] += float64(w[i] * float64(r.x[a][i]*r.x[c][i]))
			}
			m[a][k] += float64(w[i] * float64(r.x[a][i]*y[i]))
		}
		m[a][a] += float64(1e-6 * float64(len(y)))
	}
	for a := range k { // the matrix is positive definite: no pivots are needed
		for c := a + 1; c < k; c++ {
			f := m[c][a] / m[a][a]
			for j := a; j <= k; j++ {
				m[c][j] -= float64(f * m[a][j])
			}
		}
	}
	b := make([]float64, k)
	for a := k - 1; a >= 0; a-- {
		b[a] = m[a][k]
		for j := a + 1; j < k; j++ {
			b[a] -= float64(m[a][j] * b[j])
		}
		b[a] /= m[a][a]
	}
	return b
}

// at are the blocks with the covariates taken out, as the values are if shift is the true one.
func (r *regression) at(shift float64) []Block {
	left := make([]float64, len(r.rows))
	r.less(left, r.rows, r.slopes(shift))
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
