// Package boottest boots the box's image in a virtual machine and gives tests
// its network, its serial consoles, its disks and its power switch.
//
// In flow a raw disk image, usually of the test build; out flow a running
// machine whose ports end in network namespaces of the test, the output of
// commands and tests run on it, and the times at which it became ready. It runs
// under QEMU's software emulation (no KVM), with OVMF as the firmware, on any
// x86-64 machine and as root, because it makes namespaces. Nothing of it
// touches the machine's own network: every port is a TAP inside a namespace
// that has no other interface.
//
// To try something on the booted box, add a line to cases in box_test.go and a
// function beside it, in a file of its own:
//
//	{"grabber", "", testGrabber},
//
//	func testGrabber(t *testing.T, b *Box) {
//		b.Run(t, "modprobe vivid n_devs=1")               // a line of bash, as root
//		b.Test(t, "./capture/v4l2", "TestVivid")          // go test, there
//		appliance := b.Build(t, "./cmd/appliance")        // the present source, not the image's
//		b.Run(t, appliance+" capture --help")
//		b.Until(t, "modprobe -r vivid")                   // leave the box as it was
//	}
//
// Box.Test compiles the package with the build tag guest, so tests that need
// what only the box has start with "//go:build guest" and are no part of a
// usual go test. They run as root with the package's testdata, REQUIRE_ALL=1 and
// the box's programs. In the namespaces behind the box's ports, Port.Start
// starts programs, Port.Do runs Go code and Port.Client speaks HTTP. A case that
// restarts the box or changes its disk is one of updateCases, restartCases or lifeCases.
//
// Cases run on a HealthyBox, which goes on from a machine that was booted and saved once.
//
//	make image-test                                       # once, and when image/ or the binary in it changes
//	go test -count 1 -v -run 'TestBoxes/cases/grabber' ./image/boottest
package boottest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	firmwareCode = "/usr/share/OVMF/OVMF_CODE_4M.fd"
	firmwareVars = "/usr/share/OVMF/OVMF_VARS_4M.fd"
	// The files of a machine in its folder: its disk, its firmware's settings, what it wrote to its first serial
	// port, and, of a saved one, its memory and the state of its devices as QEMU migrates them.
	diskFile    = "disk.img"
	varsFile    = "vars.fd"
	consoleFile = "console.log"
	memoryFile  = "memory"
)

// Options describe the machine to create.
type Options struct {
	Disk   string // raw image; it is copied, never changed
	Size   int64  // of the machine's disk in bytes; at least that of the image
	Second int64  // size in bytes of a second, empty disk; none when 0
	Memory int    // MiB; 2048 when 0
	Ports  []*Port
	Spare  []*Port // network cards that are not plugged in: PlugNIC does that
	Saved  string  // folder that Save wrote, from which the machine goes on; Disk and Size are not used then
}

// Machine is a virtual machine. It outlives a power cut: Boot starts it again
// with the disk as the cut left it.
type Machine struct {
	dir     string
	options Options
	process *exec.Cmd
	ended   chan error
	started time.Time
	used    time.Duration // of processors, before it was last switched off
	saved   string        // what Save wrote, until the machine has gone on from it

	// QMP is the machine's control connection, Shell its root console (the
	// test build only).
	QMP   *QMP
	Shell *Shell
}

// New creates a machine in dir, an empty folder for its disk and sockets, and leaves it switched off.
func New(dir string, o Options) (*Machine, error) {
	m := &Machine{dir: dir, options: o, saved: o.Saved}
	vars := firmwareVars
	if o.Saved != "" {
		o.Disk, vars, o.Size = filepath.Join(o.Saved, diskFile), filepath.Join(o.Saved, varsFile), 0
	}
	if err := copySparse(m.Disk(), o.Disk); err != nil {
		return nil, fmt.Errorf("machine: copy the image: %w (make image-test makes it)", err)
	}
	if o.Size > 0 {
		if err := os.Truncate(m.Disk(), o.Size); err != nil {
			return nil, fmt.Errorf("machine: %w", err)
		}
	}
	if o.Second > 0 {
		if err := os.WriteFile(m.SecondDisk(), nil, 0o600); err != nil {
			return nil, fmt.Errorf("machine: %w", err)
		}
		if err := os.Truncate(m.SecondDisk(), o.Second); err != nil {
			return nil, fmt.Errorf("machine: %w", err)
		}
	}
	if err := copySparse(m.path(varsFile), vars); err != nil {
		return nil, fmt.Errorf("machine: firmware: %w", err)
	}
	return m, nil
}

