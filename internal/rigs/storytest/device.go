// Package storytest tests the product's main use on a running appliance, over its
// REST interface only: a device is plugged in, a page is recorded through the
// box, the site is shut down, and the box replays the page over an emulated link,
// drives the device, films it and returns report, logs and video.
//
// In flow the network namespaces of the device and of a person's computer; out flow
// failures of the test. The box may be a process in a third namespace or a booted
// image behind TAPs: the test is the same.
package storytest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv4/nclient4"
	"github.com/vishvananda/netlink"

	"eidetic/internal/rigs/testlab"
	"eidetic/netlab/link/packet"
)

// Place is a network namespace.
type Place interface {
	// Do runs a function in the namespace; sockets and programs that it opens stay there.
	Do(func() error) error
}

// socketsDir is the folder of the X servers' sockets.
const socketsDir = "/tmp/.X11-unix"

// patience bounds a step that ends by itself; tests wait for events, on machines that
// may be busy.
const patience = testlab.Hang

// Device is a computer that shares its screen by VNC and shows nothing but a browser.
type Device struct {
	t      testing.TB
	at     Place
	dir    string
	Lease  *nclient4.Lease
	screen string // its X display
	log    *output

	width, height int
	kiosk         *exec.Cmd // nil while it is switched off
}

// NeedDevice skips the test if the machine lacks a program that a device needs.
func NeedDevice(t testing.TB) {
	t.Helper()
	for _, program := range []string{"chromium", "Xtigervnc", "certutil", "curl", "unshare"} {
		testlab.NeedProgram(t, program)
	}
}

// Plug turns a network namespace, whose interface is its port, into a device. The device
// gets a lease, starts a screen of the given size and, as the documentation tells a
// person to do, runs the box's kiosk script. Everything ends with the test.
func Plug(t testing.TB, at Place, port string, width, height int) *Device {
	t.Helper()
	d := plug(t, at, port, width, height)
	d.SwitchOn()
	return d
}

// SwitchOn starts the kiosk script, as a computer does that logs in by itself.
func (d *Device) SwitchOn() {
	d.t.Helper()
	d.kiosk = d.run(fmt.Sprintf(`curl -fsS --retry 20 --retry-all-errors http://box.test/kiosk.sh | sh -s %d %d`, d.width, d.height))
}

// SwitchOff ends the script and its browser at once.
func (d *Device) SwitchOff() { end(&d.kiosk) }

// Hang stops the script and its browser where they are: the screen keeps its picture, and no key does anything.
func (d *Device) Hang() {
	d.t.Helper()
	if err := syscall.Kill(-d.kiosk.Process.Pid, syscall.SIGSTOP); err != nil {
		d.t.Fatal(err)
	}
}

// plug is Plug without a browser.
func plug(t testing.TB, at Place, port string, width, height int) *Device {
	t.Helper()
	d := &Device{t: t, at: at, dir: testlab.TempDir(t), log: &output{}, width: width, height: height}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the device printed:\n%s", d.log)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := at.Do(func() error { return d.lease(ctx, port) }); err != nil {
		t.Fatalf("the device's address: %v", err)
	}
	d.startScreen(ctx)
	return d
}

// run starts a script on the device. The device has a resolv.conf of its own; other programs of the machine keep
// theirs.
func (d *Device) run(script string) *exec.Cmd {
	d.t.Helper()
	resolver := filepath.Join(d.dir, "resolv.conf")
	if err := os.WriteFile(resolver, []byte("nameserver "+d.Lease.ACK.DNS()[0].String()+"\n"), 0o644); err != nil {
		d.t.Fatal(err)
	}
	script = fmt.Sprintf(`mount --bind '%s' "$(readlink -f /etc/resolv.conf)" && %s`, resolver, script)
	cmd := exec.Command("sh", "-c", script)
	cmd.Env = append(os.Environ(), "DISPLAY="+d.screen, "TMPDIR="+d.dir, "XDG_RUNTIME_DIR="+d.dir,
		"DBUS_SESSION_BUS_ADDRESS=disabled:", "DBUS_SYSTEM_BUS_ADDRESS=disabled:", "http_proxy=", "https_proxy=")
	d.start(cmd)
	return cmd
}

// Display is the device's screen by a name that programs outside it can use: a socket of its own,
// because others may have a screen of the same number.
func (d *Device) Display() string {
	d.t.Helper()
	name := filepath.Join(d.dir, "screen")
	number := strings.TrimPrefix(d.screen, ":")
	if err := os.Symlink(filepath.Join(d.dir, "X11-unix", "X"+number), name+":"+number); err != nil && !errors.Is(err, fs.ErrExist) {
		d.t.Fatal(err)
	}
	return name + ":" + number
}

