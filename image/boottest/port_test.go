package boottest

import (
	"encoding/json"
	"slices"
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
	// The service may write what decides the processors' frequency, where there is any, and nothing else below /sys.
	const mounts = `awk '$5 ~ "^/sys" {print $5, substr($6, 1, 2)}' /proc/$(systemctl show -P MainPID appliance)/mountinfo`
	written := b.Run(t, "test -d /sys/devices/system/cpu/cpufreq || echo '/sys/devices/system/cpu/cpufreq rw'; "+mounts)
	t.Logf("the service sees of /sys: %q", written)
	if lines := strings.Split(written, "\n"); !slices.Contains(lines, "/sys ro") || !slices.Contains(lines, "/sys/devices/system/cpu/cpufreq rw") {
		t.Errorf("the service sees of /sys:\n%s\nwant /sys for reading, and the processors' frequency for writing", written)
	}
	for _, name := range []string{"packet", "port", "cubic", "realtime", "vpxenc", "hostapd"} {
		if !found[name] {
			t.Errorf("doctor reports that %s does not work on the box", name)
		}
	}
}
