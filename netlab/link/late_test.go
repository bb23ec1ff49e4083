package link

import (
	"math/rand/v2"
	"testing"
	"time"

	"eidetic/internal/lab"
)

// One stall that many packets meet counts once; two in a row add up, and so
// does what each of several round trips loses.
func TestChain(t *testing.T) {
	const ms = time.Millisecond
	type packet struct{ came, left, late time.Duration }
	for _, test := range []struct {
		name    string
		packets []packet
		want    time.Duration
	}{
		{"nothing late", []packet{{0, 14 * ms, 0}}, 0},
		{"early", []packet{{0, 14 * ms, -1}}, 0},
		{"one stall of many packets", []packet{{0, 44 * ms, 30 * ms}, {1 * ms, 44 * ms, 29 * ms}, {20 * ms, 44 * ms, 10 * ms}}, 30 * ms},
		{"both ways at once", []packet{{0, 24 * ms, 10 * ms}, {5 * ms, 25 * ms, 6 * ms}}, 10 * ms},
		{"an answer to what was late", []packet{{0, 24 * ms, 10 * ms}, {24 * ms, 43 * ms, 5 * ms}}, 15 * ms},
		{"the longer of two ways", []packet{{0, 20 * ms, 6 * ms}, {0, 30 * ms, 16 * ms}, {21 * ms, 41 * ms, 6 * ms}, {31 * ms, 46 * ms, ms}}, 17 * ms},
	} {
		c := chain{}
		for _, p := range test.packets {
			c.add(lab.Time(p.came), lab.Time(p.left), p.late)
		}
		if got := lab.LateAt(c.report(), lab.Time(time.Hour)); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

// The sum is the best of all chains, and what a report leaves out makes it no less.
func TestChainIsTheBest(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	type packet struct{ came, left lab.Time }
	var packets []packet
	var late []time.Duration
	left := lab.Time(0)
	for range 2000 {
		left = left.Add(time.Duration(random.Int64N(int64(3 * time.Millisecond))))
		stay := time.Duration(random.Int64N(int64(20 * time.Millisecond)))
		packets = append(packets, packet{left.Add(-stay), left})
		late = append(late, time.Duration(random.Int64N(int64(stay)+1)))
	}
	c := chain{}
	best := make([]time.Duration, len(packets)) // that end with this one or before
	for i, p := range packets {
		c.add(p.came, p.left, late[i])
		before := time.Duration(0)
		for j := range i {
			if packets[j].left <= p.came {
				before = max(before, best[j])
			}
		}
		if best[i] = before + late[i]; i > 0 {
			best[i] = max(best[i], best[i-1])
		}
	}
	want := best[len(best)-1]
	if got := c.steps[len(c.steps)-1].Sum; got > want || want-got > time.Duration(len(c.steps))*grain {
		t.Errorf("the sum is %v, want %v", got, want)
	}
	short := c.report()
	if len(short) > maxLate || len(short) < maxLate/2 {
		t.Errorf("a report of %d steps, at most %d are wanted", len(short), maxLate)
	}
	for _, s := range c.steps {
		if got := lab.LateAt(short, s.At); got < s.Sum {
			t.Fatalf("at %v the report says %v, which is less than %v", s.At, got, s.Sum)
		}
	}
}

// A stall that is asked for is made, is drawn anew for each trial, and shows
// in the report as what it was.
func TestStall(t *testing.T) {
	s := newSim(t, "rtt=20ms,stall=100ms@200ms-900ms")
	seen := map[time.Duration]bool{}
	for range 5 {
		s.Restart()
		begun, before := s.now, len(s.got())
		s.down(1500, 100, time.Millisecond)
		s.until(begun.Add(2 * time.Second).Sub(1))
		r := s.Report()
		if r.Stalled == nil || r.Stalled.For != 100*time.Millisecond {
			t.Fatalf("the report says of the stall %+v", r.Stalled)
		}
		from := begun.Add(r.Stalled.At)
		seen[r.Stalled.At] = true
		for _, d := range s.got()[before:] {
			if d.at >= from && d.at < from.Add(r.Stalled.For) {
				t.Fatalf("a packet left %v after the stall began", d.at.Sub(from))
			}
		}
		if n := len(s.got()) - before; n != 1500 {
			t.Errorf("%d of 1500 packets left", n)
		}
		if sum := lab.LateAt(r.Late, s.now); sum < 99*time.Millisecond || sum > 101*time.Millisecond {
			t.Errorf("the link was %v late in all, want 100 ms", sum)
		}
		s.sides[1].come = nil
	}
	if len(seen) < 4 {
		t.Errorf("in five trials the stall began at %d moments", len(seen))
	}
}
