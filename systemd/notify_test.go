package systemd

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"eidetic/internal/rigs/testlab"
)

// The watchdog must ping while all subsystems tick, stop and name the subsystem when one
// does not, and continue when it ticks again. The clock is synctest's.
func TestWatchdogFollowsTheSlowest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent []string
		start := time.Now()
		send := func(state string) error {
			sent = append(sent, time.Since(start).String()+" "+strings.ReplaceAll(state, "\n", "|"))
			return nil
		}
		n := NewNotifier(send, 10*time.Second, time.Now)
		if err := n.Ready("serving"); err != nil {
			t.Fatal(err)
		}
		network, err := n.Subsystem("network")
		if err != nil {
			t.Fatal(err)
		}
		capture, err := n.Subsystem("capture")
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- n.Run(ctx) }()
		for second := 1; second <= 27; second++ {
			<-time.After(time.Second) // the clock of synctest: no real time passes
			network.Tick()
			if second < 8 || second > 16 {
				capture.Tick()
			}
			if second == 16 {
				turns := n.Turns()
				want := []Turn{{"capture", 9 * time.Second, true}, {"network", 0, true}}
				if d := cmp.Diff(want, turns); d != "" {
					t.Errorf("turns (-want +got):\n%s", d)
				}
			}
		}
		capture.End()
		for second := 28; second <= 31; second++ {
			<-time.After(time.Second)
			network.Tick()
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		want := []string{
			"0s READY=1|STATUS=serving",
		}
		for eighth := 1; eighth <= 24; eighth++ { // until 30 s
			at := time.Duration(eighth) * 1250 * time.Millisecond
			switch {
			case at == 12500*time.Millisecond: // the last tick is more than half an interval ago
				want = append(want, "12.5s STATUS=no sign of life from capture")
			case at == 17500*time.Millisecond:
				want = append(want, "17.5s WATCHDOG=1|STATUS=serving")
			case at < 12*time.Second || at > 17*time.Second:
				want = append(want, at.String()+" WATCHDOG=1")
			}
		}
		if d := cmp.Diff(want, sent); d != "" {
			t.Errorf("sent (-want +got):\n%s", d)
		}
	})
}

func TestNotifierSaysWhatWasWrong(t *testing.T) {
	broken := errors.New("no such socket")
	n := NewNotifier(func(string) error { return broken }, 0, time.Now)
	if err := n.Status("x"); !errors.Is(err, broken) || err.Error() != "notify systemd (status): no such socket" {
		t.Errorf("Status() = %v, want %q", err, "notify systemd (status): no such socket")
	}
	if _, err := n.Subsystem("panel"); err != nil {
		t.Error(err)
	}
	if _, err := n.Subsystem("panel"); err == nil {
		t.Error("Subsystem() with a name in use = nil, want an error")
	}
	if err := n.Run(t.Context()); err != nil {
		t.Errorf("Run() without a watchdog = %v, want nil", err)
	}
}

func TestStatusStaysOneLine(t *testing.T) {
	if got := statusLine("page \"a\nREADY=1\""); got != "STATUS=page \"a READY=1\"" {
		t.Errorf("got %q", got)
	}
}

// childMode is the environment variable that makes the test binary run as a child.
const childMode = "SYSTEMD_TEST_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(childMode) {
	case "":
		os.Exit(m.Run())
	case "service":
		os.Exit(childService())
	case "sockets":
		os.Exit(childSockets())
	}
	os.Exit(2)
}

// childService is a small service: ready, two subsystems, one of which hangs
// when a line arrives on standard input; it ends when standard input ends.
func childService() int {
	n, err := FromEnvironment()
	if err != nil {
		return 3
	}
	for _, name := range []string{"WATCHDOG_USEC", "WATCHDOG_PID"} {
		if _, inherited := os.LookupEnv(name); inherited {
			return 4
		}
	}
	steady, err := n.Subsystem("steady")
	if err != nil {
		return 3
	}
	fragile, err := n.Subsystem("fragile")
	if err != nil {
		return 3
	}
	hang := make(chan struct{})
	end := make(chan struct{})
	go func() {
		lines := bufio.NewScanner(os.Stdin)
		if lines.Scan() {
			close(hang)
		}
		for lines.Scan() {
		}
		close(end)
	}()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() { _ = n.Run(ctx) }()
	if n.Ready("up") != nil {
		return 3
	}
	tick := time.NewTicker(n.Period())
	hung := false
	for {
		select {
		case <-tick.C:
			steady.Tick()
			if !hung {
				fragile.Tick()
			}
		case <-hang:
			hung, hang = true, nil
		case <-end:
			if n.Stopping("bye") != nil {
				return 3
			}
			return 0
		}
	}
}

// A real child process, a real notification socket: READY, pings, no pings
// once a subsystem hangs, STOPPING.
func TestRealNotifySocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	const interval = 400 * time.Millisecond
	child := exec.Command(os.Args[0])
	child.Env = append(
		os.Environ(),
		childMode+"=service",
		"NOTIFY_SOCKET="+path,
		"WATCHDOG_USEC="+strconv.FormatInt(interval.Microseconds(), 10),
	)
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Process.Kill() }()

	deadline := time.Now().Add(testlab.Hang)
	// heard returns the next notification, "" when none comes within d.
	heard := func(d time.Duration) string {
		t.Helper()
		if time.Now().After(deadline) {
			t.Fatal("no notification arrived in time")
		}
		if err := socket.SetReadDeadline(time.Now().Add(d)); err != nil {
			t.Fatal(err)
		}
		buffer := make([]byte, 4096)
		n, err := socket.Read(buffer)
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("the notification socket: %v", err)
		}
		return string(buffer[:n])
	}
	// until skips notifications up to want. When a busy machine delays the child, the child
	// notices that, names the subsystems that did not tick, and goes on.
	until := func(want string) {
		t.Helper()
		for heard(time.Second) != want {
		}
	}
	until("READY=1\nSTATUS=up")
	until("WATCHDOG=1")
	until("WATCHDOG=1")
	if _, err := stdin.Write([]byte("hang\n")); err != nil {
		t.Fatal(err)
	}
	// It says what hangs, and then nothing for three intervals: the service
	// manager would have ended it.
	for last := ""; ; {
		said := heard(3 * interval)
		if said == "" && last == "STATUS=no sign of life from fragile" {
			break
		}
		if said != "" {
			last = said
		}
	}
	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	for {
		said := heard(time.Second)
		if strings.HasPrefix(said, "WATCHDOG=1") {
			t.Error("the watchdog was pinged while a subsystem hung, want no ping")
		}
		if said == "STOPPING=1\nSTATUS=bye" {
			break
		}
	}
	if err := child.Wait(); err != nil {
		t.Errorf("child: %v", err)
	}
}

func TestWatchdogIntervalThatIsNoNumber(t *testing.T) {
	t.Setenv("WATCHDOG_USEC", "soon")
	if _, err := FromEnvironment(); err == nil {
		t.Error("FromEnvironment() with WATCHDOG_USEC=soon = nil, want an error")
	}
}
