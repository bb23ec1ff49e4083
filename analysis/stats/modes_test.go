package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestModes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	sample := func(n int, centres ...float64) (out []float64) {
		for i := range n {
			out = append(out, centres[i%len(centres)]+10*r.NormFloat64())
		}
		return out
	}
	tests := []struct {
		name   string
		values []float64
		least  float64
		want   []float64
	}{
		{"nothing", nil, 0, nil},
		{"one value", []float64{5}, 0, []float64{5}},
		{"equal values", []float64{5, 5, 5, 5}, 8, []float64{5}},
		{"one hill", sample(50, 1000), 8, []float64{1000}},
		{"two hills", sample(50, 1000, 1100), 8, []float64{1000, 1100}},
		{"three hills", sample(90, 1000, 1100, 1200), 8, []float64{1000, 1100, 1200}},
		{"three outliers in fifty are no mode", append(sample(47, 1000), 2000, 2010, 2020), 8, []float64{1000}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Modes(tt.values, tt.least)
			if len(got) != len(tt.want) {
				t.Fatalf("modes %+v, want %v", got, tt.want)
			}
			for i, m := range got {
				if math.Abs(m.At-tt.want[i]) > 12 || m.Share < 0.1 {
					t.Errorf("mode %+v, want one at %v", m, tt.want[i])
				}
			}
		})
	}
	single := 0
	for range 200 {
		if len(Modes(sample(30, 1000), 8)) == 1 {
			single++
		}
	}
	if single < 170 {
		t.Errorf("only %d of 200 normal samples have one mode", single)
	}
}
