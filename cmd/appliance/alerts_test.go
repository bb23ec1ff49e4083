package main

import "testing"

// TestIntervalOf: intervals of small numbers, as of layout shifts, and of large ones can be read.
func TestIntervalOf(t *testing.T) {
	for _, c := range []struct {
		low, high  float64
		unit, want string
	}{
		{0.0123, 0.0456, "", "+0.0123 … +0.0456"}, {-31.26, 8, "ms", "−31.3 … +8 ms"}, {1040, 12345.6, "ms", "+1\u202f040 … +12\u202f346 ms"}, {0, 0, "ms", "0 … 0 ms"},
	} {
		if got := intervalOf(c.low, c.high, c.unit); got != c.want {
			t.Errorf("intervalOf(%v, %v) = %q, want %q", c.low, c.high, got, c.want)
		}
	}
}