func (m *Machine) path(name string) string { return filepath.Join(m.dir, name) }

// Disk is the file that is the machine's disk. Change it only while it is off.
func (m *Machine) Disk() string { return m.path(diskFile) }

// SecondDisk is the file that is the machine's second disk, if it has one.
func (m *Machine) SecondDisk() string { return m.path("second.img") }

// Boot switches the machine on. It returns before the machine is up; one that was saved goes on at once,
// the first time, with the clock of the time at which it was saved.
func (m *Machine) Boot(ctx context.Context) error {
	if m.process != nil {
		return errors.New("machine: it is already switched on")
	}
	args, files := m.arguments()
	for _, stale := range []string{"shell.sock", "qmp.sock", "console.sock", consoleFile} {
		_ = os.Remove(m.path(stale))
	}
	if m.saved != "" {
		if err := copySparse(m.path(consoleFile), filepath.Join(m.saved, consoleFile)); err != nil {
			return fmt.Errorf("machine: %w", err)
		}
		args = append(args, "-incoming", "exec:cat "+shellQuote(filepath.Join(m.saved, memoryFile)))
	}
	log, err := os.Create(m.path("qemu.log"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	m.process = exec.Command("qemu-system-x86_64", args...)
	m.process.ExtraFiles = files
	m.process.Stdout, m.process.Stderr = log, log
	m.started = time.Now()
	m.ended = make(chan error, 1)
	if err := startWithUs(m.process, m.ended); err != nil {
		m.process = nil
		return fmt.Errorf("machine: %w", err)
	}
	if m.QMP, err = dialQMP(ctx, m.path("qmp.sock")); err == nil {
		m.Shell, err = dialShell(ctx, m.path("shell.sock"))
	}
	if err == nil && m.saved != "" {
		err = m.goOn(ctx)
		m.saved = ""
	}
	if err != nil {
		_ = m.CutPower()
		text, _ := os.ReadFile(m.path("qemu.log"))
		return fmt.Errorf("machine: %w: %s", err, bytes.TrimSpace(text))
	}
	return nil
}

// arguments returns QEMU's command line, and the files that QEMU inherits.
func (m *Machine) arguments() (args []string, files []*os.File) {
	args = []string{
		"-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2",
		"-m", strconv.Itoa(cmp.Or(m.options.Memory, 2048)), "-display", "none", "-nodefaults", "-device", "VGA",
		"-drive", "if=pflash,format=raw,readonly=on,file=" + firmwareCode,
		"-drive", "if=pflash,format=raw,file=" + m.path(varsFile),
		"-drive", "if=none,id=disk,format=raw,cache=writeback,file=" + m.Disk(),
		"-device", "virtio-blk-pci,drive=disk,bootindex=1",
		"-device", "virtio-rng-pci", "-device", "qemu-xhci,id=usb",
		"-device", "i6300esb", "-action", "watchdog=reset",
		"-chardev", "socket,id=console,path=" + m.path("console.sock") + ",server=on,wait=off,logappend=on,logfile=" + m.path(consoleFile),
		"-serial", "chardev:console",
		"-chardev", "socket,id=shell,path=" + m.path("shell.sock") + ",server=on,wait=off",
		"-device", "isa-serial,chardev=shell,index=1",
		"-qmp", "unix:" + m.path("qmp.sock") + ",server=on,wait=off",
	}
	if m.options.Second > 0 {
		args = append(args,
			"-drive", "if=none,id=second,format=raw,cache=writeback,file="+m.SecondDisk(),
			"-device", "virtio-blk-pci,drive=second")
	}
	for i, p := range append(slices.Clone(m.options.Ports), m.options.Spare...) {
		files = append(files, p.tap)
		args = append(args, "-netdev", fmt.Sprintf("tap,id=net%d,fd=%d", i, 3+i))
		if i < len(m.options.Ports) {
			// The port's name on the box follows from the slot: enp0s16, enp0s17, …
			args = append(args, "-device", fmt.Sprintf("virtio-net-pci,id=nic%d,netdev=net%d,mac=%s,addr=%#x,romfile=", i, i, p.MAC, 16+i))
		} else {
			args = append(args, "-device", fmt.Sprintf("pcie-root-port,id=slot%d,chassis=%d,addr=%#x", i, i, 16+i))
		}
	}
	return args, files
}

// PlugNIC plugs in the network card of the n-th spare port, counted from 0.
func (m *Machine) PlugNIC(ctx context.Context, n int) error {
	i := len(m.options.Ports) + n
	_, err := m.QMP.Do(ctx, "device_add", map[string]any{
		"driver": "virtio-net-pci", "id": fmt.Sprintf("nic%d", i), "netdev": fmt.Sprintf("net%d", i),
		"bus": fmt.Sprintf("slot%d", i), "mac": m.options.Spare[n].MAC, "romfile": "",
	})
	return err
}

// UnplugNIC removes that network card, and returns when the guest has released it.
func (m *Machine) UnplugNIC(ctx context.Context, n int) error {
	_, err := m.QMP.Do(ctx, "device_del", map[string]any{"id": fmt.Sprintf("nic%d", len(m.options.Ports)+n)})
	if err != nil {
		return err
	}
	return m.QMP.Wait(ctx, "DEVICE_DELETED")
}

// startWithUs starts a process that dies when this process does, however this one ends,
// and reports the process's end on ended. The kernel ties the child to the thread that
// started it, so that thread waits for the child.
func startWithUs(process *exec.Cmd, ended chan<- error) error {
	process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := process.Start()
		started <- err
		if err == nil {
			ended <- process.Wait()
		}
	}()
	return <-started
}

// Since returns the time since the machine was switched on.
func (m *Machine) Since() time.Duration { return time.Since(m.started) }

// ClockTick is the unit of /proc's processor times on Linux for x86-64.
const ClockTick = 10 * time.Millisecond

// CPU returns the processor time that the machine has used since it was made
// (utime and stime of proc(5)).
func (m *Machine) CPU() time.Duration {
	if m.process == nil {
		return m.used
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", m.process.Process.Pid))
	if err != nil {
		return m.used
	}
	_, fields, _ := strings.Cut(string(text), ") ") // after the name, which may contain spaces
	var user, system int64
	if all := strings.Fields(fields); len(all) > 12 {
		_, _ = fmt.Sscan(all[11]+" "+all[12], &user, &system)
	}
	return m.used + time.Duration(user+system)*ClockTick
}

// CutPower ends the machine at once. Data that it had not yet written to its disk is lost.
func (m *Machine) CutPower() error {
	if m.process == nil {
		return nil
	}
	if m.QMP != nil {
		m.QMP.close()
	}
	if m.Shell != nil {
		m.Shell.close()
	}
	m.used = m.CPU()
	err := m.process.Process.Kill()
	<-m.ended
	m.process, m.QMP, m.Shell = nil, nil, nil
	return err
}

// Console returns what the machine wrote to its first serial port.
func (m *Machine) Console() string {
	text, err := os.ReadFile(m.path(consoleFile))
	if err != nil {
		return ""
	}
	return strings.ToValidUTF8(string(text), "?")
}

// Type types text at the first serial port, as a person at the console would.
func (m *Machine) Type(ctx context.Context, text string) error {
	conn, err := dialUnix(ctx, m.path("console.sock"))
	if err != nil {
		return fmt.Errorf("console: %w", err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write([]byte(text)); err != nil {
		return fmt.Errorf("console: %w", err)
	}
	// The machine's echo shows that it has read everything; the log contains the echo too.
	if err := conn.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, conn)
	return nil
}

// Screenshot writes what is on the machine's screen to a PNG file.
func (m *Machine) Screenshot(ctx context.Context, file string) error {
	_, err := m.QMP.Do(ctx, "screendump", map[string]any{"filename": file, "format": "png"})
	return err
}

// PlugStick plugs in a USB stick, whose content is the raw image file.
func (m *Machine) PlugStick(ctx context.Context, file string) error {
	if _, err := m.QMP.Do(ctx, "blockdev-add", map[string]any{
		"node-name": "stick", "driver": "raw", "read-only": true,
		"file": map[string]any{"driver": "file", "filename": file},
	}); err != nil {
		return err
	}
	_, err := m.QMP.Do(ctx, "device_add", map[string]any{"driver": "usb-storage", "id": "stick", "drive": "stick", "bus": "usb.0"})
	return err
}
