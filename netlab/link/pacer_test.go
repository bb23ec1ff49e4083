package link

import (
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
)

const ms = lab.Time(time.Millisecond)

func TestPacerKeepsTheRate(t *testing.T) {
	var p pacer
	p.setup(12e6, nil, 0) // 1500 bytes a millisecond
	for i := 1; i <= 1000; i++ {
		if got := p.depart(0, 1500); got != lab.Time(i)*ms {
			t.Fatalf("packet %d departs at %v, want %v", i, time.Duration(got), time.Duration(i)*time.Millisecond)
		}
	}
	if got := p.depart(5000*ms, 1500); got != 5001*ms {
		t.Errorf("after idling a packet departs at %v, want 5.001s: idle time is not saved up", time.Duration(got))
	}
}

func TestPacerBlocks(t *testing.T) {
	var p pacer
	p.setup(Blocked, nil, 0)
	if p.depart(0, 1) != never || !p.blocked() {
		t.Error("a packet leaves during an outage")
	}
	p.setup(Unlimited, nil, 10*ms)
	if got := p.depart(3*ms, 1500); got != 10*ms {
		t.Errorf("what waited for the end of an outage at 10 ms departs at %v", time.Duration(got))
	}
}

func TestPacerFollowsATrace(t *testing.T) {
	tr, err := ReadTrace("t", strings.NewReader("2\n2\n7\n10\n"))
	if err != nil {
		t.Fatal(err)
	}
	var p pacer
	p.setup(0, tr, 100*ms)
	for i, c := range []struct {
		at   lab.Time
		n    int
		want lab.Time
	}{
		{100, 1504, 102},
		{100, 1504, 102},
		{100, 1504, 107},
		{100, 700, 110},  // a small packet takes part of an opportunity,
		{100, 700, 110},  // another the rest,
		{100, 700, 112},  // and 104 bytes are not enough for the third
		{111, 2000, 112}, // the rest of that one and its twin of the same millisecond
		{160, 1504, 160}, // an opportunity at the very instant may be used
		{1000, 1504, 1000},
		{1001, 1504, 1002},
	} {
		if got := p.depart(c.at*ms, c.n); got != c.want*ms {
			t.Errorf("packet %d departs at %v ms, want %d", i, float64(got)/float64(ms), c.want)
		}
	}
}

func TestHistogram(t *testing.T) {
	var h Histogram
	for i := range 1000 {
		h.Add(time.Duration(i) * time.Microsecond)
	}
	h.Add(-time.Microsecond)
	if h.Early != 1 || h.Count != 1001 || h.Max != 999*time.Microsecond {
		t.Errorf("histogram %+v", h)
	}
	for q, want := range map[float64]time.Duration{0.5: 500 * time.Microsecond, 0.99: 990 * time.Microsecond} {
		if got := h.Quantile(q); got < want || float64(got) > 1.13*float64(want) {
			t.Errorf("quantile %v is %v, want %v to 12.5 %% more", q, got, want)
		}
	}
	for i := range buckets - 1 {
		if upper(i) >= upper(i+1) {
			t.Fatalf("bucket %d ends at %v, the next at %v", i, upper(i), upper(i+1))
		}
		if c := cell(upper(i)); c != i+1 {
			t.Fatalf("%v, the end of bucket %d, lies in %d", upper(i), i, c)
		}
	}
}
