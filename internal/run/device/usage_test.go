package device

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestUsage counts the processes of a fake /proc by consumer, including processes that end
// and a PID that is used again.
func TestUsage(t *testing.T) {
	u := NewUsage()
	u.proc, u.self = t.TempDir(), 1
	put := func(pid int, name string, user, system, start int, command string) {
		t.Helper()
		dir := filepath.Join(u.proc, strconv.Itoa(pid))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		stat := fmt.Sprintf("%d (%s) S 1 1 1 0 -1 4194560 1 2 3 4 %d %d 700 800 20 0 1 0 %d 1 2\n", pid, name, user, system, start)
		for file, content := range map[string]string{"stat": stat, "cmdline": command} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	check := func(want map[string]time.Duration) {
		t.Helper()
		if diff := cmp.Diff(want, u.Total()); diff != "" {
			t.Errorf("processor time (-want +got):\n%s", diff)
		}
	}
	put(1, "exe", 100, 20, 5, "appliance\x00inside\x00{}\x00")
	put(7, "exe", 3, 4, 6, "/proc/self/exe\x00link\x00forward\x00")
	put(8, "chromium (a) b", 10, 0, 7, "")
	put(9, "Xvfb", 1, 1, 8, "")
	put(10, "vpxenc", 50, 0, 9, "")
	put(11, "editor", 3, 0, 10, "editor") // an app without a sandbox
	put(12, "sh", 1, 0, 10, "sh")
	for pid, home := range map[int]string{11: "/tmp/trial-123", 12: "/root/trials"} {
		if err := os.WriteFile(filepath.Join(u.proc, strconv.Itoa(pid), "environ"), []byte("A=HOME=/tmp/trial-1\x00HOME="+home+"\x00B=1\x00"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]time.Duration{"appliance": 1200 * time.Millisecond, "link": 70 * time.Millisecond,
		"browser": 130 * time.Millisecond, "others": 10 * time.Millisecond, "screen": 20 * time.Millisecond}
	check(want)
	check(want) // no use since the last reading
	if err := os.RemoveAll(filepath.Join(u.proc, "8")); err != nil {
		t.Fatal(err)
	}
	check(want)
	put(8, "chromium", 5, 0, 70, "") // another process
	put(1, "exe", 101, 20, 5, "")
	want["browser"] += 50 * time.Millisecond
	want["appliance"] += 10 * time.Millisecond
	check(want)
}
