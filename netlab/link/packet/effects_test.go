package packet

import (
	"math"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"eidetic/netlab/link"
)

func ids(list []departure) (out []uint32) {
	for _, d := range list {
		out = append(out, d.id)
	}
	return out
}

func TestSameSeedLosesTheSamePackets(t *testing.T) {
	for _, profile := range []string{"loss=5%,seed=7", "loss=5%,burst=4,seed=7",
		"loss=2%,rtt=20ms,jitter=5ms,reorder=yes,seed=7,down=10mbit,queue=20p"} {
		var first []departure
		for run := range 5 {
			s := newSim(t, profile)
			s.down(2000, 1000, time.Millisecond)
			s.until(10 * time.Second)
			if run == 0 {
				first = s.got()
			}
			if n := len(s.got()); !slices.Equal(first, s.got()) || n < 1700 || n > 1990 {
				t.Errorf("%s: run %d passed %d packets; want 1700 to 1990, those of run 0", profile, run, n)
			}
		}
		s := newSim(t, strings.Replace(profile, "seed=7", "seed=8", 1))
		s.down(2000, 1000, time.Millisecond)
		s.until(10 * time.Second)
		if slices.Equal(ids(first), ids(s.got())) {
			t.Errorf("%s: seed 8 loses the same packets as seed 7, want others", profile)
		}
	}
}

func TestRestartLosesTheSamePackets(t *testing.T) {
	s := newSim(t, "loss=10%,burst=2,seed=3")
	var first []uint32
	for run := range 5 {
		s.sides[0].left = nil
		s.Restart()
		s.down(500, 1000, time.Millisecond)
		s.until(time.Duration(run+1) * time.Second)
		if run == 0 {
			first = ids(s.got())
		}
		if !slices.Equal(first, ids(s.got())) || len(first) == 500 {
			t.Errorf("trial %d passed %d packets; want fewer than 500, those of trial 0", run, len(s.got()))
		}
	}
}

// TestNeighbourDiscoveryIsNotLost: frames that kernels send by themselves are not
// lost, and do not change which other packets are lost.
func TestNeighbourDiscoveryIsNotLost(t *testing.T) {
	s, disturbed := newSim(t, "loss=30%,seed=5"), newSim(t, "loss=30%,seed=5")
	s.down(300, 100, time.Millisecond)
	disturbed.down(300, 100, time.Millisecond)
	frame := func(etherType [2]byte, payload ...byte) []byte {
		b := packet(60, 1, 1e6)
		clear(b[vnetHeader+ethernet : len(b)-4])
		copy(b[vnetHeader+12:], etherType[:])
		copy(b[vnetHeader+ethernet:], payload)
		return b
	}
	solicitation := append(make([]byte, 40), 135)
	solicitation[6] = 58
	multicast := make([]byte, 41)
	multicast[24], multicast[25] = 0xff, 0x02
	come := disturbed.sides[1].come
	for i := range 30 {
		at := come[i*10].at
		come = append(come, arrival{at, frame([2]byte{0x08, 0x06})}, arrival{at, frame([2]byte{0x86, 0xdd},
			solicitation...)}, arrival{at, frame([2]byte{0x86, 0xdd}, multicast...)})
	}
	slices.SortStableFunc(come, func(a, b arrival) int { return int(a.at - b.at) })
	disturbed.sides[1].come = come
	s.until(time.Second)
	disturbed.until(time.Second)
	rest := slices.DeleteFunc(ids(disturbed.got()), func(id uint32) bool { return id == 1e6 })
	if !slices.Equal(ids(s.got()), rest) {
		t.Error("neighbour discovery changed which other packets are lost")
	}
	if n := len(disturbed.got()) - len(rest); n != 90 {
		t.Errorf("%d frames of neighbour discovery passed, want all 90", n)
	}
}

// TestBurstLoss holds Gilbert's model to its two numbers.
func TestBurstLoss(t *testing.T) {
	for profile, want := range map[string]struct{ loss, burst float64 }{
		"loss=1%,seed=1": {.01, 1.01}, "loss=1%,burst=5,seed=1": {.01, 5}, "loss=20%,burst=3,seed=2": {.2, 3}, "loss=100%": {1, 200_000},
	} {
		s := newSim(t, profile)
		const n = 200_000
		s.down(n, 100, 10*time.Microsecond)
		s.until(3 * time.Second)
		there := make([]bool, n)
		for _, d := range s.got() {
			there[d.id] = true
		}
		lost, runs := 0, 0
		for i, ok := range there {
			if !ok {
				lost++
				if i == 0 || there[i-1] {
					runs++
				}
			}
		}
		loss, burst := float64(lost)/n, float64(lost)/float64(runs)
		// There are some thousand runs, so the means are within a few percent.
		if math.Abs(loss-want.loss) > .1*want.loss || math.Abs(burst-want.burst) > .1*want.burst {
			t.Errorf("%s: the share lost is %.4f in runs of %.2f, want %v", profile, loss, burst, want)
		}
		if got := s.Report().Down.Drops[link.DropLoss]; got != int64(lost) {
			t.Errorf("%s: the report counts %d losses, want %d", profile, got, lost)
		}
	}
}

