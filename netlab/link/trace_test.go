package link

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
)

// files opens from a map.
func files(all map[string]string) Reader {
	return Reader{Open: func(name string) (io.ReadCloser, error) {
		s, ok := all[name]
		if !ok {
			return nil, errors.New("no such file: " + name)
		}
		return io.NopCloser(strings.NewReader(s)), nil
	}}
}

func TestParseTraces(t *testing.T) {
	r := files(map[string]string{"d.trace": "1\n5\n10\n", "u.trace": "20\n", "bad.trace": "5\n4\n"})
	p, err := r.Parse("lte, downtrace=d.trace, uptrace=u.trace; 5s: rtt=200ms; 6s: down=1mbit; 7s: trace=d.trace")
	if err != nil {
		t.Fatal(err)
	}
	if p.DownTrace == nil || len(p.DownTrace.At) != 3 || p.UpTrace == nil || p.UpTrace.Period != 20*time.Millisecond || p.Down != Unlimited || p.Native() {
		t.Errorf("profile %+v", p)
	}
	first, second, third := p.Changes[0].Profile, p.Changes[1].Profile, p.Changes[2].Profile
	if first.DownTrace != p.DownTrace || second.DownTrace != nil || second.Down != 1e6 || second.UpTrace != p.UpTrace ||
		third.DownTrace != p.DownTrace || third.UpTrace != p.DownTrace {
		t.Errorf("changes %+v", p.Changes)
	}
	for s, says := range map[string]string{
		"trace=none": "no such file: none", "trace=bad.trace": "bad.trace:2: 4 ms lies before the line above",
	} {
		if _, err := r.Parse(s); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: error %v, want %q", s, err, says)
		}
	}
	if _, err := Parse("trace=/etc/passwd"); err == nil || !strings.Contains(err.Error(), "on the command line only") {
		t.Errorf("a profile from anywhere may name a file: %v", err)
	}
}

