package link

import (
	"testing"
	"time"
)

func TestHistogram(t *testing.T) {
	var h Histogram
	for i := range 1000 {
		h.Add(time.Duration(i) * time.Microsecond)
	}
	h.Add(-time.Microsecond)
	if h.Early != 1 || h.Count != 1001 || h.Max != 999*time.Microsecond {
		t.Errorf("histogram %+v, want 1001 durations up to 999µs, 1 of them early", h)
	}
	for q, want := range map[float64]time.Duration{0.5: 500 * time.Microsecond, 0.99: 990 * time.Microsecond} {
		if got := h.Quantile(q); got < want || float64(got) > 1.13*float64(want) {
			t.Errorf("Quantile(%v) = %v, want %v to 12.5 %% more", q, got, want)
		}
	}
	for i := range buckets - 1 {
		if upper(i) >= upper(i+1) {
			t.Fatalf("bucket %d ends at %v, and the next at %v; want it later", i, upper(i), upper(i+1))
		}
		if c := cell(upper(i)); c != i+1 {
			t.Fatalf("cell(%v) = %d, want %d, the bucket after the one that ends there", upper(i), c, i+1)
		}
	}
}
