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
	type packet struct {
		down             bool
		came, left, late time.Duration
	}
	const up, down = false, true
	for _, test := range []struct {
		name    string
		packets []packet
		want    time.Duration
	}{
		{"nothing late", []packet{{down, 0, 14 * ms, 0}}, 0},
		{"early", []packet{{down, 0, 14 * ms, -1}}, 0},
		{"as late as ever", []packet{{down, 0, 14 * ms, usual}}, 0},
		{"one stall of many packets", []packet{{down, 0, 44 * ms, 30*ms + usual}, {down, 1 * ms, 44 * ms, 29 * ms}, {up, 20 * ms, 44 * ms, 10 * ms}}, 30 * ms},
		{"both ways at once", []packet{{up, 0, 24 * ms, 10*ms + usual}, {down, 5 * ms, 25 * ms, 6 * ms}}, 10 * ms},
		{"an answer to what was late", []packet{{up, 0, 24 * ms, 10*ms + usual}, {down, 24 * ms, 43 * ms, 5*ms + usual}}, 15 * ms},
		{"another packet the same way", []packet{{down, 0, 24 * ms, 10*ms + usual}, {down, 24 * ms, 43 * ms, 5*ms + usual}}, 10 * ms},
		{"the longer of two ways", []packet{
			{up, 0, 20 * ms, 6*ms + usual}, {up, 0, 30 * ms, 16*ms + usual}, {down, 21 * ms, 41 * ms, 6*ms + usual}, {down, 31 * ms, 46 * ms, ms + usual},
		}, 17 * ms},
	} {
		c := chain{}
		for _, p := range test.packets {
			c.add(p.down, lab.Time(p.came), lab.Time(p.left), p.late)
		}
		if got := lab.LateAt(c.report(), lab.Time(time.Hour)); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

// The sum is the best of all chains, and what a report leaves out makes it no less.
func TestChainIsTheBest(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	type packet struct {
		down       bool
		came, left lab.Time
		late, best time.Duration // best: of the chains that end with it
	}
	var packets []packet
	left := lab.Time(0)
	c := chain{}
	want := time.Duration(0)
	for range 2000 {
		left = left.Add(1 + time.Duration(random.Int64N(int64(3*time.Millisecond))))
		stay := time.Duration(random.Int64N(int64(20 * time.Millisecond)))
		p := packet{down: random.IntN(2) == 0, came: left.Add(-stay), left: left, late: time.Duration(random.Int64N(int64(stay) + 1))}
		c.add(p.down, p.came, p.left, p.late+usual)
		for _, q := range packets {
			if q.down != p.down && q.left <= p.came {
				p.best = max(p.best, q.best)
			}
		}
		p.best += p.late
		want = max(want, p.best)
		packets = append(packets, p)
	}
	got := c.report()
	if last := got[len(got)-1].Sum; last > want || want-last > time.Duration(len(packets))*grain {
		t.Errorf("the sum is %v, want %v", last, want)
	}
	if len(got) > maxLate || len(got) < maxLate/2 {
		t.Errorf("a report of %d steps, at most %d are wanted", len(got), maxLate)
	}
	for _, steps := range c.ending {
		for _, s := range steps {
			if sum := lab.LateAt(got, s.At); sum < s.Sum {
				t.Fatalf("at %v the report says %v, which is less than %v", s.At, sum, s.Sum)
			}
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