// TestTraceKeepsGoingOverAChange: a change of something else does not begin the
// trace anew, in this process or behind the socket of another.
func TestTraceKeepsGoingOverAChange(t *testing.T) {
	p, err := files(map[string]string{"t": "1\n1000\n"}).Parse("trace=t; 500ms: rtt=2ms")
	if err != nil {
		t.Fatal(err)
	}
	q := p.clone()
	copied := *p.DownTrace
	copied.At = slices.Clone(copied.At)
	q.Changes[0].Profile.DownTrace = &copied
	shareTraces(&q)
	for _, p := range []Profile{p, q} {
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

// TestNewTrace: a link that follows the trace of what another carried carries
// the same.
func TestNewTrace(t *testing.T) {
	carry := func(s *sim) map[time.Duration]int {
		s.down(9000, 1500, time.Millisecond) // always more than fits
		s.until(8 * time.Second)
		return maps.Collect(packets(s))
	}
	s := newSim(t, "down=4mbit,queue=20p; 2s: down=1mbit; 5s: down=7mbit")
	want := carry(s)
	trace, err := NewTrace("recorded", packets(s))
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := trace.Write(&file); err != nil {
		t.Fatal(err)
	}
	read, err := ReadTrace("recorded", &file)
	if err != nil {
		t.Fatal(err)
	}
	if !read.equal(trace) {
		t.Errorf("what was written reads otherwise: %d lines in %v, want %d in %v", len(read.At), read.Period, len(trace.At), trace.Period)
	}
	got := carry(simOf(Profile{DownTrace: read, Queue: Queue{Packets: 20}}))
	for from := time.Duration(0); from < 7*time.Second; from += time.Second {
		sum := func(all map[time.Duration]int) (n int) {
			for at, size := range all {
				if at >= from && at < from+time.Second {
					n += size
				}
			}
			return n
		}
		if g, w := sum(got), sum(want); max(g, w)-min(g, w) > 2*TracePacket {
			t.Errorf("from %v: %d bytes by the trace, %d recorded", from, g, w)
		}
	}
	for name, list := range map[string][]time.Duration{"nothing": nil, "one instant": {5, 5, 5}, "a time that goes back": {1e9, 5e6}} {
		if _, err := NewTrace(name, func(yield func(time.Duration, int) bool) {
			for _, at := range list {
				if !yield(at, 1504) {
					return
				}
			}
		}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// packets yields what came to the device.
func packets(s *sim) func(func(time.Duration, int) bool) {
	return func(yield func(time.Duration, int) bool) {
		for _, d := range s.got() {
			if !yield(since(d), d.size) {
				return
			}
		}
	}
}

// pcapFile is what tcpdump writes of one IPv4 packet to 192.168.77.2 and one to another.
func pcapFile(order binary.AppendByteOrder, magic, linkType uint32, before []byte) []byte {
	b := order.AppendUint32(nil, magic)
	b = append(b, make([]byte, 16)...)
	b = order.AppendUint32(b, linkType)
	for _, to := range []byte{2, 3} {
		ip := make([]byte, 20)
		ip[0] = 0x45
		binary.BigEndian.PutUint16(ip[2:], 1500)
		copy(ip[16:], []byte{192, 168, 77, to})
		b = order.AppendUint32(b, 7)
		b = order.AppendUint32(b, 500)
		b = order.AppendUint32(b, uint32(len(before)+len(ip)))
		b = order.AppendUint32(b, uint32(len(before)+1500)) // the rest was not kept
		b = append(append(b, before...), ip...)
	}
	return b
}

func TestReadPcap(t *testing.T) {
	ethernet := append(make([]byte, 12), 8, 0)
	device := netip.MustParseAddr("192.168.77.2")
	for name, test := range map[string]struct {
		file []byte
		at   time.Duration
	}{
		"little, µs, Ethernet": {pcapFile(binary.LittleEndian, 0xa1b2c3d4, 1, ethernet), 7*time.Second + 500*time.Microsecond},
		"big, ns, VLAN":        {pcapFile(binary.BigEndian, 0xa1b23c4d, 1, append(make([]byte, 12), 0x81, 0, 0, 5, 8, 0)), 7*time.Second + 500},
		"cooked":               {pcapFile(binary.LittleEndian, 0xa1b23c4d, 113, make([]byte, 16)), 7*time.Second + 500},
		"cooked 2":             {pcapFile(binary.LittleEndian, 0xa1b23c4d, 276, make([]byte, 20)), 7*time.Second + 500},
		"raw":                  {pcapFile(binary.LittleEndian, 0xa1b23c4d, 101, nil), 7*time.Second + 500},
	} {
		n := 0
		err := ReadPcap("f.pcap", bytes.NewReader(test.file), device, func(at time.Duration, bytes int) {
			n++
			if at != test.at || bytes != 1500 {
				t.Errorf("%s: %d bytes at %v, want 1500 at %v", name, bytes, at, test.at)
			}
		})
		if err != nil || n != 1 {
			t.Errorf("%s: %d packets, error %v", name, n, err)
		}
	}
	good := pcapFile(binary.LittleEndian, 0xa1b2c3d4, 1, ethernet)
	huge := slices.Clone(good)
	copy(huge[24+8:], []byte{0xff, 0xff, 0xff, 0x7f})
	for says, file := range map[string][]byte{
		"too short": good[:10], "no pcap file": []byte(strings.Repeat("x", 40)), "convert it with": append([]byte{0x0a, 0x0d, 0x0d, 0x0a}, make([]byte, 40)...),
		"packet 1 is cut off": good[:30], "packet 2 is cut off": good[:len(good)-1], "packet 1 claims": huge,
		"link type 9": pcapFile(binary.LittleEndian, 0xa1b2c3d4, 9, nil),
	} {
		if err := ReadPcap("f.pcap", bytes.NewReader(file), device, func(time.Duration, int) {}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v, want %q", err, says)
		}
	}
}

func FuzzReadPcap(f *testing.F) {
	f.Add(pcapFile(binary.LittleEndian, 0xa1b2c3d4, 1, append(make([]byte, 12), 8, 0)))
	f.Add(pcapFile(binary.BigEndian, 0xa1b23c4d, 276, make([]byte, 20)))
	f.Fuzz(func(t *testing.T, file []byte) {
		n := 0
		_ = ReadPcap("f", bytes.NewReader(file), netip.MustParseAddr("192.168.77.2"), func(at time.Duration, bytes int) {
			if n += 16; at < 0 || bytes < 0 || bytes > 40+65535 || n > len(file) {
				t.Errorf("a packet of %d bytes at %v", bytes, at)
			}
		})
	})
}

func FuzzReadTrace(f *testing.F) {
	f.Add("0\n1\n\n 5 \n5\n")
	f.Add("86400000\n")
	f.Add("-1\n9999999999999999999\nx")
	f.Fuzz(func(t *testing.T, s string) {
		tr, err := ReadTrace("f", strings.NewReader(s))
		if err != nil {
			return
		}
		if !slices.IsSorted(tr.At) || tr.Period <= 0 || tr.Rate() < 0 {
			t.Fatalf("trace of %q: %+v", s, tr)
		}
		var out bytes.Buffer
		if err := tr.Write(&out); err != nil {
			t.Fatal(err)
		}
		if again, err := ReadTrace("f", &out); err != nil || !again.equal(tr) {
			t.Fatalf("%q reads otherwise when it is written again: %v", s, err)
		}
		var p pacer
		p.setup(0, tr, 0)
		for at := range 3 {
			if got := p.depart(lab.Time(at)*ms, 1500); got < lab.Time(at)*ms {
				t.Fatalf("%q: a packet of %d ms departs at %v", s, at, got)
			}
		}
	})
}
