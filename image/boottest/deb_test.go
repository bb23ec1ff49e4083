package boottest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/internal/rigs/testlab"
)

// testDebianPackage installs the package, installs it again and purges it, with dpkg in the
// Debian file system that the image was made of, without booting it.
func testDebianPackage(t *testing.T) {
	testlab.NeedRoot(t)
	archives, err := filepath.Glob(ImagePath(t, ".") + "/root-*.tar")
	testlab.Need(t, err == nil && len(archives) > 0, "Debian's files in out/image; make them with: make image-test")
	root := t.TempDir()
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = Root(t)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
		return strings.TrimSpace(string(out))
	}
	inside := func(command string) string {
		t.Helper()
		return run("chroot", root, "/bin/sh", "-c", command)
	}
	run("tar", "-x", "-C", root, "--exclude=./usr/lib/modules", "--exclude=./boot/*", "-f", archives[0])
	run("go", "run", "./image/deb", "--version", "0.1.7", "--out", root)
	const install = "dpkg --install /appliance_0.1.7_amd64.deb"
	inside(install)
	token := inside("cat /etc/appliance/token")
	if len(token) != 16 {
		t.Errorf("token %q, want one that is not empty", token)
	}
	inside(install)
	for command, want := range map[string]string{
		"cat /etc/appliance/token":                token,
		"stat -c '%U %G %a' /etc/appliance/token": "root appliance 640",
		"systemctl is-enabled appliance.service appliance-panel.socket run-appliance.mount | uniq":               "enabled",
		"dpkg --verify appliance | grep -v -e /usr/share/doc/ -e /usr/share/man/ | grep . && echo damaged; true": "", // this Debian keeps no documents
		"appliance version >/dev/null && echo it runs":                                                           "it runs",
		"dpkg --status appliance | grep ^Status":                                                                 "Status: install ok installed",
		"systemd-analyze verify appliance.service 2>&1 | grep -i appliance; true":                                "",
	} {
		if got := inside(command); got != want {
			t.Errorf("%s prints %q, want %q", command, got, want)
		}
	}
	inside("dpkg --purge appliance")
	if left := inside("ls -d /usr/bin/appliance /etc/appliance /var/lib/appliance 2>/dev/null; find /etc/systemd -name 'appliance*'; true"); left != "" {
		t.Errorf("left over after a purge: %s", left)
	}
}
