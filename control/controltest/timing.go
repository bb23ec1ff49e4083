package controltest

import (
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"eidetic/internal/lab"
)

// Events is how many events a check of intervals makes: as many as EIDETIC_EVENTS says, which is
// for make soak-controls, or few.
func Events(t testing.TB, few int) int {
	t.Helper()
	text := os.Getenv("EIDETIC_EVENTS")
	if text == "" {
		return few
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("EIDETIC_EVENTS: %q is no number of events", text)
	}
	return n
}

// Timing holds intervals that a controller claims against the arrivals at the device.
type Timing struct {
	Precision time.Duration // of the device's stamps
	outside   int
	widths    []time.Duration
	worst     time.Duration // by which an arrival lay outside
}

// Add holds one event against its arrival.
func (c *Timing) Add(earliest, latest, arrived lab.Time) {
	c.widths = append(c.widths, latest.Sub(earliest))
	early, late := earliest.Add(-c.Precision).Sub(arrived), arrived.Sub(latest.Add(c.Precision))
	if by := max(early, late); by > 0 {
		c.outside++
		c.worst = max(c.worst, by)
	}
}

// Check fails the test if more than one event in a thousand arrived outside its interval.
func (c *Timing) Check(t testing.TB) {
	t.Helper()
	slices.Sort(c.widths)
	n := len(c.widths)
	if n == 0 {
		t.Fatal("there were no events")
	}
	t.Logf("%d events, %d outside their interval (by %v at most), whose width is %v in the median, %v in 99 %%",
		n, c.outside, c.worst, c.widths[n/2], c.widths[n*99/100])
	if 1000*c.outside > n {
		t.Errorf("%d of %d events arrived outside their interval; want at most 1 in 1000", c.outside, n)
	}
}
