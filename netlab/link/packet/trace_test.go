package packet

import (
	"bytes"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"eidetic/netlab/link"
)

// oneFile returns a Reader for which every trace file has this content.
func oneFile(content string) link.Reader {
	return link.Reader{Open: func(string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil }}
}

// TestTraceContinuesOverAChange: a change of something else does not restart the
// trace, also in a process that got the profile over a socket.
func TestTraceContinuesOverAChange(t *testing.T) {
	p, err := oneFile("1\n1000\n").Parse("trace=t; 500ms: rtt=2ms")
	if err != nil {
		t.Fatal(err)
	}
	q := p.Clone()
	copied := *p.DownTrace
	copied.At = slices.Clone(copied.At)
	q.Changes[0].Profile.DownTrace = &copied
	shareTraces(&q)
	for _, p := range []link.Profile{p, q} {
		s := simOf(p)
		s.down(3, 1500, 0)
		s.until(3 * time.Second)
		var at []time.Duration
		for _, d := range s.got() {
			at = append(at, since(d))
		}
		if want := []time.Duration{time.Millisecond, time.Second, 1001 * time.Millisecond}; !slices.Equal(at, want) {
			t.Errorf("packets came at %v, want %v", at, want)
		}
	}
}

// TestNewTrace: a link that follows the trace of what another link carried carries
// the same.
func TestNewTrace(t *testing.T) {
	carry := func(s *sim) map[time.Duration]int {
		s.down(9000, 1500, time.Millisecond) // always more than fits
		s.until(8 * time.Second)
		return maps.Collect(packets(s))
	}
	s := newSim(t, "down=4mbit,queue=20p; 2s: down=1mbit; 5s: down=7mbit")
	want := carry(s)
	trace, err := link.NewTrace("recorded", packets(s))
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := trace.Write(&file); err != nil {
		t.Fatal(err)
	}
	read, err := link.ReadTrace("recorded", &file)
	if err != nil {
		t.Fatal(err)
	}
	if !read.Equal(trace) {
		t.Errorf(
			"the trace that was written and read has %d lines in %v, want %d in %v",
			len(read.At),
			read.Period,
			len(trace.At),
			trace.Period,
		)
	}
	got := carry(simOf(link.Profile{DownTrace: read, Queue: link.Queue{Packets: 20}}))
	for from := time.Duration(0); from < 7*time.Second; from += time.Second {
		sum := func(all map[time.Duration]int) (n int) {
			for at, size := range all {
				if at >= from && at < from+time.Second {
					n += size
				}
			}
			return n
		}
		if g, w := sum(got), sum(want); max(g, w)-min(g, w) > 2*link.TracePacket {
			t.Errorf("from %v: %d bytes by the trace, want the %d recorded", from, g, w)
		}
	}
}

// packets yields the times and sizes of the packets that reached the device.
func packets(s *sim) func(func(time.Duration, int) bool) {
	return func(yield func(time.Duration, int) bool) {
		for _, d := range s.got() {
			if !yield(since(d), d.size) {
				return
			}
		}
	}
}
