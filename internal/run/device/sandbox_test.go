package device

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/run/isolate"
)

// authority makes a certificate authority for browsers in dir.
func authority(t *testing.T, dir string) (pem string) {
	t.Helper()
	pem = filepath.Join(dir, "ca.pem")
	if out, err := exec.Command(testlab.NeedProgram(t, "openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
		"-nodes", "-keyout", filepath.Join(dir, "k"), "-out", pem, "-subj", "/CN=x", "-days", "3").CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	return pem
}

// workshop is where a test prepares browsers that it starts with the options.
func workshop(o Options, dir, authority string) Workshop {
	return Workshop{Dir: dir, Authority: authority, Namespace: o.Namespace, Sandbox: o.Sandbox}
}

// needSandbox requires that browsers can have their sandbox here.
func needSandbox(t *testing.T, ns *Namespace) {
	t.Helper()
	_, err := isolate.ProbeSandbox(t.Context(), ns.Do)
	testlab.Need(t, err == nil, fmt.Sprintf("the browser's sandbox; %v", err))
}

// confined is what a test of the sandbox starts browsers with.
func confined(t *testing.T) Options {
	t.Helper()
	inside(t)
	ns, err := NewNamespace()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ns.Close)
	needSandbox(t, ns)
	testlab.NeedProgram(t, "Xvfb")
	x, err := StartX(t.Context(), Screen{800, 600}, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.Stop)
	return Options{Namespace: ns, Display: x.Display, Screen: Screen{800, 600}, Sandbox: isolate.SandboxFull}
}

// jailbreak tries what a page would try that had taken a browser over, and prints what succeeds.
const jailbreak = `
try() { name=$1; shift; "$@" >/dev/null 2>&1 && echo "$name"; }
try shadow cat /etc/shadow
try gshadow cat /etc/gshadow
try secret cat "$SECRET"
try out ls "$OUT"
try root ls -A /root
try home ls -A /home
try keys ls /etc/ssh
try first cat /proc/1/cmdline
try parent cat "/proc/$PPID/cmdline"
try environment cat "/proc/$PPID/environ"
for dir in / /usr /usr/bin /etc /sys /dev /proc/sys/kernel /var /opt; do try "write $dir" touch "$dir/x"; done
try disk ls /dev/vda /dev/sda /dev/nvme0n1 /dev/kmsg /dev/mem /dev/tty
try mount mount -t tmpfs x /usr
try remount unshare --user --map-root-user --mount mount -o remount,bind,rw /usr
try chown chown 0 "$HOME"
try kill kill -0 1
try "own home" touch "$HOME/x"
try "own temp" touch /tmp/x
try screen test -S "/tmp/.X11-unix/X${DISPLAY#:}"
echo "user $(id -u) $(id -un) of $(grep -c . /etc/passwd)"
grep -E '^(NoNewPrivs|CapEff|CapPrm|CapAmb):' /proc/self/status | tr -s '\t' ' '
echo end
sleep 1000
`

// A program that is started as a browser is can write to its home and to a /tmp of its own, and
// sees of the machine its programs and settings alone.
func TestConfinedProgram(t *testing.T) {
	o := confined(t)
	dir := testlab.TempDir(t)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	home, err := os.MkdirTemp("", "trial-")
	if err != nil {
		t.Fatal(err)
	}
	b := &Browser{home: home}
	work, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	script := "SECRET='" + secret + "' OUT='" + work + "'" + jailbreak
	if err := b.begin(exec.Command("/bin/sh", "-c", script), "sh", o); err != nil {
		t.Fatal(err)
	}
	defer b.Stop()
	said := await(t, b, func() (string, bool) {
		text := b.process.log.String()
		return text, strings.HasSuffix(text, "end\n")
	})
	const want = "own home\nown temp\nscreen\nuser 1000 browser of 3\nCapPrm: 0000000000000000\nCapEff: 0000000000000000\n" +
		"CapAmb: 0000000000000000\nNoNewPrivs: 1\nend\n"
	if said != want {
		t.Errorf("a confined program could do:\n%s\nwant:\n%s", said, want)
	}
	if uid, _ := status(b.process.cmd.Process.Pid, "Uid:"); slices.Contains(uid, "0") && os.Getuid() == 0 && !userNamespace() {
		t.Errorf("the program's users are %q; want nobody's", uid)
	}
	if _, err := os.Stat("/tmp/x"); err == nil {
		t.Error("the program wrote to the lab's /tmp")
	}
}

