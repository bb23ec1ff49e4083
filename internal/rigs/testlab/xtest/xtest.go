// Package xtest starts X servers for tests. In flow the program and its
// arguments; out flow the display that the server chose and, after a failure, the
// server's output and the windows on its screen.
//
// X servers accept clients through /tmp, which all programs of a machine share,
// and take the first free display number. A browser with DISPLAY=:0 that an earlier,
// killed test left behind, and that is restarted again and again, would therefore
// cover the screen of the next test. So these servers
// require a cookie (MIT-MAGIC-COOKIE-1, X Window System Protocol 11, chapter 8;
// libXau's file format), which only the test's own process passes on: see Main.
package xtest

import (
	"bufio"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"eidetic/internal/rigs/testlab"
)

const variable = "XAUTHORITY"

// Main creates a cookie and puts it where X clients look for it; call it from TestMain
// before the tests run. All servers of the process and all clients that it starts
// share the cookie. It is in memory, so a killed process leaves no file behind.
func Main() {
	fd, err := unix.MemfdCreate("xauthority", unix.MFD_CLOEXEC)
	if err == nil {
		_, err = unix.Write(fd, authority())
	}
	if err == nil {
		err = os.Setenv(variable, fmt.Sprintf("%s%d", descriptors(), fd))
	}
	if err != nil {
		panic("the cookie of the tests' X servers: " + err.Error())
	}
}

// descriptors is the path of this process's open files, for programs that it starts.
func descriptors() string { return fmt.Sprintf("/proc/%d/fd/", os.Getpid()) }

// authority is a file with one cookie for any display of any host.
func authority() []byte {
	const wild = 65535
	cookie := make([]byte, 16)
	_, _ = rand.Read(cookie) // never fails
	return entry(wild, "", "", string(cookie))
}

func entry(family uint16, address, number, cookie string) []byte {
	b := binary.BigEndian.AppendUint16(nil, family)
	for _, field := range []string{address, number, "MIT-MAGIC-COOKIE-1", cookie} {
		b = binary.BigEndian.AppendUint16(b, uint16(len(field)))
		b = append(b, field...)
	}
	return b
}

// File writes an authority file for one display, for a client that does not accept an
// entry for all displays, and returns its path.
func File(t testing.TB, display string) string {
	t.Helper()
	const local, length = 256, 16
	all, err := os.ReadFile(os.Getenv(variable))
	if err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "xauthority")
	if err := os.WriteFile(path, entry(local, host, strings.TrimPrefix(display, ":"), string(all[len(all)-length:])), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Server is an X server.
type Server struct {
	Display string // ":7"
	Process *os.Process
	Stop    func() // ends it before the test does
}

// Start starts an X server that refuses clients without the tests' cookie; it
// chooses its display's number itself, and ends with the test.
func Start(t testing.TB, program string, args ...string) Server {
	t.Helper()
	file := os.Getenv(variable)
	if !strings.HasPrefix(file, descriptors()) {
		t.Fatal("this package's TestMain must call xtest.Main before tests can start an X server")
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := exec.Command(program, append([]string{"-displayfd", "3", "-nolisten", "tcp", "-noreset", "-auth", file}, args...)...)
	cmd.ExtraFiles = []*os.File{w}
	display := ""
	t.Cleanup(func() { // runs after the program has ended
		if t.Failed() {
			t.Log(machine())
		}
	})
	stop := run(t, cmd, syscall.SIGTERM) // a killed server would leave its sockets
	t.Cleanup(func() {                   // runs before the program is ended
		if t.Failed() && display != "" {
			t.Log(windows(display))
		}
	})
	w.Close()
	number, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatalf("%s did not start: %v", program, err)
	}
	display = ":" + strings.TrimSpace(number)
	return Server{display, cmd.Process, stop}
}

// Run runs a program until the test ends or its process dies, and logs the program's
// output after a failure; the returned function ends the program earlier. Run kills the
// program, so it must be one that leaves nothing behind when it is killed.
func Run(t testing.TB, cmd *exec.Cmd) (stop func()) {
	t.Helper()
	return run(t, cmd, syscall.SIGKILL)
}

// run ends the program with a signal.
func run(t testing.TB, cmd *exec.Cmd, end syscall.Signal) (stop func()) {
	t.Helper()
	cmd.Dir = t.TempDir()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: end}
	if err := testlab.Start(t, cmd); err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		const patience = 20 * time.Second // a machine may be busy
		_ = cmd.Process.Signal(end)
		_ = cmd.Process.Signal(syscall.SIGCONT) // a test may have stopped it
		kill := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		kill.Stop()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("%s printed:\n%s", strings.Join(cmd.Args, " "), text)
		}
	})
	t.Cleanup(stop)
	return stop
}
