package nstest

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// EndDaemons ends, after the test, all processes that have an argument: a daemon
// such as dhclient is no child of the test's any more, keeps its namespace, and
// may not have written yet which process it is when who started it comes back.
func EndDaemons(t testing.TB, argument string) {
	t.Cleanup(func() {
		all, err := filepath.Glob("/proc/[0-9]*/cmdline")
		if err != nil {
			t.Error(err)
		}
		for _, file := range all {
			line, err := os.ReadFile(file)
			if err != nil || !slices.Contains(strings.Split(string(line), "\x00"), argument) {
				continue
			}
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
			}
		}
	})
}