func TestJitter(t *testing.T) {
	for _, reorder := range []bool{false, true} {
		profile := "rtt=40ms,jitter=5ms,seed=9"
		if reorder {
			profile += ",reorder=yes"
		}
		s := newSim(t, profile)
		s.down(5000, 100, time.Millisecond)
		s.until(6 * time.Second)
		least, most, sum := time.Hour, time.Duration(0), time.Duration(0)
		for _, d := range s.got() {
			delay := since(d) - time.Duration(d.id)*time.Millisecond
			least, most, sum = min(least, delay), max(most, delay), sum+delay
		}
		if len(s.got()) != 5000 || least < 15*time.Millisecond || least > 17*time.Millisecond ||
			most > 25*time.Millisecond || most < 24*time.Millisecond {
			t.Errorf("%s: %d packets delayed from %v to %v, want 15ms to 25ms", profile, len(s.got()), least, most)
		}
		if ordered := slices.IsSorted(ids(s.got())); ordered == reorder {
			t.Errorf("%s: packets came in order: %v, want %v", profile, ordered, !reorder)
		}
		if mean := sum / 5000; reorder && (mean < 19900*time.Microsecond || mean > 20100*time.Microsecond) {
			t.Errorf("%s: the mean delay is %v, want 20ms", profile, mean)
		}
	}
}

func TestMTU(t *testing.T) {
	s := newSim(t, "mtu=1400")
	s.down(1, 1400, 0)
	s.down(1, 1401, 0)
	s.until(time.Second)
	if got := s.got(); len(got) != 1 || got[0].size != 1400 || s.Report().Down.Drops[link.DropMTU] != 1 {
		t.Errorf("passed %v, dropped %v; want the packet of 1400 bytes passed and the other dropped", got, s.Report().Down.Drops)
	}
}

// TestQueueBounds: of a burst, one packet is being sent and as many wait as the
// bound allows.
func TestQueueBounds(t *testing.T) {
	for profile, pass := range map[string]int{
		"down=1.2mbit":                          1001, // 10 ms a packet
		"down=1.2mbit,queue=10p":                11,
		"down=1.2mbit,queue=15kB":               11,
		"down=1.2mbit,queue=14999B":             10,
		"down=1.2mbit,queue=100ms":              11,
		"down=1.2mbit,queue=99ms":               10,
		"down=1.2mbit,queue=10p; 1ms: queue=4p": 5,
	} {
		s := newSim(t, profile)
		// The first packet comes alone, so that it is being sent when the others come.
		s.down(1, 1500, 0)
		s.until(time.Millisecond)
		s.down(1100, 1500, 0)
		s.until(20 * time.Second)
		got := s.got()
		if len(got) != pass {
			t.Errorf("%s: %d packets passed, want %d", profile, len(got), pass)
			continue
		}
		if last, want := since(got[len(got)-1]), time.Duration(pass)*10*time.Millisecond; last != want {
			t.Errorf("%s: the last packet left at %v, want %v", profile, last, want)
		}
		r := s.Report()
		if r.Down.Drops[link.DropQueue] != int64(1101-pass) || r.Down.QueuePeak != int64(1500*(pass-1)) {
			t.Errorf("%s: the report has drops %v and a queue peak of %d bytes, want %d drops and %d bytes",
				profile, r.Down.Drops, r.Down.QueuePeak, 1101-pass, 1500*(pass-1))
		}
	}
}

// TestCoDel overloads the link by a tenth with a sender that does not react to
// drops: with drop-tail the queue fills, with CoDel it stays short.
func TestCoDel(t *testing.T) {
	wait := func(profile string) (standing time.Duration, drops map[string]int64, first time.Duration) {
		s := newSim(t, profile)
		s.down(30_000, 1500, 900*time.Microsecond) // of 1 ms each
		s.until(27 * time.Second)
		last := -1
		for _, d := range s.got() {
			if int(d.id) != last+1 && first == 0 {
				first = since(d)
			}
			last = int(d.id)
			if since(d) > 20*time.Second {
				standing = max(standing, since(d)-time.Duration(d.id)*900*time.Microsecond-time.Millisecond)
			}
		}
		return standing, s.Report().Down.Drops, first
	}
	if standing, drops, _ := wait("down=12mbit,queue=1000p"); standing < 900*time.Millisecond ||
		drops[link.DropCoDel] > 0 || drops[link.DropQueue] == 0 {
		t.Errorf("drop-tail: packets waited up to %v, drops %v; want at least 900ms and drops of a full queue only", standing, drops)
	}
	standing, drops, first := wait("down=12mbit,queue=1000p,aqm=codel")
	if standing > 100*time.Millisecond || drops[link.DropCoDel] < 1000 || drops[link.DropQueue] > 0 {
		t.Errorf(
			"CoDel: packets waited up to %v after 20 s, drops %v; want at most 100ms and over 1000 drops by CoDel only",
			standing,
			drops,
		)
	}
	// The wait reaches 5 ms after about 50 ms, and must stay above that for 100 ms.
	if first < 150*time.Millisecond || first > 165*time.Millisecond {
		t.Errorf("CoDel dropped first at %v, want 150ms to 165ms", first)
	}
}

