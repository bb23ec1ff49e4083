// Package linktest is the test suite that every back end of the emulated link
// passes. In goes a back end; out come failures of the test. Only tests import it.
package linktest

import (
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"eidetic/internal/rigs/testlab"
	"eidetic/netlab/link"
	"eidetic/netlab/nstest"
)

// Backend is what Conform needs of a back end: the link itself, and connections
// through it.
type Backend struct {
	Name   string
	Set    func(link.Profile)
	Report func() link.Report
	Close  func() error
	// Cannot lists what the back end cannot do of a profile.
	Cannot func(link.Profile) []string
	// Dial returns the device's end and the box's end of a new connection.
	Dial func(t testing.TB) (device, box net.Conn)
}

// Conform tests what every back end promises. No packet may be early and no
// transfer too fast; the upper bounds are wide, because machines are busy.
func Conform(t *testing.T, b Backend) {
	parse := func(t *testing.T, s string) link.Profile {
		t.Helper()
		p, err := link.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	set := func(t *testing.T, s string) {
		t.Helper()
		b.Set(parse(t, s))
	}
	t.Run("delay", func(t *testing.T) {
		set(t, "rtt=60ms")
		device, box := b.Dial(t)
		go func() { _, _ = io.Copy(box, box) }()
		round(t, device) // the first one can include the handshake
		var all []time.Duration
		for range 7 {
			all = append(all, round(t, device))
		}
		slices.Sort(all)
		if all[0] < 60*time.Millisecond || all[3] > 200*time.Millisecond {
			t.Errorf("round trips took %v, want at least 60ms, and a median of at most 200ms", all)
		}
	})
	for _, test := range []struct {
		name, profile string
		bytes         int
		up            bool
	}{{"rate down", "down=4mbit,up=40mbit,queue=200p", 500_000, false}, {"rate up", "down=40mbit,up=2mbit,queue=200p", 250_000, true}} {
		t.Run(test.name, func(t *testing.T) {
			set(t, test.profile)
			device, box := b.Dial(t)
			from, to, rate := box, device, 4e6
			if test.up {
				from, to, rate = device, box, 2e6
			}
			took := carry(t, from, to, test.bytes)
			ideal := time.Duration(float64(test.bytes) * 8 * 1500 / 1448 / rate * float64(time.Second))
			// The upper bound is for an emulated machine on a busy host.
			if took < ideal*97/100 || took > 5*ideal {
				t.Errorf("%d bytes took %v, want %v", test.bytes, took, ideal)
			}
			r := b.Report()
			d := r.Down
			if test.up {
				d = r.Up
			}
			if r.Backend != b.Name || r.Fault != "" || r.Profile.Down != parse(t, test.profile).Down ||
				d.Bytes < int64(test.bytes) || d.Packets < int64(test.bytes/1500) || d.Errors.Early > 0 {
				t.Errorf("Report() = %+v; want the back end %s, the profile that was set, all bytes, and nothing early", r, b.Name)
			}
			t.Logf("took %v of %v; %s", took, ideal, r.Limits)
		})
	}
	t.Run("changes and an outage", func(t *testing.T) {
		begin := time.Now()
		set(t, "rtt=10ms; 300ms: rtt=100ms; 700ms: down=0; 1300ms: down=20mbit")
		begun := time.Now() // the link's time starts between begin and begun
		device, box := b.Dial(t)
		go func() { _, _ = io.Copy(box, box) }()
		at := func(d time.Duration) { <-time.After(time.Until(begun.Add(d))) }
		round(t, device)
		at(500 * time.Millisecond)
		if d := round(t, device); d < 100*time.Millisecond && time.Since(begin) < 700*time.Millisecond {
			t.Errorf("after the change a round trip took %v, want at least 100ms", d)
		}
		at(800 * time.Millisecond)
		round(t, device)
		if end := time.Since(begin); end < 1300*time.Millisecond {
			t.Errorf("an answer came %v after the start, want it after the outage, which ends at 1.3s", end)
		}
	})
	t.Run("native", func(t *testing.T) {
		set(t, "native")
		device, box := b.Dial(t)
		if took := carry(t, box, device, 2_000_000); took > 30*time.Second {
			t.Errorf("2 MB took %v, want less than 30s", took)
		}
	})
	t.Run("what it cannot do", func(t *testing.T) {
		for _, s := range []string{"loss=3%", "loss=3%,burst=4", "queue=10p,down=1mbit", "aqm=codel,down=1mbit",
			"mtu=1400", "jitter=5ms", "jitter=5ms,reorder=yes", "rtt@a.test=5ms"} {
			p := parse(t, s)
			b.Set(p)
			cannot, limits := b.Cannot(p), b.Report().Limits
			if slices.ContainsFunc(cannot, func(s string) bool { return !slices.Contains(limits, s) }) {
				t.Errorf("%s: the report's limits are %q, want all of %q", s, limits, cannot)
			}
		}
	})
	t.Run("close", func(t *testing.T) {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if err := b.Close(); err != nil {
			t.Errorf("the second Close() = %v, want nil", err)
		}
	})
}

// round sends a byte to an echo server and returns how long it took to come back.
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

// carry returns how long n bytes take from one end of a connection to the other.
func carry(t testing.TB, from, to net.Conn, n int) time.Duration {
	t.Helper()
	begin := time.Now()
	go func() { _, _ = from.Write(make([]byte, n)) }() // the reader fails when bytes are missing
	if err := to.SetReadDeadline(begin.Add(testlab.Hang)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(to, make([]byte, n)); err != nil {
		t.Fatal(err)
	}
	return time.Since(begin)
}

// Dialer returns a Backend's Dial that connects a namespace, or this one when
// device is nil, to a listener of this one. It closes l at the end of the test.
func Dialer(t testing.TB, device *nstest.Namespace, l net.Listener) func(testing.TB) (net.Conn, net.Conn) {
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

// Listen listens on a TCP address.
func Listen(t testing.TB, addr string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
