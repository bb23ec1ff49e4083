package adb_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"eidetic/control/adb"
	"eidetic/internal/base/adbserver/adbtest"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// spinFor names, in the environment of this test's own program, how many ms of processor time it is to take for each
// line that it reads.
const spinFor = "ADB_TEST_SPIN_MS"

// TestSpin is the program that is read as if it were a phone's; without its variable it does nothing.
func TestSpin(t *testing.T) {
	var ms int
	if n, _ := fmt.Sscan(os.Getenv(spinFor), &ms); n != 1 {
		return
	}
	used := func() time.Duration {
		var u unix.Rusage
		if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
			return 0
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	memory := make([]byte, 50<<20)
	for i := 0; i < len(memory); i += 4096 {
		memory[i] = 1
	}
	fmt.Println("ready")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		from, before := lab.Monotonic(), used()
		for used()-before < time.Duration(ms)*time.Millisecond {
		}
		fmt.Printf("spun %d %d %d\n", from, lab.Monotonic(), used()-before)
	}
	runtime.KeepAlive(memory)
}

// spinner is a running TestSpin.
type spinner struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func spin(t *testing.T, ms int) *spinner {
	t.Helper()
	s := &spinner{cmd: exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run", "^TestSpin$")}
	s.cmd.Env = append(os.Environ(), fmt.Sprint(spinFor, "=", ms))
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		s.in, err = s.cmd.StdinPipe()
	}
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	s.out = bufio.NewScanner(out)
	for s.out.Scan() && s.out.Text() != "ready" {
	}
	return s
}

// stretch has it compute once.
func (s *spinner) stretch(t *testing.T) (from, to lab.Time, used int64) {
	t.Helper()
	if _, err := fmt.Fprintln(s.in); err != nil {
		t.Fatal(err)
	}
	for n := 0; n != 3; n, _ = fmt.Sscanf(s.out.Text(), "spun %d %d %d", &from, &to, &used) {
		if !s.out.Scan() {
			t.Fatal("the program has ended")
		}
	}
	return from, to, used
}

func (s *spinner) end() {
	s.in.Close()
	_ = s.cmd.Wait()
}

// sampleOf sums up what samples say of a process, from when to when.
func sampleOf(list []lab.ProcessSample, pid int, from, to lab.Time) (ran float64, name string, rss, pss int64, ended bool) {
	for _, s := range list {
		if s.PID != pid || s.TID != 0 {
			continue
		}
		if s.For > 0 {
			start := s.At - lab.Time(s.For)
			ran += float64(s.Ran) * float64(max(min(s.At, to)-max(start, from), 0)) / float64(s.For)
		}
		if s.Name != "" {
			name = s.Name
		}
		rss, pss, ended = max(rss, s.RSS), max(pss, s.PSS), ended || s.Ended
	}
	return ran, name, rss, pss, ended
}

// TestSampleOfAPhone: of a package's processes, whose lines a real /proc has, the processor time is what getrusage says,
// within 2 % and the kernel's hundredths of a second; so it is in the time in which each computed, within the bounds
// that are told. A process that is born meanwhile counts from its birth, one that ends is gone, and others are not read.
func TestSampleOfAPhone(t *testing.T) {
	client, phone := plugIn(t)
	const app = "org.example.notes"
	one, other := spin(t, 400), spin(t, 50)
	defer one.end()
	defer other.end()
	phone.Change(func(s *adbtest.State) {
		s.Running = []adbtest.Process{{PID: one.cmd.Process.Pid, Name: app}, {PID: other.cmd.Process.Pid, Name: app + "x"}}
	})
	one.stretch(t) // nobody's
	begun := lab.Monotonic()
	end := adb.Phone{Client: client, Serial: phone.Serial}.Sample(within(t), app, 100, true, lab.Monotonic)
	adbtest.AwaitReadings(t, phone, 3)
	from, to, used := one.stretch(t)
	other.stretch(t)
	born := spin(t, 400)
	phone.Change(func(s *adbtest.State) {
		s.Running = append(s.Running, adbtest.Process{PID: born.cmd.Process.Pid, Name: app + ":sandboxed_process0"})
	})
	_, bornTo, bornUsed := born.stretch(t)
	adbtest.AwaitReadings(t, phone, 25) // processes are looked for every two seconds
	born.end()
	adbtest.AwaitReadings(t, phone, 3)
	how, list := end()
	if how.Lacks != "" || how.Hz != adb.MostHz || how.Readings < 10 || how.CostMS <= 0 || how.WallMS < how.CostMS || how.BoundMS <= 0 {
		t.Fatalf("Sample() = %+v", how)
	}
	bound := lab.Time(how.BoundMS * 1e6)
	longest := int64(0)
	for _, s := range list {
		if s.PID == one.cmd.Process.Pid && s.TID == 0 && s.Ran > 0 {
			longest = max(longest, s.For)
		}
	}
	ran, name, rss, pss, ended := sampleOf(list, one.cmd.Process.Pid, begun, lab.Monotonic())
	if slack := 2e7 + 0.02*float64(used); ran < float64(used)-slack || ran > float64(used)+slack+5e7 || name != app || rss < 50<<20 || pss < 50<<20 || pss > rss || ended {
		t.Errorf("the app's process: %.0f ms, %q, RSS %d, PSS %d, ended %v; getrusage says %.0f ms", ran/1e6, name, rss, pss, ended, float64(used)/1e6)
	}
	// What lies outside the stretch is at most a sample at each end.
	around := bound + lab.Time(longest)
	if inside, _, _, _, _ := sampleOf(list, one.cmd.Process.Pid, from-around, to+around); inside < 0.98*float64(used)-2e7 {
		t.Errorf("%.0f of %.0f ms are where it computed, ± %.0f ms", inside/1e6, float64(used)/1e6, float64(around)/1e6)
	}
	ran, name, _, _, ended = sampleOf(list, born.cmd.Process.Pid, begun, bornTo+lab.Time(testlab.Hang))
	if ran < 0.98*float64(bornUsed)-2e7 || !strings.HasPrefix(name, app+":") || !ended {
		t.Errorf("a process that is born and ends: %.0f ms, %q, ended %v; getrusage says %.0f and what it takes to start", ran/1e6, name, ended, float64(bornUsed)/1e6)
	}
	threads, all := 0, int64(0)
	for _, s := range list {
		switch {
		case s.PID == other.cmd.Process.Pid:
			t.Fatalf("another package is read: %+v", s)
		case s.TID != 0 && s.PID == one.cmd.Process.Pid && s.Ran > 0:
			threads++
		case s.Name == lab.AllProcessors:
			all += s.Ran
		}
	}
	if threads == 0 || all < used {
		t.Errorf("%d samples of threads, %d ms of all processors", threads, all/1e6)
	}
	t.Logf("%d readings took %.0f ms of %.0f, each known within %.1f ms; slowed %d times", how.Readings, how.CostMS, how.WallMS, how.BoundMS, how.Slowed)
}