func TestExtraDelayOfAnOrigin(t *testing.T) {
	s := newSim(t, "rtt=20ms")
	s.SetExtra(map[netip.Addr]time.Duration{netip.MustParseAddr("198.18.0.9"): 80 * time.Millisecond})
	for i := range 10 {
		s.sides[1].come = append(s.sides[1].come, arrival{1, packet(100, byte(9-i%2), uint32(i))})
	}
	s.sides[0].come = append(s.sides[0].come, arrival{1, packet(100, 1, 99)}) // upwards, to another
	s.until(time.Second)
	for _, d := range s.got() {
		want := 10 * time.Millisecond
		if d.id%2 == 0 {
			want = 50 * time.Millisecond
		}
		if since(d) != want {
			t.Errorf("packet %d came after %v, want %v", d.id, since(d), want)
		}
	}
	if up := s.sides[1].left; len(s.got()) != 10 || len(up) != 1 || since(up[0]) != 10*time.Millisecond {
		t.Errorf("%d packets came down and up %v; want 10, and one up after 10ms", len(s.got()), up)
	}
}

// TestChanges follows a profile through its changes and an outage, to the nanosecond.
func TestChanges(t *testing.T) {
	s := newSim(t, "rtt=70ms,down=12mbit; 5s: rtt=400ms; 8s: down=0; 9s: down=1.2mbit")
	for run := range 2 {
		begin := time.Duration(run) * 12 * time.Second
		s.sides[0].left = nil
		s.down(10, 1500, time.Second)
		if run > 0 {
			s.Restart()
		}
		s.until(begin + 12*time.Second)
		ms := time.Millisecond
		for i, want := range []time.Duration{36 * ms, 1036 * ms, 2036 * ms, 3036 * ms, 4036 * ms,
			5201 * ms, 6201 * ms, 7201 * ms, 9000*ms + 10*ms + 200*ms, 9000*ms + 20*ms + 200*ms} {
			if got := since(s.got()[i]) - begin; got != want {
				t.Errorf("trial %d: packet %d came at %v, want %v", run, i, got, want)
			}
		}
		if r := s.Report(); r.Slips > 0 || r.Down.Errors.Max > 0 || r.Down.Errors.Early > 0 {
			t.Errorf("trial %d: departures have errors %+v, want none", run, r.Down.Errors)
		}
	}
}

// TestOutageQueues: packets that fit into the queue wait for the end of an outage.
func TestOutageQueues(t *testing.T) {
	s := newSim(t, "down=0,queue=3p; 2s: down=12mbit")
	s.down(10, 1500, 100*time.Millisecond)
	s.until(3 * time.Second)
	var at []time.Duration
	for _, d := range s.got() {
		at = append(at, since(d))
	}
	if want := []time.Duration{2001 * time.Millisecond, 2002 * time.Millisecond, 2003 * time.Millisecond}; !slices.Equal(at, want) {
		t.Errorf("after the outage packets came at %v, want %v", at, want)
	}
	if n := s.Report().Down.Drops[link.DropQueue]; n != 7 {
		t.Errorf("%d packets were dropped by the queue, want 7", n)
	}
}

// TestTraceCapacity: a link that follows a trace carries the trace's capacity, within 1 %.
func TestTraceCapacity(t *testing.T) {
	trace := &link.Trace{Name: "saw"}
	for ms := 1; ms <= 1000; ms++ { // 0 to 24 Mbit/s and again
		for range ms%100*2/100 + ms%2 {
			trace.At = append(trace.At, time.Duration(ms)*time.Millisecond)
		}
	}
	trace.Period = time.Second
	for _, size := range []int{1500, 1504, 600, 60} {
		s := simOf(link.Profile{Name: "custom", DownTrace: trace, Queue: link.Queue{Packets: 1 << 20}})
		const seconds = 10
		n := int(float64(trace.Rate()) / 8 * seconds * 1.2 / float64(size))
		s.down(n, size, seconds*time.Second/time.Duration(n))
		s.until(seconds * time.Second)
		bytes := 0
		for _, d := range s.got() {
			bytes += d.size
		}
		got, want := float64(bytes)*8/seconds, float64(trace.Rate())
		if got < .99*want || got > want {
			t.Errorf("packets of %d bytes: %.0f bit/s passed, want 99 %% to 100 %% of %.0f", size, got, want)
		}
	}
}
