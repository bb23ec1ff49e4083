package x11_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"eidetic/capture"
	"eidetic/capture/reel"
	"eidetic/capture/x11"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/rigs/testlab/xtest"
)

// TestMain is a process that films a screen, for TestStalledProcess, when its
// variable is set.
func TestMain(m *testing.M) {
	if to := os.Getenv("EIDETIC_TEST_FILM"); to != "" {
		if err := filmUntilTold(to); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	xtest.Main()
	os.Exit(m.Run())
}

// filmUntilTold films $DISPLAY until standard input ends. It prints a line when
// the first frames have come, and its statistics at the end.
func filmUntilTold(path string) error {
	src, err := x11.Open(x11.Options{})
	if err != nil {
		return err
	}
	w, err := reel.Create(path, reel.Header{Format: src.Format()})
	if err != nil {
		return err
	}
	r, err := capture.Start(context.Background(), src, w, capture.Options{})
	if err != nil {
		return err
	}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() { // each line asks for a look from now on
		for now := lab.Monotonic(); r.Status().LastFrame < now; {
			capture.SleepUntil(lab.Monotonic().Add(time.Millisecond))
		}
		fmt.Println("looked")
	}
	st, err := r.Stop()
	return errors.Join(err, w.Close(), json.NewEncoder(os.Stdout).Encode(st))
}

// stalled is for how long a process is held up.
const stalled = 300 * time.Millisecond

// hold stops a process for a while, and calls meanwhile then.
func hold(t *testing.T, pid int, meanwhile func()) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { // the kernel stops its threads one by one
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(status), ") T ")
	})
	meanwhile()
	<-time.After(stalled)
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}

// A recorder, and a server, that are held up while nothing is drawn miss nothing;
// what is drawn while the recorder is held up has a time within bounds.
func TestStalledProcess(t *testing.T) {
	x := xtest.Start(t, testlab.NeedProgram(t, "Xvfb"), "-screen", "0", "320x200x24")
	display, server := x.Display, x.Process.Pid
	path := filepath.Join(t.TempDir(), "stalled.reel")
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "EIDETIC_TEST_FILM="+path, "DISPLAY="+display)
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	pipe, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	child.Stderr = os.Stderr
	if err := testlab.Start(t, child); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = child.Process.Kill() })
	out := bufio.NewReader(pipe)
	looked := func() {
		t.Helper()
		if _, err := io.WriteString(in, "\n"); err != nil {
			t.Fatal(err)
		}
		if line, err := out.ReadString('\n'); line != "looked\n" {
			t.Fatalf("the recorder said %q (%v)", line, err)
		}
	}
	looked()
	hold(t, child.Process.Pid, func() {})
	looked()
	hold(t, server, func() {})
	looked()
	var drawn []lab.Unseen // within these
	for _, rgb := range []uint32{0xff0000, 0x00ff00} {
		hold(t, child.Process.Pid, func() {
			before := lab.Monotonic()
			xtest.Paint(t, display, rgb)
			drawn = append(drawn, lab.Unseen{From: before, To: lab.Monotonic()})
		})
		looked()
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	var st capture.Stats
	if err := json.NewDecoder(out).Decode(&st); err != nil {
		t.Fatal(err)
	}
	if err := child.Wait(); err != nil {
		t.Fatal(err)
	}
	// Two stalls of 18 ticks without drawing, of which a look takes one or the other.
	if st.Lost != 0 || st.MissedProven < 30 || st.MissedDrawn < 30 || st.WorstBound < 1e3*stalled.Seconds() {
		t.Errorf("Stats = %+v, want nothing lost, and 30 ticks missed with and without drawing at least", st)
	}
	checkStalls(t, path, drawn)
}

// checkStalls compares a reel's late looks with what was drawn while nobody looked.
func checkStalls(t *testing.T, path string, drawn []lab.Unseen) {
	t.Helper()
	r, err := reel.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if r.Lost() != 0 {
		t.Errorf("gaps %v, want none", r.Gaps())
	}
	for _, d := range drawn {
		found := false
		for _, e := range r.Events() {
			if e.Kind == lab.SourceUnseen && e.From <= d.From && d.To <= e.Time {
				found = true
				if e.Missed < int(stalled*60/time.Second)-1 || e.Time.Sub(e.From) < stalled {
					t.Errorf("%v: it was stalled for %v", e, stalled)
				}
			}
		}
		if !found {
			t.Errorf("nothing is said of what was drawn between %d and %d: %v", d.From, d.To, r.Events())
		}
	}
	for i := range r.Len() { // no frame shows a time at which it is not known
		f := r.Info(i)
		for _, d := range drawn {
			if f.Flags&lab.FrameProven != 0 && f.Time > d.From && f.Time < d.To {
				t.Errorf("frame %d, of %d, is called proven while something was drawn", i, f.Time)
			}
		}
		if i > 0 && (f.Time <= r.Info(i-1).Time || f.Seq != r.Info(i-1).Seq+1) {
			t.Errorf("frame %d: number %d at %d after number %d at %d", i, f.Seq, f.Time, r.Info(i-1).Seq, r.Info(i-1).Time)
		}
	}
}

// A source that oversleeps, on a real screen.
func TestOverslept(t *testing.T) {
	display := xvfb(t, "-screen", "0", "200x100x24")
	var stall func(lab.Time)
	s, err := x11.Open(x11.Options{Display: display, Wait: func(due lab.Time) {
		if stall != nil {
			stall(due)
			due = due.Add(5 * time.Second / 60)
			stall = nil
		}
		capture.SleepUntil(due)
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	still, _ := until(t, s, func(f lab.Frame) bool { return f.Flags&lab.FrameRepeat != 0 })

	// Nothing is drawn: the ticks follow each other at their own times.
	stall = func(lab.Time) {}
	last, proven := still.FrameInfo, 0
	until(t, s, func(f lab.Frame) bool {
		if f.Flags&lab.FrameRepeat == 0 || f.Seq != last.Seq+1 || f.Time <= last.Time {
			t.Errorf("after %+v came %+v, and nothing was drawn", last, f.FrameInfo)
		}
		last = f.FrameInfo
		if f.Flags&lab.FrameProven != 0 {
			proven++
		}
		return proven >= 5 && f.Flags&lab.FrameProven == 0
	})

	// Something is: its bounds hold it.
	var before, after lab.Time
	stall = func(lab.Time) {
		before = lab.Monotonic()
		xtest.Paint(t, display, 0x00ff00)
		after = lab.Monotonic()
	}
	f, _ := until(t, s, func(f lab.Frame) bool {
		if f.Flags&lab.FrameRepeat == 0 {
			return true
		}
		last = f.FrameInfo
		return false
	})
	if from := last.Time.Add(-last.Uncertainty); f.Missed < 5 || from > before || f.Time < after || f.Seq != last.Seq+1 {
		t.Errorf("drawn in %d … %d, but frame %+v after %+v", before, after, f.FrameInfo, last)
	}
}

// Without DAMAGE nothing is proven: a missed tick is a lost frame, as in a grabber.
func TestOversleptWithoutDamage(t *testing.T) {
	display := xvfb(t, "-screen", "0", "64x64x24")
	s, err := x11.Open(x11.Options{Display: display, NoDamage: true,
		Wait: func(due lab.Time) { capture.SleepUntil(due.Add(5 * time.Second / 60)) }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	first, err := s.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if second.Seq < first.Seq+6 || second.Missed != 0 || second.Flags != 0 {
		t.Errorf("after %+v came %+v, want a step of 6 in Seq", first.FrameInfo, second.FrameInfo)
	}
}
