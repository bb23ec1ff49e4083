package execute

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/internal/run/experiment"
	"eidetic/netlab"
	"eidetic/netlab/ca"
	"eidetic/netlab/proxy"
)

// linkSeen is a device whose birth fails; it records the link over which it would have loaded
// a page.
type linkSeen struct {
	network *netlab.Network
	links   []string
}

var errUnborn = errors.New("not to be born")

func (l *linkSeen) Birth(context.Context, string) (experiment.Life, error) {
	l.links = append(l.links, l.network.LinkReport().Profile.Name)
	return nil, errUnborn
}

// The network of a port outlives its runs: the link of one run must not affect the recording
// of the next.
func TestRecordingOverTheNativeLink(t *testing.T) {
	authority, err := ca.New(time.Now)
	if err != nil {
		t.Fatal(err)
	}
	resolver := netip.MustParseAddrPort("127.0.0.1:53") // not used, as no page is loaded
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
		x := &Execution{
			ID:   run.id,
			Plan: checked(t, lab.Plan{Trials: 1, Still: 1, Live: run.live, Arm: lab.Arm{Page: "https://www.x.test/", Link: "3g"}}),
			Rig: Rig{
				Network: network, Device: seen, Describe: func(*lab.Environment) {}, Prepare: func(context.Context, plan.Arm) error { return nil },
			},
			Root: root,
		}
		if err := x.Run(t.Context()); !errors.Is(err, errUnborn) {
			t.Fatalf("%s: %v", run.id, err)
		}
	}
	if got := strings.Join(seen.links, ", "); got != "3g, native" {
		t.Errorf("a trial over 3g and a recording after it met the links %s; want 3g, native", got)
	}
}

// TestBracketed: a message without a detail has no empty brackets.
func TestBracketed(t *testing.T) {
	for detail, want := range map[string]string{"": "it did not load", "no answer": "it did not load (no answer)"} {
		if got := bracketed("it did not load", detail); got != want {
			t.Errorf("bracketed(%q) = %q, want %q", detail, got, want)
		}
	}
}

// run.json names a browser of the configuration as the plan does, and not its program and files: the plan can be asked
// for again, and whoever may read the run learns no more of the machine.
func TestConfiguredBrowserIsKeptByItsName(t *testing.T) {
	p := lab.Plan{Arm: lab.Arm{Page: "https://a.test/", Browser: &lab.Browser{Name: "shopper", Viewport: "412x915"}}, Treatment: &lab.Arm{Link: "lte"}}
	asked, err := plan.Check(plan.Request{Plan: p}, plan.Options{Browsers: plan.Browsers{"shopper": {Name: lab.Firefox, Profile: "/srv/profile"}}})
	if err != nil {
		t.Fatal(err)
	}
	all, _ := armsOf(asked)
	for _, one := range all {
		one.arm.Match = lab.LooseMatch
	}
	kept := withMatch(keptPlan(asked), all)
	for _, a := range kept.Arms() {
		if a.Match != lab.LooseMatch || a.Browser.Name != "shopper" || a.Browser.Profile != "" || a.Browser.Viewport != "412x915" {
			t.Errorf("the %s is kept as %+v with the browser %+v; want the name, and how it is matched", a.Name, a.Arm, *a.Browser)
		}
	}
}
