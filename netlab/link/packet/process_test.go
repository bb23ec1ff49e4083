package packet

import (
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"eidetic/internal/rigs/testlab"
	"eidetic/netlab/link"
	"eidetic/netlab/nstest"
)

// forwarderVar makes the test binary the forwarding process.
const forwarderVar = "EIDETIC_LINK_FORWARDER"

func TestMain(m *testing.M) {
	if os.Getenv(forwarderVar) != "" {
		if err := Serve(os.NewFile(3, "control")); err != nil {
			os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		os.Exit(0)
	}
	testlab.NoLeaks(m)
}

func TestProcess(t *testing.T) {
	if !nstest.Inside(t) {
		return
	}
	c := layCable(t)
	t.Setenv(forwarderVar, "1")
	if _, err := StartProcess(Config{Device: "dev0p", Lab: "none0"}, []string{"/proc/self/exe"}); err == nil ||
		!strings.Contains(err.Error(), "none0") {
		t.Errorf("StartProcess() on none0 = %v, want an error about none0", err)
	}
	p, err := StartProcess(Config{Device: "dev0p", Lab: "lab0p"}, []string{"/proc/self/exe"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	c.ping(t, 2, 10*time.Millisecond)
	p.Set(link.Profile{Name: "custom", RTT: 20 * time.Millisecond, Changes: []link.Change{{At: time.Hour}}})
	p.SetExtra(map[netip.Addr]time.Duration{netip.MustParseAddr(gatewayAddr): 20 * time.Millisecond})
	if got := c.ping(t, 5, 10*time.Millisecond); slices.Min(got) < 40*time.Millisecond {
		t.Errorf("round trips took %v, want at least 40ms, with the extra RTT of the origin", got)
	}
	r := p.Report()
	if r.Fault != "" || r.Profile.RTT != 20*time.Millisecond || len(r.Profile.Changes) != 1 || r.Down.Packets < 5 ||
		r.Down.Errors.Quantile(.5) == 0 || !slices.Contains(r.Thread, "a process of its own") {
		t.Errorf("Report() = %+v; want the profile that was set, at least 5 packets and no fault", r)
	}
	p.Restart()
	if again := p.Report(); again.Down.Packets >= r.Down.Packets {
		t.Errorf("after a restart the report counts %d packets, want fewer than the %d before", again.Down.Packets, r.Down.Packets)
	}
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if r := p.Report(); r.Invalid() == "" || r.Down.Packets >= 5 {
		t.Errorf("after the process was killed, Report() = %+v; want a fault and the last counters", r)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}