// forbidden tries system calls that lead past the namespaces, and says of each whether it is not permitted; without a
// filter these fail in other ways, or succeed.
func forbidden() (script string, names []string) {
	var b strings.Builder
	for _, c := range []struct {
		name string
		call uintptr
		args string
	}{
		{"vsock", unix.SYS_SOCKET, "40, 1, 0"}, {"crypto", unix.SYS_SOCKET, "38, 5, 0"}, {"netfilter", unix.SYS_SOCKET, "16, 3, 12"},
		{"keys", unix.SYS_KEYCTL, "0, -3, 0"}, {"io_uring", unix.SYS_IO_URING_SETUP, "0, 0"}, {"perf", unix.SYS_PERF_EVENT_OPEN, "0, 0, 0, 0, 0"},
		{"trace", unix.SYS_PTRACE, "0, 0, 0, 0"}, {"memory", unix.SYS_PROCESS_VM_READV, "$$, 0, 0, 0, 0, 0"},
		{"handle", unix.SYS_NAME_TO_HANDLE_AT, "-1, 0, 0, 0, 0"}, {"type", unix.SYS_IOCTL, fmt.Sprintf("-1, %d, 0", unix.TIOCSTI)},
		{"x32", 0x40000000 + unix.SYS_GETPID, "0"},
	} {
		names = append(names, c.name)
		fmt.Fprintf(&b, "print '%s ', (syscall(%d, %s) < 0 && $!{EPERM} ? 'no' : qq(yes: $!)), qq(\n);\n", c.name, c.call, c.args)
	}
	for _, family := range []string{"1, 1, 0", "2, 1, 0", "10, 1, 0", "16, 3, 0"} {
		fmt.Fprintf(&b, "syscall(%d, %s) >= 0 || print qq(%s: $!\n);\n", unix.SYS_SOCKET, family, family)
	}
	return "use Errno; $| = 1; " + b.String() + "print qq(end\n); sleep 1000", names
}

// What is confined has the system calls of an ordinary program, and those of its own sandbox.
func TestConfinedSystemCalls(t *testing.T) {
	o := confined(t)
	testlab.Need(t, runtime.GOARCH == "amd64", "an x86-64 machine")
	home, err := os.MkdirTemp("", "trial-")
	if err != nil {
		t.Fatal(err)
	}
	script, names := forbidden()
	b := &Browser{home: home}
	if err := b.begin(exec.Command(testlab.NeedProgram(t, "perl"), "-e", script), "perl", o); err != nil {
		t.Fatal(err)
	}
	defer b.Stop()
	said := await(t, b, func() (string, bool) {
		text := b.process.log.String()
		return text, strings.HasSuffix(text, "end\n")
	})
	if want := strings.Join(names, " no\n") + " no\nend\n"; said != want {
		t.Errorf("a confined program may do:\n%swant:\n%s", said, want)
	}
}

// The kernel counts the processes of what is confined for itself, so that a plan's program cannot fill the machine with
// them.
func TestConfinedProcessesAreCounted(t *testing.T) {
	o := confined(t)
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &was); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: 40, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	defer unix.Setrlimit(unix.RLIMIT_NPROC, &was)
	home, err := os.MkdirTemp("", "trial-")
	if err != nil {
		t.Fatal(err)
	}
	b := &Browser{home: home}
	const forks = "n=0; while [ $n -lt 200 ]; do sleep 1000 & n=$((n+1)); done; echo all"
	if err := b.begin(exec.Command("/bin/sh", "-c", "("+forks+") 2>&1; echo end; sleep 1000"), "sh", o); err != nil {
		t.Fatal(err)
	}
	defer b.Stop()
	said := await(t, b, func() (string, bool) {
		text := b.process.log.String()
		return text, strings.HasSuffix(text, "end\n")
	})
	if strings.Contains(said, "all") || !strings.Contains(said, "fork") {
		t.Errorf("a confined program that starts 200 processes, of 40 that it may have, says %q; want that it cannot", said)
	}
}

// await calls got until it succeeds, the browser ends, or the test hangs.
func await(t *testing.T, b *Browser, got func() (string, bool)) string {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(testlab.Hang)
	for {
		text, ok := got()
		if ok {
			return text
		}
		select {
		case <-tick.C:
		case <-b.Done():
			t.Fatalf("%v\n%s", b.Err(), b.process.log)
		case <-deadline:
			t.Fatalf("still %q\n%s", text, b.process.log)
		}
	}
}

// status returns the values of a field in /proc/PID/status.
func status(pid int, field string) ([]string, bool) {
	for _, line := range lines(filepath.Join("/proc", strconv.Itoa(pid), "status")) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == field {
			return words[1:], true
		}
	}
	return nil, false
}

// The processes that work for pages have a system call filter, and no process of the browser is
// root's for the machine.
func TestPagesAreSandboxed(t *testing.T) {
	o := confined(t)
	dir := testlab.TempDir(t)
	pem := authority(t, dir)
	for _, c := range []struct{ name, program, page string }{
		{lab.Chromium, "chromium", "--type=renderer"},
		{lab.Firefox, "firefox-esr", "-contentproc"},
	} {
		t.Run(c.name, func(t *testing.T) {
			testlab.NeedProgram(t, c.program)
			program, err := OpenBrowser(t.Context(), workshop(o, dir, pem), &lab.Browser{Name: c.name})
			if err != nil {
				t.Fatal(err)
			}
			o.URL = "data:text/html,<title>x</title>y"
			b, err := program.Start(o)
			if err != nil {
				t.Fatal(err)
			}
			defer b.Stop()
			await(t, b, func() (string, bool) { return filtered(c.page) })
			if uid, _ := status(b.process.cmd.Process.Pid, "Uid:"); os.Getuid() == 0 && !userNamespace() && !slices.Equal(uid, []string{"65534", "65534", "65534", "65534"}) {
				t.Errorf("the browser's users are %q; want nobody's", uid)
			}
			if len(MainThreads()) == 0 {
				t.Error("MainThreads() sees no process of the browser")
			}
			if c.name == lab.Chromium { // it leaves a minidump
				if why := b.Crashed(); why != "" {
					t.Errorf("Crashed() = %q before a process crashes; want none", why)
				}
				fault(t, b, c.page)
				await(t, b, func() (string, bool) { return "", b.Crashed() != "" })
			}
		})
	}
}

