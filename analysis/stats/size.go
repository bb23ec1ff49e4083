package stats

import "math"

// outer is where a value begins to count as one so far out, in robust standard deviations: ranks hardly see how far it
// is.
const outer = 2.5

// SpreadOfBoth is the standard deviation within blocks of the values of both arms together, without what covariates
// explain and with values that lie far out drawn in. It does not look at the arms: it is the same for every order of
// them that could have been drawn, so a run may choose its size by it without harm to its p-value. A difference between
// the arms makes it larger.
func SpreadOfBoth(blocks []Block, covariates []Covariate) float64 {
	used := 0
	if r := newRegression(blocks, covariates); r != nil {
		blocks, used = r.at(0), len(r.x)
	}
	var all []float64
	for _, block := range alignedValues(blocks, 0) {
		all = append(all, block...)
	}
	scale, sum := robustSpread(all), 0.0
	for _, v := range all {
		v = max(-outer*scale, min(outer*scale, v))
		sum += float64(v * v)
	}
	free := len(all) - len(blocks) - used
	if free < 1 {
		return 0
	}
	return math.Sqrt(sum / float64(free))
}

// PairsToFind is how many pairs find an effect with a power of 80 %, where loads vary by a spread and a family of
// metrics shares the level of 5 %: 2 s² (z + z₀.₈)² ÷ d², and 5 % more, as ranks know a little less of normal values
// than means do.
func PairsToFind(spread, effect float64, family int) int {
	const power, efficiency = 0.8, 0.955
	z := normalQuantile(1-0.05/float64(2*max(family, 1))) + normalQuantile(power)
	n := 2 * spread * spread * z * z / (effect * effect) / efficiency
	if !(n < mostPairs) {
		return mostPairs
	}
	return max(int(math.Ceil(n)), 1)
}

// mostPairs is what nobody would wait for.
const mostPairs = 100_000
