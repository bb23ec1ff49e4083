package packet

import (
	"encoding/binary"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/link"
)

// sim is a Link with simulated time and frames. It takes the turns that the thread
// takes, exactly when they are due.
type sim struct {
	*Link
	now   lab.Time
	sides [2]*fakeSide // device, lab
}

// fakeSide has the frames that are to arrive, in order, and those that have left.
type fakeSide struct {
	s    *sim
	come []arrival
	left []departure
}

type arrival struct {
	at   lab.Time
	data []byte
}

type departure struct {
	id   uint32
	size int // of the IP packet
	at   lab.Time
}

func (f *fakeSide) receive(_ lab.Clock, got func([]byte, lab.Time)) (n int) {
	for n < batch && len(f.come) > 0 && f.come[0].at <= f.s.now {
		got(f.come[0].data, f.come[0].at)
		f.come = f.come[1:]
		n++
	}
	return n
}

func (f *fakeSide) send(list []*frame) int {
	for _, x := range list {
		f.left = append(f.left, departure{binary.BigEndian.Uint32(x.data[len(x.data)-4:]), x.cost(), f.s.now})
	}
	return len(list)
}

func (f *fakeSide) overruns() int64 { return 0 }

func newSim(t testing.TB, profile string) *sim {
	t.Helper()
	p, err := link.Parse(profile)
	if err != nil {
		t.Fatal(err)
	}
	return simOf(p)
}

func simOf(p link.Profile) *sim {
	s := &sim{now: 1}
	s.sides = [2]*fakeSide{{s: s}, {s: s}}
	s.Link = newForwarder(Config{Profile: p, Clock: func() lab.Time { return s.now }}, s.sides[0], s.sides[1])
	return s
}

// packet returns a frame with an IPv4 packet of n bytes, from the address
// 198.18.0.from, with an id at its end.
func packet(n int, from byte, id uint32) []byte {
	b := make([]byte, vnetHeader+ethernet+n)
	eth := b[vnetHeader:]
	binary.BigEndian.PutUint16(eth[12:], 0x0800)
	copy(eth[ethernet+12:], []byte{198, 18, 0, from})
	copy(eth[ethernet+16:], []byte{192, 168, 77, 2})
	binary.BigEndian.PutUint32(b[len(b)-4:], id)
	return b
}

// down lets n packets of a size arrive for the device, an interval apart, from now on.
func (s *sim) down(n, size int, every time.Duration) {
	begin, first := s.now, uint32(len(s.sides[1].come))
	for i := range n {
		s.sides[1].come = append(s.sides[1].come, arrival{begin.Add(time.Duration(i) * every), packet(size, 1, first+uint32(i))})
	}
}

// until lets time pass until d after the start.
func (s *sim) until(d time.Duration) {
	for end := lab.Time(1).Add(d); ; {
		t := s.turn()
		if t.more {
			continue
		}
		next := t.next
		for _, side := range s.sides {
			if len(side.come) > 0 {
				next = min(next, side.come[0].at)
			}
		}
		if next > end {
			s.now = end
			return
		}
		s.now = max(s.now, next)
	}
}

// got returns the packets that have reached the device.
func (s *sim) got() []departure { return s.sides[0].left }

// since returns how long after the start a packet left.
func since(d departure) time.Duration { return d.at.Sub(1) }
