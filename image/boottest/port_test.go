package boottest

import (
	"encoding/json"
	"testing"
)

// testAccessPoint has a station on a simulated radio join, get a lease and browse.
func testAccessPoint(t *testing.T, b *Box) {
	b.Test(t, "./netlab/port", "TestAccessPoint")
}

// testDoctor asks the present program, on the box, what the box can do: all
// that a box is for, but for the hardware that a virtual machine lacks.
func testDoctor(t *testing.T, b *Box) {
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
	}
	for _, name := range []string{"packet", "port", "cubic", "realtime", "vpxenc", "hostapd"} {
		if !found[name] {
			t.Errorf("the box cannot do %s", name)
		}
	}
}
