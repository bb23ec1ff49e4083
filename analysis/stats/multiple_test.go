package stats

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// TestAdjust: the fifteen p-values of Benjamini and Hochberg (1995), of which
// their procedure rejects four at 5 %, Holm's three. Adjusted values are R's
// p.adjust.
func TestAdjust(t *testing.T) {
	p := []float64{0.4262, 0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.5719, 0.6528, 0.7590, 1}
	count := func(adjusted []float64) (n int) {
		for _, v := range adjusted {
			if v <= 0.05 {
				n++
			}
		}
		return n
	}
	bh, holm := BenjaminiHochberg(p), Holm(p)
	if count(bh) != 4 || count(holm) != 3 {
		t.Errorf("%d and %d rejected, want 4 and 3", count(bh), count(holm))
	}
	approx := cmpopts.EquateApprox(0, 1e-6)
	if d := cmp.Diff([]float64{0.0015, 0.003, 0.0095, 0.035625}, bh[1:5], approx); d != "" {
		t.Error("Benjamini–Hochberg", d)
	}
	if d := cmp.Diff([]float64{0.0015, 0.0056, 0.0247, 0.114}, holm[1:5], approx); d != "" {
		t.Error("Holm", d)
	}
	withNaN := BenjaminiHochberg([]float64{0.01, math.NaN(), 0.02})
	if d := cmp.Diff([]float64{0.02, math.NaN(), 0.02}, withNaN, approx, cmpopts.EquateNaNs()); d != "" {
		t.Error("NaN", d)
	}
}

func TestAdjustProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SliceOfN(rapid.Float64Range(0, 1), 0, 20).Draw(t, "p")
		bh, holm := BenjaminiHochberg(p), Holm(p)
		for i := range p {
			if !(p[i] <= bh[i] && bh[i] <= holm[i] && holm[i] <= min(1, p[i]*float64(len(p)))+1e-12) {
				t.Fatalf("%d: p %v, BH %v, Holm %v of %d", i, p[i], bh[i], holm[i], len(p))
			}
			for j := range p {
				if p[i] < p[j] && (bh[i] > bh[j] || holm[i] > holm[j]) {
					t.Fatal("the order changed")
				}
			}
		}
	})
}

// TestOBrienFleming against the constants of O'Brien and Fleming as tabulated by
// Jennison and Turnbull (2000), table 2.3, two-sided, even looks.
func TestOBrienFleming(t *testing.T) {
	tests := []struct {
		looks []int
		alpha float64
		c     float64 // the last bound
	}{
		{[]int{1}, 0.05, 1.960}, {[]int{1, 2}, 0.05, 1.977}, {[]int{1, 2, 3}, 0.05, 2.004},
		{[]int{1, 2, 3, 4}, 0.05, 2.024}, {[]int{1, 2, 3, 4, 5}, 0.05, 2.040}, {[]int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 0.05, 2.087},
		{[]int{1, 2, 3, 4, 5}, 0.01, 2.621}, {[]int{1, 2, 3, 4, 5}, 0.1, 1.751},
	}
	for _, tt := range tests {
		bounds, err := OBrienFleming(tt.looks, tt.alpha)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "the last bound", bounds[len(bounds)-1], tt.c, 6e-4)
	}
	plan, err := OBrienFleming([]int{13, 25, 38, 50}, 0.05)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]float64{3.97, 2.86, 2.32, 2.02}, plan, cmpopts.EquateApprox(0, 0.01)); d != "" {
		t.Error("looks at 13, 25, 38 and 50 pairs", d)
	}
	for _, bad := range [][]int{nil, {0}, {2, 2}, {3, 1}} {
		if _, err := OBrienFleming(bad, 0.05); err == nil {
			t.Errorf("looks %v were accepted", bad)
		}
	}
	if _, err := OBrienFleming([]int{1}, 0); err == nil {
		t.Error("a level of 0 was accepted")
	}
}
