package testlab

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// recorder is a testing.TB that notes how the test would have ended.
type recorder struct {
	testing.TB
	ended, said string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatalf(format string, args ...any) { r.end("failed", format, args) }

func (r *recorder) Skipf(format string, args ...any) { r.end("skipped", format, args) }

// end leaves the goroutine, as the real Fatalf and Skipf do.
func (r *recorder) end(how, format string, args []any) {
	r.ended, r.said = how, fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// outcome runs f on a goroutine of its own, as go test does with a test.
func outcome(t *testing.T, f func(testing.TB)) *recorder {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(r)
	}()
	<-done
	return r
}

func TestNeed(t *testing.T) {
	lack := func(tb testing.TB) { Need(tb, false, "a third hand; grow it with: make hand") }
	have := func(tb testing.TB) { Need(tb, true, "air") }
	program := func(tb testing.TB) { NeedProgram(tb, "no-such-program-a", "no-such-program-b") }
	for _, c := range []struct {
		name    string
		require string
		f       func(testing.TB)
		ended   string
		said    []string
	}{
		{"met", "1", have, "", nil},
		{"lacking", "", lack, "skipped", []string{"a third hand", "make hand"}},
		{"lacking and required", "1", lack, "failed", []string{"a third hand", "make hand", "REQUIRE_ALL=1"}},
		{"not quite required", "0", lack, "skipped", nil},
		{"program", "1", program, "failed", []string{"no-such-program-a or no-such-program-b", "make deps"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("REQUIRE_ALL", c.require)
			r := outcome(t, c.f)
			if r.ended != c.ended {
				t.Errorf("the test ended as %q, want %q", r.ended, c.ended)
			}
			for _, want := range c.said {
				if !strings.Contains(r.said, want) {
					t.Errorf("message %q lacks %q", r.said, want)
				}
			}
		})
	}
}

func TestNeedProgramTakesTheFirstFound(t *testing.T) {
	if path := NeedProgram(t, "no-such-program", "sh", "go"); filepath.Base(path) != "sh" {
		t.Errorf("path = %q, want that of sh", path)
	}
}

// A program is found by a pattern, in its newest version.
func TestNeedProgramTakesAnyVersion(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"thing8.2", "thing8.4", "thing8.5"} {
		mode := os.FileMode(0o755)
		if name == "thing8.5" {
			mode = 0o644 // not a program
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	if path := NeedProgram(t, "thing*"); path != filepath.Join(dir, "thing8.4") {
		t.Errorf("path = %q, want that of thing8.4", path)
	}
}

// Only where apt knows its release, and that has no such package, is a test left out in spite of REQUIRE_ALL=1.
func TestNeedPackage(t *testing.T) {
	const known = "  dpkg | 1.22 | http://mirror.test/debian trixie/main amd64 Packages"
	for _, c := range []struct{ name, madison, policy, ended, said string }{
		{"the release lacks it", known, "", "skipped", Lacking + " rare"},
		{"it is installed from nowhere", known, "rare:\n  Installed: (none)\n  Candidate: (none)\n", "skipped", Lacking + " rare"},
		{"it can be installed", known, "rare:\n  Installed: (none)\n  Candidate: 8.1\n", "failed", "no-such-program"},
		{"apt knows nothing", "", "", "failed", "no-such-program"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			script := fmt.Sprintf("#!/bin/sh\ncase $1 in\nmadison) printf '%%s' '%s' ;;\npolicy) printf '%%s' '%s' ;;\nesac\n", c.madison, c.policy)
			if err := os.WriteFile(filepath.Join(dir, "apt-cache"), []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", dir)
			t.Setenv("REQUIRE_ALL", "1")
			r := outcome(t, func(tb testing.TB) { NeedPackage(tb, "rare", "no-such-program") })
			if r.ended != c.ended || !strings.Contains(r.said, c.said) {
				t.Errorf("the test ended as %q with %q; want %q with %q", r.ended, r.said, c.ended, c.said)
			}
		})
	}
	if path := NeedPackage(t, "no-such-package", "sh"); filepath.Base(path) != "sh" {
		t.Errorf("path = %q, want that of sh: what is installed needs no package", path)
	}
}

func TestNamespaces(t *testing.T) {
	NeedNamespaces(t) // a machine without them fails here under REQUIRE_ALL=1, and says why
}
