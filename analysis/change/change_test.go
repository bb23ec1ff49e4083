package change

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// bruteSplit tries every split by the formula.
func bruteSplit(x []float64, least int) (at int, best float64) {
	mean := func(a, b []float64, same bool) float64 {
		sum, n := 0.0, 0
		for i := range a {
			for j := range b {
				if same && j <= i {
					continue
				}
				sum += math.Abs(a[i] - b[j])
				n++
			}
		}
		if n == 0 {
			return 0
		}
		return sum / float64(n)
	}
	for k := least; len(x)-k >= least; k++ {
		a, b := x[:k], x[k:]
		m, n := float64(len(a)), float64(len(b))
		q := m * n / (m + n) * (2*mean(a, b, false) - mean(a, a, true) - mean(b, b, true))
		if at == 0 || q > best+1e-9 {
			at, best = k, q
		}
	}
	return at, best
}

func TestSplitTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.Map(rapid.IntRange(-50, 50), func(v int) float64 { return float64(v) / 4 })
		x := rapid.SliceOfN(value, 2, 40).Draw(t, "values")
		least := rapid.IntRange(1, 4).Draw(t, "least")
		f := &finder{least: least}
		at, q := f.split(x)
		if len(x) < 2*least {
			if at != 0 {
				t.Fatalf("%d values were split at %d", len(x), at)
			}
			return
		}
		_, want := bruteSplit(x, least)
		// Equal splits may be told apart by rounding: the statistic decides.
		if math.Abs(q-want) > 1e-9*(1+math.Abs(want)) {
			t.Fatalf("Q = %v, want %v", q, want)
		}
		_, here := bruteAt(x, at)
		if math.Abs(here-want) > 1e-9*(1+math.Abs(want)) {
			t.Fatalf("split at %d has Q = %v, the best is %v", at, here, want)
		}
	})
}

func bruteAt(x []float64, k int) (int, float64) {
	m := k
	if n := len(x) - k; n < m {
		m = n
	}
	var left, right, across float64
	for i := range x {
		for j := i + 1; j < len(x); j++ {
			d := math.Abs(x[i] - x[j])
			switch {
			case j < k:
				left += d
			case i >= k:
				right += d
			default:
				across += d
			}
		}
	}
	return k, statistic(left, right, across, float64(k), float64(len(x)-k))
}

// TestByHand: 0 0 0 6 6 6. Split in the middle: 3·3/6·(2·6 − 0 − 0) = 18.
func TestByHand(t *testing.T) {
	f := &finder{least: 1}
	if at, q := f.split([]float64{0, 0, 0, 6, 6, 6}); at != 3 || q != 18 {
		t.Errorf("split at %d with Q = %v, want 3 with 18", at, q)
	}
}

func series(seed uint64, noise float64, levels ...float64) (out []float64) {
	r := rand.New(rand.NewPCG(seed, 1))
	for _, level := range levels {
		for range 25 {
			v := level + noise*r.NormFloat64()
			if r.IntN(25) == 0 {
				v += 30 * noise // an outlier
			}
			out = append(out, v)
		}
	}
	return out
}

func TestPoints(t *testing.T) {
	tests := []struct {
		name   string
		values []float64
		want   []int
	}{
		{"nothing", nil, nil},
		{"too short", []float64{1, 9, 9}, nil},
		{"constant", make([]float64, 40), nil},
		{"one step", series(1, 2, 100, 110), []int{25}},
		{"up and down", series(2, 2, 100, 110, 100), []int{25, 50}},
		{"four levels", series(3, 2, 100, 120, 90, 105), []int{25, 50, 75}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Points(tt.values, Options{Level: 0.01, Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != len(tt.want) {
				t.Fatalf("points %+v, want %v", got, tt.want)
			}
			for i, p := range got {
				if d := p.Index - tt.want[i]; d < -1 || d > 1 || p.P > 0.01 || math.Abs(p.After-p.Before) < 5 {
					t.Errorf("point %+v, want one at %d", p, tt.want[i])
				}
			}
			again, _ := Points(tt.values, Options{Level: 0.01, Seed: 1})
			if d := cmp.Diff(got, again); d != "" {
				t.Error("one seed, two outcomes", d)
			}
		})
	}
}

// TestLevel: in series without a change one in twenty has a "change point".
func TestLevel(t *testing.T) {
	alarms := 0
	for seed := range uint64(300) {
		got, err := Points(series(seed+100, 3, 50), Options{Permutations: 99, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		if len(got) > 0 {
			alarms++
		}
	}
	if alarms < 3 || alarms > 29 { // 15 ± 3.3·√14.25
		t.Errorf("%d alarms in 300 series without a change, about 15 were expected", alarms)
	}
}

func TestErrors(t *testing.T) {
	for name, f := range map[string]func() error{
		"NaN":      func() error { _, err := Points([]float64{1, math.NaN()}, Options{}); return err },
		"level":    func() error { _, err := Points(nil, Options{Level: 2}); return err },
		"least":    func() error { _, err := Points(nil, Options{Least: -1}); return err },
		"too many": func() error { _, err := Points(make([]float64, MaxValues+1), Options{}); return err },
	} {
		if f() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func BenchmarkPoints500(b *testing.B) {
	values := append(series(5, 2, 100, 104, 99, 100, 120, 110, 100, 100, 100, 100),
		series(6, 2, 100, 104, 99, 100, 120, 110, 100, 100, 100, 100)...)
	for b.Loop() {
		if _, err := Points(values, Options{Permutations: 199}); err != nil {
			b.Fatal(err)
		}
	}
}
