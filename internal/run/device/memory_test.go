package device

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"eidetic/internal/lab"
)

// TestMemory: each process of the browser is named by what it is; what has ended, or is another program, is left out.
func TestMemory(t *testing.T) {
	proc := t.TempDir()
	add := func(pid int, comm, command, statm, rollup string) {
		dir := filepath.Join(proc, fmt.Sprint(pid))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		stat := fmt.Sprintf("%d (%s) S 1 %s", pid, comm, strings.Repeat("1 ", 20))
		for name, text := range map[string]string{"stat": stat, "cmdline": command, "statm": statm, "smaps_rollup": rollup} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	add(4, "chromium", "/usr/lib/chromium/chromium\x00--kiosk\x00", "900 300 10 1 0 50 0", "00-ff ---p 00000000 00:00 0 [rollup]\nRss:  1200 kB\nPss:  700 kB\n")
	add(5, "chromium", "/usr/lib/chromium/chromium --type=renderer --lang=de", "900 200 10", "")
	add(6, "chromium", "chromium\x00--type=utility\x00--utility-sub-type=network.mojom.NetworkService", "900 100 10", "Pss: many kB\n")
	add(7, "Isolated Web Co", "firefox -contentproc", "900 50 10", "Pss: 4 kB\n")
	add(8, "Xvfb", "Xvfb :1", "900 50 10", "")
	add(9, "chromium", "", "0 0 0", "")
	add(10, "chromium", "", "?", "")
	m := NewMemory()
	m.proc = proc
	page := int64(os.Getpagesize())
	want := []lab.ProcessMemory{
		{PID: 4, Name: "browser", RSS: 300 * page, PSS: 700 << 10}, {PID: 5, Name: "renderer", RSS: 200 * page},
		{PID: 6, Name: "utility NetworkService", RSS: 100 * page}, {PID: 7, Name: "Isolated Web Co", RSS: 50 * page, PSS: 4 << 10},
	}
	if diff := cmp.Diff(want, m.Read(true), cmpopts.IgnoreFields(lab.ProcessMemory{}, "At")); diff != "" {
		t.Errorf("Read (-want +got):\n%s", diff)
	}
	if got := m.Read(false); len(got) != 4 || got[0].PSS != 0 || got[0].At == 0 {
		t.Errorf("Read(false) = %+v, want no shares", got)
	}
}
