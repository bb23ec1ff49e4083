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

	"eidetic/internal/testlab/xtest"
)

// Real is a real VNC server and the X screen that it shows.
type Real struct {
	Address string // as package rfb takes it
	Display string
	Stop    func() // ends it before the test does
}

// Xvnc starts TigerVNC's server, the program Xvnc, which is screen and VNC server in one. Without
// -SecurityTypes in args it asks for no password.
func Xvnc(t testing.TB, program string, args ...string) Real {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "rfb")
	server := xtest.Start(t, program, append([]string{
		"-rfbport", "-1", "-rfbunixpath", socket, "-SecurityTypes", "None", "-depth", "24"}, args...)...)
	return Real{"unix:" + socket, server.Display, server.Stop}
}

// X11vnc starts the program x11vnc (LibVNCServer), which shares the screen of
// an Xvfb as one would a laptop's. It is killed in the end, because it calls
// Xlib from its handler of SIGTERM and may hang there; so it uses no shared memory
// (-noshm), which would outlive it. It tries whether a port is free before it
// takes it, and gives up when another did meanwhile: then it is started again.
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

// x11vnc returns the port that the program tells.
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
			// Ends with the program, at the latest with the test.
			drained := make(chan struct{})
			go func() { defer close(drained); _, _ = io.Copy(io.Discard, lines) }()
			t.Cleanup(func() { stop(); <-drained })
			return port, stop, nil
		}
	}
}

// QEMU starts the program qemu-system-x86_64 with a machine that never runs:
// its VNC server shows 640 × 480 pixels with a line of text, and takes input.
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
