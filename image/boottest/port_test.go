package boottest

import (
	"encoding/json"
	"strings"
	"testing"
)

// testAccessPoint lets a station on a simulated radio join, get a lease and browse.
func testAccessPoint(t *testing.T, b *Box) {
	b.Test(t, "./netlab/port", "TestAccessPoint")
}

// testDoctor runs the doctor of the present program on the box: everything that a box
// needs must work, except the hardware that a virtual machine lacks.
func testDoctor(t *testing.T, b *Box) {
	b.Run(t, "modprobe mac80211_hwsim radios=1")
	defer b.Until(t, "modprobe -r mac80211_hwsim")
	out := b.Run(t, b.Build(t, "./cmd/appliance")+" doctor --json")
	var answer struct {
		Checks []struct {
			Name, Found string
			OK          bool
		}
	}
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	found := map[string]bool{}
	for _, c := range answer.Checks {
		t.Logf("%-12s %-6v %s", c.Name, c.OK, c.Found)
		found[c.Name] = c.OK
		if c.Name == "radio" && !strings.Contains(c.Found, "access point on 1-") {
			t.Errorf("doctor says of a simulated radio %q; want on which channels it can be an access point", c.Found)
		}
	}
	for _, name := range []string{"packet", "port", "cubic", "realtime", "vpxenc", "hostapd"} {
		if !found[name] {
			t.Errorf("doctor reports that %s does not work on the box", name)
		}
	}
}
