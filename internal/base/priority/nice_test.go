package priority

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

// A process that is behind others starts those that are not, and goes on behind them.
func TestBehind(t *testing.T) {
	if os.Getenv("BEHIND") == "" { // in a process of its own: this one must not stay behind
		cmd := exec.Command("/proc/self/exe", "-test.run", "^TestBehind$", "-test.v")
		cmd.Env = append(os.Environ(), "BEHIND=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	usual, err := niceOf(0)
	if err != nil {
		t.Fatal(err)
	}
	nice := func() string {
		out, err := exec.Command("nice").Output() // without arguments it prints its own
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(out))
	}
	before := nice()
	ahead, err := Behind()
	if errors.Is(err, ErrNoReturn) {
		if now, err := niceOf(0); err != nil || now != usual {
			t.Errorf("without the right to return the nice value is %d, %v; want %d as before", now, err, usual)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := nice(); got == before {
		t.Errorf("a program that is started is at %s; want it behind %s", got, before)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	back := ahead()
	if got := nice(); got != before {
		t.Errorf("a program that is started ahead is at %s; want %s as before", got, before)
	}
	back()
	if got := nice(); got == before {
		t.Errorf("after back a program that is started is at %s; want it behind %s", got, before)
	}
}
