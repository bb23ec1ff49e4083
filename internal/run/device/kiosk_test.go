package device

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"eidetic/internal/rigs/testlab"
)

// The script passes shellcheck. A test in cmd/appliance shows that it works.
func TestKioskScript(t *testing.T) {
	testlab.NeedProgram(t, "shellcheck")
	script := KioskScript("http://box.test", "http://box.test/start")
	cmd := exec.Command("shellcheck", "--shell=sh", "-")
	cmd.Stdin = bytes.NewReader(script)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("shellcheck: %v\n%s\n%s", err, out, script)
	}
	for _, want := range []string{`"--default-tile-width=$width"`, `"--window-size=$((width + 1)),$((height + 1))"`,
		"http://box.test/ca.pem", "http://box.test/start >"} {
		if !strings.Contains(string(script), want) {
			t.Errorf("%s is missing in:\n%s", want, script)
		}
	}
}
