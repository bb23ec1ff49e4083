package dns

import (
	"context"
	"net"
	"os"
	"testing"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/net/ipv4"

	"eidetic/internal/lab"
)

// stalled is a device's socket whose deadline passes before the first write begins.
type stalled struct {
	sink
	tries int
}

func (s *stalled) Write(b []byte) (int, error) {
	if s.tries++; s.tries == 1 {
		return 0, os.ErrDeadlineExceeded
	}
	return s.sink.Write(b)
}

// A machine that stalls between a deadline and the writing loses no answer.
func TestStallsLoseNoAnswer(t *testing.T) {
	socket := func() *net.UDPConn {
		c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	pool, err := NewPool(v4, v6)
	if err != nil {
		t.Fatal(err)
	}
	server, device := socket(), socket()
	s := &Server{c: Config{Pool: pool, Clock: lab.Monotonic}, udp: server, inFlight: make(chan struct{}, 1), ctx: context.Background()}
	s.Use(table())
	w := &stalled{}
	s.ServeDNS(w, new(dns.Msg).SetQuestion("api.shop.test.", dns.TypeA))
	if len(w.packed) == 0 {
		t.Error("the answer was given up")
	}

	// A batch whose socket has a deadline that has passed, and takes no other.
	past := socket()
	if err := past.SetWriteDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	c := &batchConn{UDPConn: server, s: s, pc: ipv4.NewPacketConn(past)}
	c.out = []ipv4.Message{{Buffers: [][]byte{w.packed}, Addr: device.LocalAddr()}}
	c.logs = []Query{{}}
	c.write()
	c.late.Wait()
	if err := device.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if n, err := device.Read(make([]byte, ednsSize)); n != len(w.packed) {
		t.Errorf("of a batch %d bytes came: %v", n, err)
	}
}
