package unshare_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"eidetic/internal/base/unshare"
	"eidetic/internal/rigs/testlab"
)

func TestRun(t *testing.T) {
	testlab.NeedNamespaces(t)
	here, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	cmd := exec.Command("sh", "-c", "id -u && readlink /proc/self/ns/net")
	cmd.Stdout = &out
	if err := unshare.Run(cmd, unshare.Network|unshare.Mounts); err != nil {
		t.Fatal(err)
	}
	user, network, _ := strings.Cut(strings.TrimSpace(out.String()), "\n")
	if user != "0" || network == here || !strings.HasPrefix(network, "net:") {
		t.Errorf("the program is user %s in %s; want user 0, and another namespace than %s", user, network, here)
	}
}
