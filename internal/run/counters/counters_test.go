package counters

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// treeOf names, in the environment of this test's own program, how many generations of programs it is to start; see
// TestCountersAgainstTheKernel.
const treeOf = "COUNTERS_TEST_TREE"

func usedTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestCountedTree is the program that is counted: on two threads it computes and touches memory, as does the one that
// it starts.
func TestCountedTree(t *testing.T) {
	var left int
	if n, _ := fmt.Sscan(os.Getenv(treeOf), &left); n != 1 {
		return
	}
	done := make(chan int)
	go func() {
		runtime.LockOSThread()
		memory := make([]byte, 32<<20)
		for i := 0; i < len(memory); i += 512 {
			memory[i]++
		}
		done <- len(memory)
	}()
	for before := usedTime(); usedTime()-before < 200*time.Millisecond; {
	}
	<-done
	fmt.Println("used", int64(usedTime()))
	if left == 0 {
		return
	}
	child := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run", "^TestCountedTree$")
	child.Env = append(os.Environ(), fmt.Sprint(treeOf, "=", left-1))
	child.Stdout = os.Stdout
	if err := child.Run(); err != nil {
		t.Error(err)
	}
}

// countTree starts a program that is counted, on a thread that ends at once. It returns the processor time that it and
// what it started had used when each was about to end, and what the kernel says of all in the end.
func countTree(t *testing.T, c *Counters) (ran float64, used *syscall.Rusage) {
	t.Helper()
	child := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run", "^TestCountedTree$")
	child.Env = append(os.Environ(), treeOf+"=2")
	var said strings.Builder
	child.Stdout = &said
	var set *Set
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		set = c.Begin()
		started <- child.Start()
	}()
	err := <-started
	if err == nil {
		err = child.Wait()
	}
	set.End()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(said.String()) {
		var ns float64
		if n, _ := fmt.Sscanf(line, "used %f", &ns); n == 1 {
			ran += ns
		}
	}
	return ran, child.ProcessState.SysUsage().(*syscall.Rusage)
}

// TestCountersAgainstTheKernel: the task clock of a program and all that it starts is what getrusage says of them,
// within 2 %; page faults and context switches are, too. What was counted stays when they have ended.
func TestCountersAgainstTheKernel(t *testing.T) {
	said, err := Here()
	testlab.Need(t, err == nil, fmt.Sprintf("a kernel that counts events (%v)", err))
	c := New()
	ran, used := countTree(t, c)
	got := c.Total()
	// How long the kernel takes to end a program is counted or not, by its version.
	all := float64(used.Utime.Nano() + used.Stime.Nano())
	for _, want := range []struct {
		name         string
		value, slack float64
	}{
		{lab.CounterTaskClock, (ran + all) / 2, (all-ran)/2 + 0.02*ran},
		// Before the exec there were some more.
		{lab.CounterFaults, float64(used.Minflt + used.Majflt), 200 + 0.02*float64(used.Minflt)},
		{lab.CounterSwitches, float64(used.Nvcsw + used.Nivcsw), 20 + 0.05*float64(used.Nvcsw+used.Nivcsw)},
	} {
		v, ok := got[want.name]
		switch {
		case !ok && want.name == lab.CounterSwitches && c.user: // the kernel refuses
		case !ok, v < want.value-want.slack, v > want.value+want.slack:
			t.Errorf("%s: %.0f counted (%v), getrusage says %.0f ± %.0f", want.name, v, ok, want.value, want.slack)
		}
	}
	if ran < 600e6 {
		t.Errorf("three programs have computed for %.0f ms; want 450 and more", ran/1e6)
	}
	if v, ok := got[lab.CounterInstructions]; ok && v < ran/100 {
		t.Errorf("%.0f instructions in %.0f ms", v, ran/1e6)
	} else if !ok {
		testlab.Weaker(t, "no instructions are counted: "+said)
	}
	again, _ := countTree(t, c)
	if more := c.Total()[lab.CounterTaskClock] - got[lab.CounterTaskClock]; more < 0.98*again {
		t.Errorf("a second program adds %.0f ms", more/1e6)
	}
	if c.Describe() != said || !strings.Contains(said, "task clock") {
		t.Errorf("Describe() = %q, Here() = %q", c.Describe(), said)
	}
	t.Logf("%s\n%v; getrusage has %.0f to %.0f ns", said, got, ran, all)
}

// TestCountersInWords: what there is, what the machine lacks, and what the kernel refuses, with what to do.
func TestCountersInWords(t *testing.T) {
	refused := map[string]error{}
	var all []string
	for _, one := range counterList {
		all = append(all, one.name)
		refused[one.name] = unix.EACCES
	}
	const allow = ": allow it with 'sysctl kernel.perf_event_paranoid=1', as root, or measure as root"
	for _, tt := range []struct {
		seen         []string
		lacks        map[string]error
		user, shared bool
		paranoid     string
		want         []string
	}{
		{lacks: refused, paranoid: "3", want: []string{"none; the kernel refuses cycles, ", "(kernel.perf_event_paranoid is 3)" + allow}},
		{lacks: map[string]error{lab.CounterCycles: unix.ENOSYS}, want: []string{"none; the kernel says: function not implemented"}},
		{seen: all, user: true, paranoid: "2", want: []string{"cycles, instructions", "page faults, outside the kernel alone; the kernel refuses its own part (", " is 2)"}},
		{seen: []string{lab.CounterFaults}, lacks: map[string]error{lab.CounterCycles: unix.ENOENT}, want: []string{"page faults; this machine has no cycles, as most virtual machines"}},
		{seen: []string{lab.CounterFaults}, shared: true, want: []string{"took turns"}},
	} {
		seen := map[string]bool{}
		for _, name := range tt.seen {
			seen[name] = true
		}
		got := described(seen, tt.lacks, tt.user, tt.shared, tt.paranoid)
		for _, want := range tt.want {
			if !strings.Contains(got, want) {
				t.Errorf("%q; want %q in it", got, want)
			}
		}
	}
	if got := (*Counters)(nil).Describe() + New().Describe(); got != "" {
		t.Errorf("without a program: %q", got)
	}
	if (*Counters)(nil).Begin() != nil {
		t.Error("nil counts")
	}
}
