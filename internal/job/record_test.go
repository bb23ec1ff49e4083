package job

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"eidetic/internal/experiment"
	"eidetic/internal/lab"
	"eidetic/netlab"
	"eidetic/netlab/ca"
	"eidetic/netlab/proxy"
)

// linkSeen is a device that is never born: it notes over which link it would
// have loaded a page.
type linkSeen struct {
	network *netlab.Network
	links   []string
}

var errUnborn = errors.New("not to be born")

func (l *linkSeen) Birth(context.Context, string) (experiment.Life, error) {
	l.links = append(l.links, l.network.LinkReport().Profile.Name)
	return nil, errUnborn
}

// The network of a port outlives its runs: what one of them sets must not
// reach into what the next one records.
func TestRecordingOverTheNativeLink(t *testing.T) {
	authority, err := ca.New(time.Now)
	if err != nil {
		t.Fatal(err)
	}
	resolver := netip.MustParseAddrPort("127.0.0.1:53") // it is not asked: nobody loads anything
	network, err := netlab.Start(t.Context(), netlab.Config{
		Gateway: netip.MustParseAddr("127.0.0.1"), CA: authority, Upstream: &proxy.UpstreamConfig{Resolver: resolver}, Clock: clock,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer network.Close()
	seen := &linkSeen{network: network}
	root := t.TempDir()
	for _, run := range []struct {
		id   string
		live bool
	}{{"1-over-3g", true}, {"2-records", false}} {
		j := &Job{
			Order: Order{
				ID: run.id, Trials: 1, Timing: "recorded", Still: Duration{time.Second}, Limit: Duration{time.Minute}, Live: run.live,
				Arms: []Arm{{Name: lab.Control, Page: "https://www.x.test/", Link: "3g"}},
			},
			Rig:  Rig{Network: network, Device: seen, Facts: func() map[string]any { return nil }},
			Root: root,
		}
		if err := j.Run(t.Context()); !errors.Is(err, errUnborn) {
			t.Fatalf("%s: %v", run.id, err)
		}
	}
	if got := strings.Join(seen.links, ", "); got != "3g, native" {
		t.Errorf("a trial over 3g and a recording after it met the links %s; want 3g, native", got)
	}
}
