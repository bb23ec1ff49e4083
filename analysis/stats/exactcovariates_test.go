package stats

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"

	"eidetic/internal/rigs/testlab"
)

// The p-value is exact: of all orders of the arms that could have been drawn, at most 5 % give p ≤ 5 % when the arms do
// nothing, whatever the values and the covariates are, since what the covariates explain is the same in all of them.
func TestAdjustedPIsExact(t *testing.T) {
	const size = 6
	r := rand.New(rand.NewPCG(5, 6))
	for try := range testlab.Repeat(3, 30) {
		values, speeds := make([]float64, 2*size), make([]float64, 2*size)
		for i := range values {
			speeds[i] = r.ExpFloat64()
			values[i] = 100*speeds[i] + 200*r.ExpFloat64()*r.ExpFloat64()
		}
		orders, found, first := 0, 0, math.NaN()
		for chosen := range uint(1 << (2 * size)) {
			if bits.OnesCount(chosen) != size {
				continue
			}
			block, speed := Block{}, Block{}
			for i := range values {
				if chosen>>i&1 == 1 {
					block.Treatment, speed.Treatment = append(block.Treatment, values[i]), append(speed.Treatment, speeds[i])
				} else {
					block.Control, speed.Control = append(block.Control, values[i]), append(speed.Control, speeds[i])
				}
			}
			g := newRegression([]Block{block}, []Covariate{{Name: "speed", Blocks: []Block{speed}}})
			explained := 0.0
			for _, v := range g.fit(0) {
				explained += v * v
			}
			if orders++; orders == 1 {
				first = explained
			} else if math.Abs(explained-first) > 1e-6*first {
				t.Fatalf("try %d: the covariate explains %v in one order and %v in another", try, first, explained)
			}
			test, err := AlignedRank(g.at(0), 1, 1)
			if err != nil {
				t.Fatal(err)
			}
			if test.P <= 0.05 {
				found++
			}
		}
		if float64(found) > 0.05*float64(orders) || found == 0 {
			t.Errorf("try %d: %d of %d orders are found different; want at most 5 %%, and some", try, found, orders)
		}
	}
}
