package schedule

import (
	"math/rand/v2"
	"testing"
	"time"

	"eidetic/internal/lab"
)

// TestLateness: one stall that many packets meet counts once; the lateness of two
// stalls in a row adds up, and so does that of several round trips.
func TestLateness(t *testing.T) {
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
		{"late as usual", []packet{{down, 0, 14 * ms, usual}}, 0},
		{"one stall of many packets", []packet{{down, 0, 44 * ms, 30*ms + usual}, {down, 1 * ms, 44 * ms, 29 * ms}, {up,
			20 * ms, 44 * ms, 10 * ms}}, 30 * ms},
		{"both directions at once", []packet{{up, 0, 24 * ms, 10*ms + usual}, {down, 5 * ms, 25 * ms, 6 * ms}}, 10 * ms},
		{"an answer to a late packet", []packet{{up, 0, 24 * ms, 10*ms + usual}, {down, 24 * ms, 43 * ms, 5*ms + usual}}, 15 * ms},
		{"another packet in the same direction", []packet{{down, 0, 24 * ms, 10*ms + usual}, {down, 24 * ms, 43 * ms, 5*ms + usual}}, 10 * ms},
		{"the longer of two chains", []packet{
			{up, 0, 20 * ms, 6*ms + usual}, {up, 0, 30 * ms, 16*ms + usual}, {down, 21 * ms, 41 * ms, 6*ms + usual}, {down,
				31 * ms, 46 * ms, ms + usual},
		}, 17 * ms},
	} {
		l := Lateness{}
		for _, p := range test.packets {
			l.Add(p.down, lab.Time(p.came), lab.Time(p.left), p.late)
		}
		if got := lab.LateAt(l.Report(), lab.Time(time.Hour)); got != test.want {
			t.Errorf("%s: the sum is %v, want %v", test.name, got, test.want)
		}
	}
}

// TestLatenessIsTheLargestSum compares the sum with that over all chains, and holds
// a report with fewer steps to be no less at any time.
func TestLatenessIsTheLargestSum(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	type packet struct {
		down       bool
		came, left lab.Time
		late, best time.Duration // best is the largest sum of the chains that end with this packet
	}
	var packets []packet
	left := lab.Time(0)
	l := Lateness{}
	want := time.Duration(0)
	for range 2000 {
		left = left.Add(1 + time.Duration(random.Int64N(int64(3*time.Millisecond))))
		stay := time.Duration(random.Int64N(int64(20 * time.Millisecond)))
		p := packet{down: random.IntN(2) == 0, came: left.Add(-stay), left: left, late: time.Duration(random.Int64N(int64(stay) + 1))}
		l.Add(p.down, p.came, p.left, p.late+usual)
		for _, q := range packets {
			if q.down != p.down && q.left <= p.came {
				p.best = max(p.best, q.best)
			}
		}
		p.best += p.late
		want = max(want, p.best)
		packets = append(packets, p)
	}
	got := l.Report()
	if last := got[len(got)-1].Sum; last > want || want-last > time.Duration(len(packets))*grain {
		t.Errorf("the sum is %v, want %v", last, want)
	}
	if len(got) > maxLate || len(got) < maxLate/2 {
		t.Errorf("the report has %d steps, want %d to %d", len(got), maxLate/2, maxLate)
	}
	for _, steps := range l.ending {
		for _, s := range steps {
			if sum := lab.LateAt(got, s.At); sum < s.Sum {
				t.Fatalf("at %v the report has %v, want at least %v", s.At, sum, s.Sum)
			}
		}
	}
}
