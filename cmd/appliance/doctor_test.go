package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"eidetic/internal/box/doctor"
	"eidetic/internal/rigs/testlab"
)

// TestDoctor tries the kernel out for real. Which checks are good depends on the
// machine; each must have an answer, and each that is not good a remedy.
func TestDoctor(t *testing.T) {
	testlab.NeedNamespaces(t)
	got := finishCmd(t, appliance(t, "doctor", "--json"))
	var answer struct{ Checks []doctor.Finding }
	if err := json.Unmarshal([]byte(got.out), &answer); err != nil || got.status != exitGood {
		t.Fatalf("status %d, %v: %s%s", got.status, err, got.out, got.err)
	}
	var names []string
	for _, f := range answer.Checks {
		names = append(names, f.Name)
		if f.For == "" || f.Found == "" || f.OK == (f.Remedy != "") {
			t.Errorf("finding %+v; want what needs it, what was found, and a remedy only if it is not good", f)
		}
	}
	for _, want := range []string{"packet", "port", "sandbox", "cubic", "v4l2", "chromium", "xvfb", "vpxenc", "hostapd"} {
		if !slices.Contains(names, want) {
			t.Errorf("no finding of %s among %q", want, names)
		}
	}
	// The other tests of this machine need these two.
	if got := finishCmd(t, appliance(t, "doctor", "packet", "port")); got.status != exitGood || strings.Count(got.out, "ok ") != 2 {
		t.Errorf("doctor packet port: status %d: %s%s; want status 0 and two good checks", got.status, got.out, got.err)
	}
	if got := finishCmd(t, appliance(t, "doctor", "warp")); got.status != exitUsage || !strings.Contains(got.err, "packet") {
		t.Errorf("an unknown check: status %d: %s; want %d and the names of the checks", got.status, got.err, exitUsage)
	}
}
