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

// EndDaemons kills, after the test, all processes that have this argument. A daemon
// such as dhclient is no child of the test and keeps its namespace alive, and it
// may not have written its process id when the program that started it returns.
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
				_ = syscall.Kill(pid, syscall.SIGKILL) // fails when it has ended
			}
		}
	})
}
