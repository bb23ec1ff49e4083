package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"eidetic/internal/testlab"
)

// TestDoctor tries the kernel out for real; which things it finds depends on
// the machine, but not that each has an answer, and each lack a remedy.
func TestDoctor(t *testing.T) {
	testlab.NeedNamespaces(t)
	got := finishCmd(t, appliance(t, "doctor", "--json"))
	var answer struct{ Checks []finding }
	if err := json.Unmarshal([]byte(got.out), &answer); err != nil || got.status != exitGood {
		t.Fatalf("status %d, %v: %s%s", got.status, err, got.out, got.err)
	}
	var names []string
	for _, f := range answer.Checks {
		names = append(names, f.Name)
		if f.For == "" || f.Found == "" || f.OK == (f.Mend != "") {
			t.Errorf("no answer, or no remedy: %+v", f)
		}
	}
	for _, want := range []string{"packet", "port", "cubic", "v4l2", "uinput", "gadget", "chromium", "xvfb", "vpxenc", "adb", "hostapd"} {
		if !slices.Contains(names, want) {
			t.Errorf("nothing is said of %s", want)
		}
	}
	// What the other tests of this machine need works.
	if got := finishCmd(t, appliance(t, "doctor", "packet", "port")); got.status != exitGood || strings.Count(got.out, "ok ") != 2 {
		t.Errorf("status %d: %s%s", got.status, got.out, got.err)
	}
	if got := finishCmd(t, appliance(t, "doctor", "warp")); got.status != exitUsage || !strings.Contains(got.err, "packet") {
		t.Errorf("an unknown check: status %d: %s", got.status, got.err)
	}
}

func TestDoctorDevices(t *testing.T) {
	file := &fstest.MapFile{}
	for name, root := range map[string]fstest.MapFS{
		"v4l2":   {"dev/video0": file},
		"gadget": {"sys/class/udc/dummy_udc.0": file},
		"serial": {"dev/ttyUSB0": file},
		"radio":  {"sys/class/ieee80211/phy0": file},
	} {
		for _, f := range devices(root) {
			if f.Name == name && !f.OK || f.Name != name && f.Name != "uinput" && f.OK {
				t.Errorf("with %v: %+v", root, f)
			}
		}
	}
}