// TestSampleEnds: whatever ends the readings, what was read before is there, with the reason.
func TestSampleEnds(t *testing.T) {
	client, phone := plugIn(t)
	p := adb.Phone{Client: client, Serial: phone.Serial}
	one := spin(t, 10)
	defer one.end()
	phone.Change(func(s *adbtest.State) {
		s.Running = []adbtest.Process{{PID: one.cmd.Process.Pid, Name: "org.example.notes"}}
	})
	end := p.Sample(within(t), "org.example.notes", 10, false, lab.Monotonic)
	adbtest.AwaitReadings(t, phone, 3)
	phone.Disconnect()
	if how, list := end(); !strings.Contains(how.Lacks, "reading the phone's processes") || len(list) == 0 {
		t.Errorf("with the cable pulled: %+v, %d samples", how, len(list))
	}
	if how, list := p.Sample(within(t), "x; reboot", 10, false, lab.Monotonic)(); !strings.Contains(how.Lacks, "no package of Android") || len(list) > 0 {
		t.Errorf("of no package: %+v, %v", how, list)
	}
	gone := adb.Phone{Client: client, Serial: "none"}
	if how, _ := gone.Sample(within(t), "org.example.notes", 10, false, lab.Monotonic)(); !strings.Contains(how.Lacks, "not found") {
		t.Errorf("of a phone that is not there: %+v", how)
	}
}

// FuzzReadings: whatever a phone prints, samples are in bounds, and no more are kept than processes were asked for.
func FuzzReadings(f *testing.F) {
	f.Add("4000 org.example.notes\n.\n", "@ 100.00\nc cpu  5 0 5 100 0 0 0 0\ns 4000 (a) b) S 1 1 0 0 -1 1 9 0 0 0 50 20 0 0 10 -10 40 0 555\nm 4000 900 300 10\nw 4000 5 6 7\np 4000 1000 kB\n"+
		"t 4000 4001 5 6 7 a b\no 7 (sh) S 1 1 0 0 -1 1 9 0 0 0 1 1 1 1 10 -10 40 0 555\n.\n",
		"@ 100.10\nc cpu  9 0 9 100 0 0 0 0\ns 4000 (a) b) S 1 1 0 0 -1 1 9 0 0 0 59 20 0 0 10 -10 40 0 555\nm 4000 900 301 10\nw 4000 5 9 7\nt 4000 4001 9 9 7 a b\n.\n")
	f.Add("4000 org.example.notes:x\n", "@ 4294967295.99\ns 4000 () S", "@ 0.00\ns 4000 () S 1 1 0 0 -1 1 9 0 0 0 17179869183 17179869183 0 0 10 -10 40 0 1\n.\n")
	f.Fuzz(func(t *testing.T, ps, first, second string) {
		defer testlab.Input(t)()
		list := adb.ReadAll("org.example.notes", ps, first, second, first)
		for _, s := range list {
			if s.At < 0 || s.For < 0 || s.Ran < 0 || s.Waited < 0 || s.RSS < 0 || s.Own < 0 || s.Own > s.RSS || s.PSS < 0 || len(s.Name) > 100 || s.TID < 0 {
				t.Fatalf("sample %+v", s)
			}
		}
		if len(list) > len(ps)+len(first)*2+len(second) {
			t.Errorf("%d samples", len(list))
		}
	})
}
