package device

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCrashed(t *testing.T) {
	tests := map[string]struct{ file, log, want string }{
		"no crash":      {".config/chromium/Crash Reports/settings.dat", "[1:2:ERROR:dbus/bus.cc:405] Failed", ""},
		"being written": {".config/chromium/Crash Reports/new/a.dmp", "", ""},
		"a dump":        {".config/google-chrome/Crash Reports/pending/a.dmp", "", "ended by a fault"},
		"a dump that the sandbox refuses": {"other", "[1201/030102.5:ERROR:third_party/crashpad/crashpad/util/linux/" +
			"scoped_ptrace_attach.cc:27] ptrace: Operation not permitted (1)\n", "ended by a fault"},
		"scripts": {".config/app/Crashpad/pending/a.dmp", "x\n[5:5:ERROR:v8_oom.cc:49] V8 javascript OOM (Reached heap limit).\ny",
			"(Reached heap limit)"},
		"orders in its log": {"other", "V8 javascript OOM (\x1b[2J\nx", "took more memory"},
	}
	for name, test := range tests {
		home := t.TempDir()
		file := filepath.Join(home, filepath.FromSlash(test.file))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		b := &Browser{home: home, process: &process{log: &tail{max: 1 << 10, buf: []byte(test.log)}}}
		got := (&Dormant{mutexed: &mutexed{browser: b}}).Crashed()
		if !strings.Contains(got, test.want) || (got == "") != (test.want == "") || strings.ContainsAny(got, "\x1b\n") {
			t.Errorf("%s: Crashed() = %q; want one line with %q", name, got, test.want)
		}
		b.process.log.buf = nil
		if err := forgetDumps(home); err != nil || b.Crashed() != "" {
			t.Errorf("%s: Crashed() after forgetDumps() = %q, %v; want none", name, b.Crashed(), err)
		}
	}
	// A link out of the home is not followed.
	home, outside := t.TempDir(), t.TempDir()
	if err := os.MkdirAll(filepath.Join(outside, "chromium/Crash Reports/pending/a.dmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(home, ".config")); err != nil {
		t.Fatal(err)
	}
	if hasDump(home) {
		t.Error("hasDump() = true by a link out of the home; want false")
	}
}
