package device

import (
	"net"
	"net/netip"
	"testing"
)

func TestGuardCountsStrays(t *testing.T) {
	inside(t)
	ns, err := NewNamespace()
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	if err := ns.cable("guard0", "eth0", netip.MustParsePrefix("10.55.0.1/24")); err != nil {
		t.Fatal(err)
	}
	defer Unplug("guard0")
	if err := ns.Address("eth0", "10.55.0.2/24"); err != nil {
		t.Fatal(err)
	}
	if err := ns.Default("10.55.0.1"); err != nil {
		t.Fatal(err)
	}
	g, err := NewGuard(ns.Namespace, netip.MustParsePrefix("10.55.0.0/24"), netip.MustParsePrefix("198.18.0.0/15"))
	if err != nil {
		t.Fatal(err)
	}
	send := func(to string) {
		t.Helper()
		if err := ns.Do(func() error {
			conn, err := net.Dial("udp", to)
			if err != nil {
				return err
			}
			defer conn.Close()
			_, _ = conn.Write([]byte("x")) // a dropped packet fails with EPERM
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		to   string
		want uint64
	}{
		{"10.55.0.1:9", 0}, {"198.19.255.1:9", 0}, {"127.0.0.1:9", 0},
		{"198.20.0.1:9", 1}, {"192.0.2.1:53", 2}, {"10.55.0.1:9", 2},
	} {
		send(step.to)
		got, err := g.Strays()
		if err != nil {
			t.Fatal(err)
		}
		if got != step.want {
			t.Errorf("after a packet to %s: %d strays, want %d", step.to, got, step.want)
		}
	}
}
