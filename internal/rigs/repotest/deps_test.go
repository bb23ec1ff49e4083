package repotest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/internal/rigs/testlab"
)

// debian are stand-ins for what scripts/deps.sh asks of a Debian: apt keeps what it was told in $APT,
// knows its packages when $APT/known exists, and has all but those that $LACKS names.
var debian = map[string]string{
	"apt-get": `echo "$*" >>"$APT/told"
case "$*" in
*\ update) touch "$APT/known" ;;
*\ install\ *) for p; do case " $LACKS " in *" $p "*) exit 100 ;; esac; done ;;
esac`,
	"apt-cache": `[ -e "$APT/known" ] || exit 0
command=$1
shift
for p; do
	case " $LACKS " in *" $p "*) continue ;; esac
	case $command in
	madison) echo "$p | 1 | http://mirror.test/debian" ;;
	policy) printf '%s:\n  Installed: (none)\n  Candidate: 1\n' "$p" ;;
	esac
done`,
	"sudo": `while [ "${1#-}" != "$1" ]; do shift; done; [ $# = 0 ] || exec "$@"`,
	"go":   `echo go1.26.0`,
}

// deps.sh takes the package that a release has, and is not stopped by one that it lacks.
func TestDeps(t *testing.T) {
	for _, c := range []struct {
		name, group, lacks string
		known              bool // apt knows its packages before it is told to update
		status             int
		says               string
		update             bool
		installs           []string
		never              string
	}{
		{name: "Debian 12", group: "image", lacks: "systemd-repart", known: true, update: true, installs: []string{"mmdebstrap", "systemd"}, never: "systemd-repart"},
		{name: "Debian 13", group: "image", known: true, update: true, installs: []string{"systemd-repart"}, never: "systemd"},
		{name: "before the first update", group: "image", lacks: "systemd-repart", update: true, installs: []string{"systemd"}, never: "systemd-repart"},
		{name: "nothing but what the release lacks", group: "docs", lacks: "graphviz", known: true, says: "no package graphviz: what needs it is left out by name"},
		{name: "a browser that the release lacks", group: "demo", lacks: "chromium", known: true, update: true, status: 3, says: "cannot install chromium"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bin, apt := t.TempDir(), t.TempDir()
			for name, script := range debian {
				if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for _, name := range []string{"bash", "sh", "env", "cat", "sed", "head", "sort", "paste", "mktemp", "rm", "touch"} {
				if err := os.Symlink(testlab.NeedProgram(t, name), filepath.Join(bin, name)); err != nil {
					t.Fatal(err)
				}
			}
			if c.known {
				if err := os.WriteFile(filepath.Join(apt, "known"), nil, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "bash"), "../../../scripts/deps.sh", c.group)
			cmd.Env = []string{"PATH=" + bin, "APT=" + apt, "LACKS=" + c.lacks}
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			if status := cmd.ProcessState.ExitCode(); status != c.status || !strings.Contains(string(out), c.says) {
				t.Errorf("deps.sh %s ended with status %d and said\n%swant status %d, and %q", c.group, status, out, c.status, c.says)
			}
			told, err := os.ReadFile(filepath.Join(apt, "told"))
			if err != nil && c.update {
				t.Fatal(err)
			}
			_, installed, _ := strings.Cut(string(told), " install ")
			installed = " " + strings.TrimSpace(installed) + " "
			for _, pkg := range c.installs {
				if !strings.Contains(installed, " "+pkg+" ") {
					t.Errorf("apt was told\n%swant it to install %s", told, pkg)
				}
			}
			if c.never != "" && strings.Contains(installed, " "+c.never+" ") {
				t.Errorf("apt was told\n%swant it not to install %s", told, c.never)
			}
			if updated := strings.Contains(string(told), " update\n"); updated != c.update {
				t.Errorf("apt was told\n%swant an update: %v", told, c.update)
			}
		})
	}
}
