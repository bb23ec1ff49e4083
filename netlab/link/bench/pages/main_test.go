package main

import (
	"math"
	"testing"
)

func TestDescribe(t *testing.T) {
	// The second round is later by 100. A machine that changes between rounds adds no
	// spread.
	mean, deviation := describe([][]float64{{10, 14}, {110, 114}})
	if mean != 62 || math.Abs(deviation-math.Sqrt(8)) > 1e-9 {
		t.Errorf("mean %v and deviation %v, want 62 and %v", mean, deviation, math.Sqrt(8))
	}
}

func TestSameSpread(t *testing.T) {
	near, far := [][]float64{{1, 2, 3, 4, 5}, {11, 12, 13, 14, 15}}, [][]float64{{10, 30, 50, 70, 90}, {0, 20, 40, 60, 80}}
	if p := sameSpread(near, far); p > .01 {
		t.Errorf("spreads twenty times as large: p = %v", p)
	}
	if p := sameSpread(near, [][]float64{{21, 22, 23, 24, 25}, {1, 2, 3, 4, 5}}); p < .99 {
		t.Errorf("the same spread elsewhere: p = %v", p)
	}
}
