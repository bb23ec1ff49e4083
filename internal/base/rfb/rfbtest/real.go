package rfbtest

import (
	"bufio"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/rigs/testlab/xtest"
)

// Real is a real VNC server with the X screen that it shares.
type Real struct {
	Address string // as package rfb takes it
	Display string
	Stop    func() // ends the server before the test ends
}

// Xvnc starts TigerVNC's Xvnc, which is an X screen and a VNC server in one. It asks for no
// password unless args has -SecurityTypes.
func Xvnc(t testing.TB, program string, args ...string) Real {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "rfb")
	server := xtest.Start(t, program, append([]string{
		"-rfbport", "-1", "-rfbunixpath", socket, "-SecurityTypes", "None", "-depth", "24"}, args...)...)
	return Real{"unix:" + socket, server.Display, server.Stop}
}

// X11vnc starts the program x11vnc (LibVNCServer), which shares the screen of an Xvfb as it
// would a laptop's. It is ended by SIGKILL, because it calls Xlib from its SIGTERM handler and
// may hang there; it therefore uses no shared memory (-noshm), which would outlive it. It
// checks for a free port before it binds one, and exits if another program binds the port in
// between; then it is started again.
func X11vnc(t testing.TB, program, xvfb, size string, args ...string) Real {
	t.Helper()
	display := xtest.Start(t, xvfb, "-screen", "0", size+"x24").Display
	args = append([]string{"-display", display, "-nopw", "-listen", "127.0.0.1", "-autoport", "15900",
		"-noipv6", "-rfbportv6", "-1", "-norc", "-noshm", "-shared", "-forever", "-quiet"}, args...)
	const most = 5
	for try := 1; ; try++ {
		port, stop, err := x11vnc(t, program, args)
		if err == nil {
			return Real{net.JoinHostPort("127.0.0.1", port), display, stop}
		}
		if try == most {
			t.Fatalf("x11vnc told no port %d times: %v", most, err)
		}
	}
}

// x11vnc starts the program and returns the port that it reports.
func x11vnc(t testing.TB, program string, args []string) (port string, stop func(), err error) {
	t.Helper()
	cmd := exec.Command(program, args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stop = xtest.Run(t, cmd)
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			stop()
			return "", nil, err
		}
		if port, ok := strings.CutPrefix(strings.TrimSpace(line), "PORT="); ok {
			// This goroutine ends with the program, and the program with the test.
			drained := make(chan struct{})
			go func() { defer close(drained); _, _ = io.Copy(io.Discard, lines) }()
			t.Cleanup(func() { stop(); <-drained })
			return port, stop, nil
		}
	}
}

// QEMU starts qemu-system-x86_64 with a machine that never runs: its VNC server shows 640 ×
// 480 pixels with a line of text, and accepts input.
func QEMU(t testing.TB, program string) Real {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "rfb")
	cmd := exec.Command(program, "-nodefaults", "-S", "-vga", "std", "-m", "32", "-display", "none", "-vnc", "unix:"+socket)
	stop := xtest.Run(t, cmd)
	for range 300 {
		if c, err := net.Dial("unix", socket); err == nil {
			_ = c.Close()
			return Real{Address: "unix:" + socket, Stop: stop}
		}
		<-time.After(100 * time.Millisecond)
	}
	t.Fatal("QEMU does not listen")
	return Real{}
}
