package rfb_test

import (
	"bufio"
	"image"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"

	"eidetic/internal/rfb/rfbtest"
	"eidetic/internal/testlab"
)

// server is what the suite films: a fake or a real one.
type server struct {
	address string
	paint   func(rgb uint32) // the whole screen
	stop    func()
	size    image.Point
}

func fake(cfg rfbtest.Config) func(*testing.T) server {
	return func(t *testing.T) server {
		cfg.Width, cfg.Height = 200, 100
		s := rfbtest.New(t, cfg)
		return server{s.Addr(), func(rgb uint32) { s.Paint(image.Rect(0, 0, 200, 100), rgb) }, s.Close, image.Pt(200, 100)}
	}
}

// start runs a program until the test ends; the returned function ends it earlier.
func start(t testing.TB, cmd *exec.Cmd) func() {
	t.Helper()
	cmd.Dir = t.TempDir()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stderr = log
	if cmd.Stdout == nil {
		cmd.Stdout = log
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop := sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("%s said:\n%s", cmd.Path, text)
		}
	})
	t.Cleanup(stop)
	return stop
}

// xvnc starts Xvnc, which is the screen and its server in one, and returns its
// socket and its X display.
func xvnc(t testing.TB, args ...string) (socket, display string, stop func()) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "rfb")
	return socket, startX(t, &stop, testlab.NeedProgram(t, "Xvnc", "Xtigervnc"), append([]string{
		"-rfbport", "-1", "-rfbunixpath", socket, "-SecurityTypes", "None", "-geometry", "200x100", "-depth", "24"}, args...)...), stop
}

// startX starts an X server, which chooses its display's number itself.
func startX(t testing.TB, stop *func(), program string, args ...string) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := exec.Command(program, append([]string{"-displayfd", "3", "-nolisten", "tcp", "-noreset"}, args...)...)
	cmd.ExtraFiles = []*os.File{w}
	*stop = start(t, cmd)
	w.Close()
	number, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatalf("%s did not start: %v", program, err)
	}
	return ":" + strings.TrimSpace(number)
}

func realXvnc(t *testing.T) server {
	socket, display, stop := xvnc(t)
	return server{"unix:" + socket, func(rgb uint32) { paint(t, display, rgb) }, stop, image.Pt(200, 100)}
}

// realX11vnc shares the screen of an Xvfb, as one would a laptop's.
func realX11vnc(t *testing.T) server {
	program := testlab.NeedProgram(t, "x11vnc")
	var stopX func()
	display := startX(t, &stopX, testlab.NeedProgram(t, "Xvfb"), "-screen", "0", "200x100x24")
	cmd := exec.Command(program, "-display", display, "-nopw", "-listen", "127.0.0.1", "-autoport", "15900",
		"-noipv6", "-rfbportv6", "-1", "-norc", "-shared", "-forever", "-nodpms", "-quiet")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stop := start(t, cmd)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if port, ok := strings.CutPrefix(lines.Text(), "PORT="); ok {
			go func() { _, _ = io.Copy(io.Discard, out) }() // ends with the program
			return server{net.JoinHostPort("127.0.0.1", port), func(rgb uint32) { paint(t, display, rgb) }, stop, image.Pt(200, 100)}
		}
	}
	t.Fatal("x11vnc told no port")
	return server{}
}

// paint sets the root window to a colour.
func paint(t testing.TB, display string, rgb uint32) {
	t.Helper()
	xgb.Logger.SetOutput(io.Discard) // it reports that there is no authority file
	c, err := xgb.NewConnDisplay(display)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	screen := xproto.Setup(c).DefaultScreen(c)
	err = xproto.ChangeWindowAttributesChecked(c, screen.Root, xproto.CwBackPixel, []uint32{rgb}).Check()
	if err == nil {
		err = xproto.ClearAreaChecked(c, false, screen.Root, 0, 0, 0, 0).Check()
	}
	if err != nil {
		t.Fatal(err)
	}
}
