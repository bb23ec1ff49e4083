package device

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"eidetic/internal/lab"
)

// spinFor names, in the environment of this test's own program, how many ms of processor time it takes in each of two
// stretches, between which it waits for a line; see TestSampleAgainstTheKernel.
const spinFor = "DEVICE_TEST_SPIN_MS"

func usedTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestSpin is the program that TestSampleAgainstTheKernel reads; without its variable it does nothing.
func TestSpin(t *testing.T) {
	var ms int
	if n, _ := fmt.Sscan(os.Getenv(spinFor), &ms); n != 1 {
		return
	}
	in := bufio.NewScanner(os.Stdin)
	for range 3 {
		in.Scan()
		from, before := lab.Monotonic(), usedTime()
		for usedTime()-before < time.Duration(ms)*time.Millisecond {
		}
		to, used := lab.Monotonic(), usedTime()-before
		fmt.Printf("spun %d %d %d\n", from, to, used)
	}
	in.Scan()
}

// TestSampleAgainstTheKernel: the processor time of each stretch of a process is what getrusage says of it, within 2 %
// and a sample at each end; in sum exactly so. What the readings cost is counted, and bounded.
func TestSampleAgainstTheKernel(t *testing.T) {
	child := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run", "^TestSpin$") // its own path is not in every namespace
	child.Env = append(os.Environ(), spinFor+"=200")
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	end := Sample(100, false)
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	type stretch struct {
		from, to lab.Time
		used     int64
	}
	var want []stretch
	lines := bufio.NewScanner(out)
	for range 3 {
		fmt.Fprintln(in)
		var s stretch
		for n := 0; n != 3 && lines.Scan(); {
			n, _ = fmt.Sscanf(lines.Text(), "spun %d %d %d", &s.from, &s.to, &s.used)
		}
		want = append(want, s)
	}
	how, list := end() // reads once more
	in.Close()
	if err := child.Wait(); err != nil {
		t.Fatal(err)
	}
	var longest int64
	for _, s := range list {
		if s.PID == child.Process.Pid {
			longest = max(longest, s.For)
		}
	}
	sum := int64(0)
	for i, s := range want {
		got := ranBetween(list, child.Process.Pid, s.from, s.to)
		sum += s.used
		if used, slack := float64(s.used)/1e6, float64(2*longest)/1e6; s.used < 200e6 || got < 0.98*used-slack || got > 1.02*used+slack {
			t.Errorf("stretch %d: %.1f ms of processor time, getrusage says %.1f; a sample is at most %.1f ms", i, got, used, float64(longest)/1e6)
		}
	}
	// From before its birth to the last reading the process has done this, and a little to start and to wait.
	if all := ranBetween(list, child.Process.Pid, 0, lab.Monotonic()); all < 0.98*float64(sum)/1e6 || all > 1.02*float64(sum)/1e6+500 {
		t.Errorf("in all %.1f ms, getrusage says %.1f", all, float64(sum)/1e6)
	}
	if how.Readings < 10 || how.CostMS <= 0 || how.WallMS < how.CostMS || how.Left != 0 {
		t.Errorf("Sample() = %+v", how)
	}
	t.Logf("%d readings took %.1f ms of %.0f", how.Readings, how.CostMS, how.WallMS)
}

// TestStalled: a file of the kernel's, and what is none.
func TestStalled(t *testing.T) {
	for text, want := range map[string]int64{
		"some avg10=0.00 avg60=0.10 avg300=0.05 total=1234\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=5\n": 1234000,
		"some total=-5\n": 0, "": 0, "some avg10=1\nfull total=5\n": 0, "some total=" + strings.Repeat("9", 40): 0,
	} {
		name := filepath.Join(t.TempDir(), "cpu")
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := stalled(name); got != want {
			t.Errorf("stalled(%q) = %d, want %d", text, got, want)
		}
	}
	if got := stalled(filepath.Join(t.TempDir(), "nothing")); got != 0 {
		t.Errorf("without a file %d, want 0", got)
	}
}

// ranBetween is the processor time of a process between two moments, in ms: of a sample that is partly there, its
// share.
func ranBetween(samples []lab.ProcessSample, pid int, from, to lab.Time) (ms float64) {
	for _, s := range samples {
		if s.PID == pid && s.For > 0 {
			start := s.At - lab.Time(s.For)
			ms += float64(s.Ran) / 1e6 * float64(max(min(s.At, to)-max(start, from), 0)) / float64(s.For)
		}
	}
	return ms
}

// TestSpinThreads is a program of the browser's name with two threads, of which one computes; see TestSampleThreads.
func TestSpinThreads(t *testing.T) {
	var ms int
	if n, _ := fmt.Sscan(os.Getenv(spinFor), &ms); n != 1 {
		return
	}
	in := bufio.NewScanner(os.Stdin)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread()
		tid := unix.Gettid()
		fmt.Println("thread", tid)
		in.Scan()
		used := func() time.Duration {
			var u unix.Rusage
			if unix.Getrusage(unix.RUSAGE_THREAD, &u) != nil {
				return 0
			}
			return time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
		before := used()
		for used()-before < time.Duration(ms)*time.Millisecond {
		}
		fmt.Println("spun", int64(used()-before))
		in.Scan()
	}()
	<-ended
}

// TestSampleThreads: the processor time of one thread of a browser is what getrusage says of it, within 2 % and what it
// does besides, and it is part of its process's.
func TestSampleThreads(t *testing.T) {
	program := filepath.Join(t.TempDir(), "firefox-esr") // by whose name a browser is known
	if err := os.Link("/proc/self/exe", program); err != nil {
		self, err := os.ReadFile("/proc/self/exe")
		if err == nil {
			err = os.WriteFile(program, self, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	child := exec.CommandContext(t.Context(), program, "-test.run", "^TestSpinThreads$")
	child.Env = append(os.Environ(), spinFor+"=300")
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	end := Sample(100, true)
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	next := func(form string) (v int) {
		for n := 0; n != 1 && lines.Scan(); {
			n, _ = fmt.Sscanf(lines.Text(), form, &v)
		}
		return v
	}
	tid := next("thread %d")
	fmt.Fprintln(in)
	used := float64(next("spun %d")) / 1e6
	how, list := end() // reads once more
	in.Close()
	if err := child.Wait(); err != nil {
		t.Fatal(err)
	}
	sum, process, name := 0.0, 0.0, ""
	for _, s := range list {
		switch {
		case s.PID != child.Process.Pid:
		case s.TID == tid:
			sum += float64(s.Ran) / 1e6
			name = cmp.Or(name, s.Name)
		case s.TID == 0:
			process += float64(s.Ran) / 1e6
		}
	}
	const besides = 20 // ms of processor time, to begin and to write
	if sum < 0.98*used || sum > 1.02*used+besides || used < 300 || sum > process+besides || name != "firefox-esr" {
		t.Errorf("thread %d (%s): %.1f ms, getrusage says %.1f, its process did %.1f", tid, name, sum, used, process)
	}
	t.Logf("thread %.1f ms, getrusage %.1f, process %.1f; %d readings took %.1f ms of %.0f", sum, used, process, how.Readings, how.CostMS, how.WallMS)
}
