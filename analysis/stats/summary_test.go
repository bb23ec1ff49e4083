package stats

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"eidetic/internal/lab"
)

func TestSummarise(t *testing.T) {
	tests := []struct {
		name   string
		values []float64
		want   lab.Summary
		warns  string
	}{
		{"none", nil, lab.Summary{}, "no values"},
		{"one", []float64{7}, lab.Summary{N: 1, Median: 7, Min: 7, Max: 7, Q1: 7, Q3: 7, Low: 7, High: 7}, "n = 1 is too small"},
		{"five are too few", []float64{5, 1, 4, 2, 3}, lab.Summary{N: 5, Median: 3, Min: 1, Max: 5, Q1: 2, Q3: 4, Low: 1, High: 5},
			"n = 5 is too small"},
		// Six: [x(1), x(6)] covers 1 − 2/64 = 96.9 %.
		{"six", []float64{6, 5, 4, 3, 2, 1}, lab.Summary{N: 6, Median: 3.5, Min: 1, Max: 6, Q1: 2.25, Q3: 4.75, Low: 1, High: 6}, ""},
		// Ten: [x(2), x(9)] covers 97.9 % (Hahn and Meeker, table A.15a).
		{"ten", []float64{10, 9, 8, 7, 6, 5, 4, 3, 2, 1}, lab.Summary{N: 10, Median: 5.5, Min: 1, Max: 10, Q1: 3.25, Q3: 7.75,
			Low: 2, High: 9}, ""},
		{"not finite", []float64{math.NaN(), math.Inf(1), 1, 2, 3, 4, 5, 6},
			lab.Summary{N: 6, Median: 3.5, Min: 1, Max: 6, Q1: 2.25, Q3: 4.75, Low: 1, High: 6}, "2 of 8 values are not finite"},
		{"all equal", []float64{4, 4, 4, 4, 4, 4}, lab.Summary{N: 6, Median: 4, Min: 4, Max: 4, Q1: 4, Q3: 4, Low: 4, High: 4},
			"all values are equal"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Summarise(tt.values)
			if all := strings.Join(got.Warnings, "; "); !strings.Contains(all, tt.warns) || tt.warns == "" && all != "" {
				t.Errorf("warnings %q, want %q", all, tt.warns)
			}
			got.Warnings = nil
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error("-want +got\n", d)
			}
		})
	}
}

// TestMedianRanks against the published 1-based ranks of the two-sided 95 %
// interval (Conover, Practical Nonparametric Statistics, table A3).
func TestMedianRanks(t *testing.T) {
	for n, k := range map[int]int{6: 1, 8: 1, 9: 2, 11: 2, 12: 3, 15: 4, 20: 6, 25: 8, 30: 10, 40: 14, 50: 18, 100: 40} {
		lo, hi, ok := medianRanks(n, 0.95)
		if !ok || lo+1 != k || hi+1 != n+1-k {
			t.Errorf("n = %d: ranks %d … %d, want %d … %d", n, lo+1, hi+1, k, n+1-k)
		}
	}
	if _, _, ok := medianRanks(1_000_000, 0.95); !ok {
		t.Error("a million values are too few")
	}
}

func TestSummariseProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(-1e6, 1e6), 1, 60).Draw(t, "values")
		before := slices.Clone(values)
		s := Summarise(values)
		if !slices.Equal(before, values) {
			t.Fatal("the argument was changed")
		}
		order := []float64{s.Min, s.Low, s.Median, s.High, s.Max}
		quarters := []float64{s.Min, s.Q1, s.Median, s.Q3, s.Max}
		if !slices.IsSorted(order) || !slices.IsSorted(quarters) {
			t.Fatalf("out of order: %v %v", order, quarters)
		}
		slices.Reverse(values)
		if d := cmp.Diff(s, Summarise(values)); d != "" {
			t.Fatal("order matters\n", d)
		}
	})
}