// filtered reports whether there is a process for a page, by a word of its command line, and
// whether each of them has a system call filter.
func filtered(word string) (found string, all bool) {
	commands, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range commands {
		command, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(command, []byte(word)) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			continue
		}
		if mode, ok := status(pid, "Seccomp:"); ok {
			found += fmt.Sprintf("process %d: Seccomp %v; ", pid, mode)
		}
	}
	return found, strings.Contains(found, "Seccomp [2]")
}

// fault ends the processes of a browser that have a word in their command as a fault of theirs does.
func fault(t *testing.T, b *Browser, word string) {
	t.Helper()
	all := processes("/proc")
	for pid := range all {
		command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil || !bytes.Contains(command, []byte(word)) || !descends(all, pid, b.process.cmd.Process.Pid) {
			continue
		}
		if err := syscall.Kill(pid, syscall.SIGSEGV); err != nil {
			t.Error(err)
		}
	}
}

// A page of the browser shows no file that the sandbox hides, and one that it does not hide.
func TestFilesThatPagesShow(t *testing.T) {
	o := confined(t)
	dir := testlab.TempDir(t)
	secret := filepath.Join(dir, "secret.txt")
	if err := errors.Join(os.WriteFile(secret, []byte("root:secret:"), 0o644), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	testlab.NeedProgram(t, "chromium")
	c, err := NewChromium(t.Context(), workshop(o, dir, authority(t, dir)))
	if err != nil {
		t.Fatal(err)
	}
	o.Extra = []string{"--headless=new", "--dump-dom"}
	for file, shown := range map[string]string{"/etc/os-release": "PRETTY_NAME", "/etc/shadow": "Page load failed", secret: "Page load failed"} {
		o.URL = "file://" + file
		b, err := c.Start(o)
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-b.Done():
		case <-time.After(testlab.Hang):
			t.Error("the browser did not print the page")
		}
		text := b.process.log.String()
		if !strings.Contains(text, shown) || strings.Contains(text, "root:") {
			t.Errorf("%s shows %q; want %q", o.URL, text, shown)
		}
		if err := b.Stop(); err != nil {
			t.Error(err)
		}
	}
}

// A machine that refuses the sandbox is told apart from one that allows a part of it.
func TestRefusedSandbox(t *testing.T) {
	inside(t)
	ns, err := NewNamespace()
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	needSandbox(t, ns)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "unshare"), []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	never := func(func() error) error { return errors.New("operation not permitted") }
	for _, c := range []struct {
		name string
		on   isolate.Thread
		path string
		want isolate.Sandbox
	}{
		{"no user namespaces", never, os.Getenv("PATH"), isolate.SandboxNone},
		{"none in the sandbox", ns.Do, dir + ":" + os.Getenv("PATH"), isolate.SandboxOurs},
		{"full", ns.Do, os.Getenv("PATH"), isolate.SandboxFull},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("PATH", c.path)
			got, err := isolate.ProbeSandbox(t.Context(), c.on)
			var refusal *isolate.Refusal
			if got != c.want || errors.As(err, &refusal) != (c.want != isolate.SandboxFull) {
				t.Errorf("ProbeSandbox() = %v, %v; want %v", got, err, c.want)
			}
			if err != nil && !strings.Contains(err.Error(), "--no-sandbox") {
				t.Errorf("the refusal is %q; want the flag that goes on without", err)
			}
		})
	}
}

// A virtual device takes the whole sandbox, unless a person says that it is to do without the
// browser's own.
func TestVirtualDeviceChoosesTheSandbox(t *testing.T) {
	confined(t) // the needs
	for _, c := range []struct {
		noSandbox bool
		want      isolate.Sandbox
	}{{false, isolate.SandboxFull}, {true, isolate.SandboxOurs}} {
		ctx, cancel := context.WithTimeout(t.Context(), testlab.Hang)
		v, err := NewVirtual(ctx, Screen{640, 480}, c.noSandbox, false)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		if v.Sandbox != c.want {
			t.Errorf("with noSandbox = %v the sandbox is %v; want %v", c.noSandbox, v.Sandbox, c.want)
		}
		off := slices.Contains(flags("/p", Options{Sandbox: v.Sandbox}), "--no-sandbox")
		if off != c.noSandbox {
			t.Errorf("with noSandbox = %v Chromium is told --no-sandbox: %v", c.noSandbox, off)
		}
		v.Close()
		for _, name := range []string{DevicePort, BoxPort} {
			_ = Unplug(name) // it may have gone with the device's namespace
		}
	}
}
