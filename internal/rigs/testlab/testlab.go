// Package testlab keeps tests from skipping silently. A test that needs something of
// the machine calls a function of this package. If the machine lacks it, the test is
// skipped, or fails if REQUIRE_ALL=1 is set, as it is in CI.
//
// In flow the needs of a test, out flow a skip or a failure that names the
// need, and the command that satisfies it. Only tests import this package.
package testlab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"eidetic/internal/base/unshare"
)

// mend is the command that installs every program the tests use.
const mend = "make deps"

// Need skips the test unless ok holds, or fails it if REQUIRE_ALL=1. What names the
// need and, after a semicolon, the way to satisfy it:
// "the loop module; load it with: modprobe loop".
func Need(t testing.TB, ok bool, what string) {
	t.Helper()
	if ok {
		return
	}
	if os.Getenv("REQUIRE_ALL") == "1" {
		t.Fatalf("this test needs %s (REQUIRE_ALL=1 forbids skipping it)", what)
	}
	t.Skipf("this test needs %s (REQUIRE_ALL=1 turns this into a failure)", what)
}

// NeedProgram returns the path of the first of the programs that is installed.
// Names are alternatives, best first; of a pattern such as php-fpm* the last match
// counts, which is the newest version. Debian keeps some programs in sbin,
// which a plain user's PATH lacks, so those folders are searched as well.
func NeedProgram(t testing.TB, names ...string) string {
	t.Helper()
	path := find(names)
	Need(t, path != "", fmt.Sprintf("the program %s; install it with: %s", strings.Join(names, " or "), mend))
	return path
}

// find returns the path of the first of the programs that is installed, or "".
func find(names []string) string {
	dirs := append(filepath.SplitList(os.Getenv("PATH")), "/usr/sbin", "/sbin")
	for _, name := range names {
		for _, dir := range dirs {
			all, _ := filepath.Glob(filepath.Join(dir, name)) // the patterns are well formed
			for _, path := range slices.Backward(all) {
				if path, err := exec.LookPath(path); err == nil {
					return path
				}
			}
		}
	}
	return ""
}

// NeedPackage is NeedProgram for the programs of a Debian package that not every release
// has. Where this machine's release lacks it, the test is left out by name, even with
// REQUIRE_ALL=1: the same is proved there by files that the program made elsewhere.
func NeedPackage(t testing.TB, pkg string, names ...string) string {
	t.Helper()
	path := find(names)
	if path == "" && lacks(t.Context(), pkg) {
		t.Skipf("%s %s", Lacking, pkg)
	}
	return NeedProgram(t, names...)
}

// Lacking begins the line of a test that NeedPackage leaves out; the package's name follows.
const Lacking = "this release of Debian has no package"

// lacks reports whether apt knows the packages of its release, and would install none of this name.
func lacks(ctx context.Context, pkg string) bool {
	// dpkg is in every release; before the first apt-get update, apt knows of no package.
	known, err := exec.CommandContext(ctx, "apt-cache", "madison", "dpkg").Output()
	if err != nil || len(known) == 0 {
		return false
	}
	policy := exec.CommandContext(ctx, "apt-cache", "policy", pkg)
	policy.Env = append(policy.Environ(), "LC_ALL=C")
	said, err := policy.Output()
	text := string(said)
	return err == nil && (!strings.Contains(text, "Candidate: ") || strings.Contains(text, "Candidate: (none)"))
}

// NeedRoot requires user 0, for tests of what only root can do.
func NeedRoot(t testing.TB) {
	t.Helper()
	Need(t, os.Geteuid() == 0, "root; run it with: sudo -E make test-net")
}

// NeedNamespaces requires network and mount namespaces, inside a new user namespace
// unless the test runs as root. Some kernels and most containers forbid them.
func NeedNamespaces(t testing.TB) {
	t.Helper()
	// Sysctls, seccomp filters and security modules can each forbid namespaces, so
	// only an attempt shows whether they work.
	err := unshare.Run(exec.Command("/bin/true"), unshare.Network|unshare.Mounts)
	Need(t, err == nil, fmt.Sprintf("network namespaces, but: %v; as root, or after: sysctl -w kernel.unprivileged_userns_clone=1", err))
}

// Hang bounds the time that a test waits for an event that happens within seconds on an
// idle machine. On a machine that is a third as fast and stalls, only a hang takes so
// long: no test asserts that something is quick.
const Hang = 5 * time.Minute

// Await returns when what the test waits for holds, at which it looks again and again. After [Hang] the test fails, with
// what is known by then.
func Await(t testing.TB, what string, holds func() bool, known ...func() any) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for limit := time.After(Hang); !holds(); {
		select {
		case <-tick.C:
		case <-limit:
			for _, is := range known {
				t.Logf("%+v", is())
			}
			t.Fatalf("waited %v in vain for %s", Hang, what)
		}
	}
}

// LongReason begins the reason of a test that Long skips. internal/rigs/testrun counts such tests apart from skipped
// ones.
const LongReason = "make test-all: "

// Long leaves the test to make test-all, which runs without go test's -short. Why says what it
// repeats or what makes it dear, by the rule in CONTRIBUTING.md.
func Long(t testing.TB, why string) {
	t.Helper()
	if testing.Short() {
		t.Skip(LongReason + why)
	}
}

// Repeat returns how often a test does something: few times in make test, all times in make test-all.
func Repeat(few, all int) int {
	if testing.Short() {
		return few
	}
	return all
}

// WeakerReason begins a line that a test logs where the machine lets it prove less than it should.
const WeakerReason = "proves less: "

// Weaker says that the test proves less on this machine, and why. The summary of make test repeats it.
func Weaker(t testing.TB, why string) {
	t.Helper()
	t.Log(WeakerReason + why)
}

// EachBrowser runs a test in Chromium and, as a second browser is left to make test-all, in Firefox there only.
func EachBrowser(t *testing.T, test func(t *testing.T, program string)) {
	t.Helper()
	t.Run("chromium", func(t *testing.T) { test(t, NeedProgram(t, "chromium", "chromium-browser", "google-chrome")) })
	t.Run("firefox-esr", func(t *testing.T) {
		Long(t, "second browser")
		test(t, NeedProgram(t, "firefox-esr", "firefox"))
	})
}