// lease requests an address by DHCP and assigns it.
func (d *Device) lease(ctx context.Context, port string) error {
	link, err := netlink.LinkByName(port)
	if err != nil {
		return err
	}
	// Duplicate address detection would make the browser see its addresses change
	// during a page load, and drop its connections.
	_ = os.WriteFile("/proc/sys/net/ipv6/conf/"+port+"/accept_dad", []byte("0"), 0o644)
	if err := netlink.LinkSetUp(link); err != nil {
		return err
	}
	// A cable carries segments one by one. The box could not separate segments that a
	// virtual interface has merged.
	if err := packet.DisableOffloads(port); err != nil {
		return err
	}
	for {
		if d.Lease, err = ask(ctx, port); err == nil {
			break
		}
		if ctx.Err() != nil {
			return fmt.Errorf("no DHCP server offered a lease: %w", err)
		}
	}
	ack := d.Lease.ACK
	if len(ack.DNS()) == 0 || len(ack.Router()) == 0 {
		return fmt.Errorf("the lease names no name server or no router: %v", ack)
	}
	address := &net.IPNet{IP: ack.YourIPAddr, Mask: ack.SubnetMask()}
	if err := netlink.AddrReplace(link, &netlink.Addr{IPNet: address}); err != nil {
		return err
	}
	return netlink.RouteReplace(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: ack.Router()[0]})
}

func ask(ctx context.Context, port string) (*nclient4.Lease, error) {
	client, err := nclient4.New(port, nclient4.WithTimeout(time.Second), nclient4.WithRetry(3))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return client.Request(ctx, dhcpv4.WithOption(dhcpv4.OptHostName("laptop")))
}

// startScreen starts an X server that is also a VNC server, on TCP port 5900 of the
// namespace. It accepts every client; only the box can reach it.
func (d *Device) startScreen(ctx context.Context) {
	d.t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		d.t.Fatal(err)
	}
	defer read.Close()
	cmd := exec.Command("Xtigervnc", "-displayfd", "3", "-rfbport", "5900", "-SecurityTypes", "None", "-AlwaysShared",
		"-geometry", fmt.Sprintf("%dx%d", d.width, d.height), "-depth", "24", "-FrameRate", "60", "-s", "0", "-dpms", "-desktop", "laptop")
	cmd.Env = append(os.Environ(), "HOME="+d.dir)
	cmd.ExtraFiles = []*os.File{write}
	d.start(cmd)
	// Without this, filming would start late, when the browser connects.
	_ = syscall.Setpriority(syscall.PRIO_PGRP, cmd.Process.Pid, -10)
	write.Close()
	number := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(read).ReadString('\n') // the check below finds a line that is not a number
		number <- strings.TrimSpace(line)
	}()
	select {
	case n := <-number:
		if _, err := strconv.Atoi(n); err != nil {
			d.t.Fatalf("Xtigervnc did not start: %s", d.log)
		}
		d.screen = ":" + n
	case <-ctx.Done():
		d.t.Fatalf("Xtigervnc did not start: %s", d.log)
	}
}

// start runs a program in the device, with all its descendants, until the test ends or its
// process dies. The program has a PID namespace of its own, so the kernel ends all
// descendants with its first process. It has X sockets of its own, because a kiosk
// without its screen would open its browser on the screen of another test whose
// server has taken the same number.
func (d *Device) start(cmd *exec.Cmd) {
	d.t.Helper()
	sockets := filepath.Join(d.dir, "X11-unix")
	for _, dir := range []string{sockets, socketsDir} {
		if err := os.MkdirAll(dir, 0o1777); err != nil {
			d.t.Fatal(err)
		}
	}
	wrapped := exec.Command("unshare", append([]string{"--mount", "--pid", "--mount-proc", "--kill-child", "sh", "-c",
		`mount --bind "$1" "$2" && shift 2 && exec "$@"`, "sh", sockets, socketsDir}, cmd.Args...)...)
	wrapped.Env, wrapped.ExtraFiles = cmd.Env, cmd.ExtraFiles
	*cmd = *wrapped
	cmd.Stdout, cmd.Stderr = d.log, d.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = time.Second
	// The kernel sends that signal when the thread that started the program ends:
	// Do keeps its thread until the test ends.
	started, over := make(chan error, 1), make(chan struct{})
	d.t.Cleanup(func() { close(over) })
	go func() {
		err := d.at.Do(func() error {
			if err := cmd.Start(); err != nil {
				return err
			}
			started <- nil
			<-over
			return nil
		})
		if err != nil {
			started <- err
		}
	}()
	if err := <-started; err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait() // reports that it was killed
	})
}

// output keeps the output of programs, up to a limit.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.text.Len() < 64<<10 {
		o.text.Write(b)
	}
	return len(b), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
