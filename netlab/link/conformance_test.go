package link

import (
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"eidetic/internal/testlab"
	"eidetic/netlab/nstest"
)

// backend is what the one suite needs of a back end: the link itself, and
// connections through it.
type backend struct {
	name   string
	set    func(Profile) error
	report func() Report
	close  func() error
	// dial returns the device's end and the box's end of a new connection.
	dial func(t testing.TB) (device, box net.Conn)
}

// conform holds a back end to what all of them promise. Nothing may be early or
// fast; how late and slow is left open, because machines are busy.
func conform(t *testing.T, b backend) {
	parse := func(t *testing.T, s string) Profile {
		t.Helper()
		p, err := Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	set := func(t *testing.T, s string) {
		t.Helper()
		if err := b.set(parse(t, s)); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("delay", func(t *testing.T) {
		set(t, "rtt=60ms")
		device, box := b.dial(t)
		go func() { _, _ = io.Copy(box, box) }()
		round(t, device) // the first one may have the handshake's time
		var all []time.Duration
		for range 7 {
			all = append(all, round(t, device))
		}
		slices.Sort(all)
		if all[0] < 60*time.Millisecond || all[3] > 200*time.Millisecond {
			t.Errorf("round trips %v, want 60ms", all)
		}
	})
	for _, test := range []struct {
		name, profile string
		bytes         int
		up            bool
	}{{"rate down", "down=4mbit,up=40mbit,queue=200p", 500_000, false}, {"rate up", "down=40mbit,up=2mbit,queue=200p", 250_000, true}} {
		t.Run(test.name, func(t *testing.T) {
			set(t, test.profile)
			device, box := b.dial(t)
			from, to, rate := box, device, 4e6
			if test.up {
				from, to, rate = device, box, 2e6
			}
			took := carry(t, from, to, test.bytes)
			// Up to a queue's worth may be let through at once, by buckets.
			ideal := time.Duration(float64(test.bytes) * 8 * 1500 / 1448 / rate * float64(time.Second))
			// The upper bound is for an emulated machine on a busy one.
			if took < ideal*97/100 || took > 5*ideal {
				t.Errorf("%d bytes took %v, want %v", test.bytes, took, ideal)
			}
			r := b.report()
			d := r.Down
			if test.up {
				d = r.Up
			}
			if r.Backend != b.name || r.Fault != "" || r.Profile.Down != parse(t, test.profile).Down || d.Bytes < int64(test.bytes) || d.Packets < int64(test.bytes/1500) || d.Errors.Early > 0 {
				t.Errorf("report %+v", r)
			}
			t.Logf("took %v of %v; %s", took, ideal, r.Limits)
		})
	}
	t.Run("changes and an outage", func(t *testing.T) {
		begin := time.Now()
		set(t, "rtt=10ms; 300ms: rtt=100ms; 700ms: down=0; 1300ms: down=20mbit")
		begun := time.Now() // the link's time began in between
		device, box := b.dial(t)
		go func() { _, _ = io.Copy(box, box) }()
		at := func(d time.Duration) { <-time.After(time.Until(begun.Add(d))) }
		round(t, device)
		at(500 * time.Millisecond)
		if d := round(t, device); d < 100*time.Millisecond && time.Since(begin) < 700*time.Millisecond {
			t.Errorf("after the change a round trip took %v, want 100ms", d)
		}
		at(800 * time.Millisecond)
		round(t, device)
		if end := time.Since(begin); end < 1300*time.Millisecond {
			t.Errorf("an answer came %v after the start, in the outage", end)
		}
	})
	t.Run("native", func(t *testing.T) {
		set(t, "native")
		device, box := b.dial(t)
		if took := carry(t, box, device, 2_000_000); took > 30*time.Second {
			t.Errorf("2 MB took %v", took)
		}
	})
	t.Run("what it cannot do", func(t *testing.T) {
		for _, s := range []string{"loss=3%", "loss=3%,burst=4", "queue=10p,down=1mbit", "aqm=codel,down=1mbit", "mtu=1400", "jitter=5ms", "jitter=5ms,reorder=yes", "rtt@a.test=5ms"} {
			p := parse(t, s)
			cannot := Cannot(b.name, p)
			err := b.set(p)
			r := b.report()
			told := err != nil && strings.Contains(err.Error(), strings.Join(cannot[:min(1, len(cannot))], "")) || err == nil && subset(cannot, r.Limits)
			if !told || err != nil && len(cannot) == 0 {
				t.Errorf("%s: it cannot do %q, and said %v; limits %q", s, cannot, err, r.Limits)
			}
		}
	})
	t.Run("close", func(t *testing.T) {
		if err := b.close(); err != nil {
			t.Error(err)
		}
		if err := b.close(); err != nil {
			t.Errorf("closed again: %v", err)
		}
	})
}

func subset(some, all []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}

// round sends a byte to an echo and times its return.
func round(t testing.TB, c net.Conn) time.Duration {
	t.Helper()
	begin := time.Now()
	b := []byte{1}
	if err := c.SetDeadline(begin.Add(testlab.Hang)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(b); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, b); err != nil {
		t.Fatal(err)
	}
	return time.Since(begin)
}

// carry times n bytes from one end of a connection to the other.
func carry(t testing.TB, from, to net.Conn, n int) time.Duration {
	t.Helper()
	begin := time.Now()
	go func() { _, _ = from.Write(make([]byte, n)) }() // the reader sees what is missing
	if err := to.SetReadDeadline(begin.Add(testlab.Hang)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(to, make([]byte, n)); err != nil {
		t.Fatal(err)
	}
	return time.Since(begin)
}

// dialer connects a namespace to a listener of this one.
func dialer(t testing.TB, device *nstest.Namespace, l net.Listener) func(testing.TB) (net.Conn, net.Conn) {
	t.Cleanup(func() { l.Close() })
	return func(t testing.TB) (far, near net.Conn) {
		t.Helper()
		dial := func() (err error) {
			far, err = net.Dial("tcp", l.Addr().String())
			return err
		}
		if device == nil {
			if err := dial(); err != nil {
				t.Fatal(err)
			}
		} else if err := device.Do(dial); err != nil {
			t.Fatal(err)
		}
		near, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { far.Close(); near.Close() })
		return far, near
	}
}

func listen(t testing.TB, addr string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestPacketConforms(t *testing.T) {
	if !nstest.Inside(t) {
		return
	}
	c := newCable(t, "native")
	conform(t, backend{
		name: "packet", report: c.link.Report, close: c.link.Close,
		set:  func(p Profile) error { c.link.Set(p); return nil },
		dial: dialer(t, c.device, listen(t, gatewayAddr+":0")),
	})
}

func TestConnConforms(t *testing.T) {
	l := newLink(t, "rtt=1ms")
	conform(t, backend{
		name: "conn", close: l.Close,
		set: func(p Profile) error { l.Set(p); return nil },
		report: func() Report {
			r := l.Report()
			if r.Backend == "native" {
				r.Backend = "conn" // a native link is not touched, and says so
			}
			return r
		},
		dial: dialer(t, nil, l.Listener(listen(t, "127.0.0.1:0"))),
	})
}
