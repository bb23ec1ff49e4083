package port

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"eidetic/internal/rigs/testlab"
	"eidetic/netlab/nstest"
)

// forwardArg makes this test's program the link's process.
const forwardArg = "forward-frames"

// forwarder returns the process id of this test's link, or 0.
func forwarder(t *testing.T) (pid int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range all {
		line, err := os.ReadFile(file)
		if err != nil || !strings.HasSuffix(string(line), "\x00"+forwardArg+"\x00") || strings.HasPrefix(string(line), "sh\x00") {
			continue
		}
		var parent int
		stat, err := os.ReadFile(filepath.Join(filepath.Dir(file), "stat"))
		if err != nil {
			continue // it is gone
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		if _, err := fmt.Sscanf(rest, "%1s %d", new(string), &parent); err == nil && parent == os.Getpid() {
			_, _ = fmt.Sscan(filepath.Base(filepath.Dir(file)), &pid) // a number by the pattern
		}
	}
	return pid
}

// After the link's process was killed, another one is started; when none can start,
// one is started as soon as that is possible.
func TestLinkEnds(t *testing.T) {
	if !nstest.Inside(t) {
		return
	}
	w := newWorld(t)
	phone := newPhone(t, w, "dev0")
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	may := filepath.Join(t.TempDir(), "may")
	if err := os.WriteFile(may, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p := w.port(t, "dev0", func(c *Config) {
		c.Forwarder = []string{"sh", "-c", `test -e "$1" && exec "$2" ` + forwardArg, "sh", may, program}
	})
	phone.lease(t)
	kill := func() (pid int) {
		t.Helper()
		testlab.Await(t, "the link's process", func() bool { pid = forwarder(t); return pid != 0 })
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		return pid
	}
	browse := func() {
		t.Helper()
		if out, err := phone.curl(t, "http://box.test/"); err != nil || !strings.Contains(out, "Set up") {
			t.Errorf("%v %s", err, out)
		}
	}
	browse()
	trial := p.Watch()
	killed := kill()
	testlab.Await(t, "another process", func() bool { now := forwarder(t); return now != 0 && now != killed && p.mustStatus(t).Carrier })
	browse()
	if why := strings.Join(trial.Reasons(), ""); !strings.Contains(why, "went away") {
		t.Errorf("Reasons() of the trial meanwhile = %q", why)
	}

	if err := os.Remove(may); err != nil {
		t.Fatal(err)
	}
	kill()
	testlab.Await(t, "a problem", func() bool { s := p.mustStatus(t); return s.Problem != "" && !s.Present })
	if err := os.WriteFile(may, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	testlab.Await(t, "the port to be back", func() bool { s := p.mustStatus(t); return s.Problem == "" && s.Present && s.Carrier })
	browse()
}
