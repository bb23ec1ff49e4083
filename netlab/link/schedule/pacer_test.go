package schedule

import (
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/netlab/link"
)

const ms = lab.Time(time.Millisecond)

func TestPacerKeepsTheRate(t *testing.T) {
	var p Pacer
	p.Set(12e6, nil, 0) // 1500 bytes a millisecond
	for i := 1; i <= 1000; i++ {
		if got := p.Depart(0, 1500); got != lab.Time(i)*ms {
			t.Fatalf("packet %d departs at %v, want %v", i, time.Duration(got), time.Duration(i)*time.Millisecond)
		}
	}
	if got := p.Depart(5000*ms, 1500); got != 5001*ms {
		t.Errorf("after idling a packet departs at %v, want 5.001s: a link saves up no capacity", time.Duration(got))
	}
}

func TestPacerBlocks(t *testing.T) {
	var p Pacer
	p.Set(link.Blocked, nil, 0)
	if p.Depart(0, 1) != Never || !p.Blocked() {
		t.Errorf("Depart() in an outage is not Never, or Blocked() is false")
	}
	p.Set(link.Unlimited, nil, 10*ms)
	if got := p.Depart(3*ms, 1500); got != 10*ms {
		t.Errorf("a packet that waited for the end of an outage departs at %v, want 10ms", time.Duration(got))
	}
}

func TestPacerFollowsATrace(t *testing.T) {
	tr, err := link.ReadTrace("t", strings.NewReader("2\n2\n7\n10\n"))
	if err != nil {
		t.Fatal(err)
	}
	var p Pacer
	p.Set(0, tr, 100*ms)
	for i, c := range []struct {
		at   lab.Time
		n    int
		want lab.Time
	}{
		{100, 1504, 102},
		{100, 1504, 102},
		{100, 1504, 107},
		{100, 700, 110},  // a small packet uses part of an opportunity,
		{100, 700, 110},  // the next one uses more of it,
		{100, 700, 112},  // and the remaining 104 bytes are too few for the third
		{111, 2000, 112}, // the rest of that opportunity and the other one of the same millisecond
		{160, 1504, 160}, // an opportunity at the instant of arrival can be used
		{1000, 1504, 1000},
		{1001, 1504, 1002},
	} {
		if got := p.Depart(c.at*ms, c.n); got != c.want*ms {
			t.Errorf("packet %d departs at %v ms, want %d", i, float64(got)/float64(ms), c.want)
		}
	}
}

func FuzzPacerFollowsATrace(f *testing.F) {
	f.Add("0\n1\n\n 5 \n5\n")
	f.Add("86400000\n")
	f.Fuzz(func(t *testing.T, s string) {
		defer testlab.Input(t)()
		tr, err := link.ReadTrace("f", strings.NewReader(s))
		if err != nil {
			return
		}
		var p Pacer
		p.Set(0, tr, 0)
		for at := range 3 {
			if got := p.Depart(lab.Time(at)*ms, 1500); got < lab.Time(at)*ms {
				t.Fatalf("%q: a packet that arrives at %d ms departs at %v, want no earlier", s, at, time.Duration(got))
			}
		}
	})
}
