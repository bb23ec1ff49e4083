// Package boottest boots the box's image in a virtual machine and gives tests
// its network, its serial consoles, its disk and its power switch.
//
// In flow a raw disk image, usually of the test build; out flow a running
// machine whose ports end in network namespaces of the test, the output of
// commands run on it, and the times at which it became ready. It runs under
// QEMU's software emulation (no KVM), with OVMF as the firmware, on any
// x86-64 machine and as root, because it makes namespaces.
//
// Nothing of it touches the machine's own network: every port is a TAP inside
// a namespace that has no other interface.
package boottest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"eidetic/image/fat"
)

const (
	firmwareCode = "/usr/share/OVMF/OVMF_CODE_4M.fd"
	firmwareVars = "/usr/share/OVMF/OVMF_VARS_4M.fd"
)

// Options say what machine to make.
type Options struct {
	Disk   string // raw image; it is copied, never changed
	Size   int64  // of the machine's disk in bytes; at least that of the image
	Memory int    // MiB; 2048 when 0
	Ports  []*Port
}

// Machine is a virtual machine. It survives its power: Boot starts it again
// with the disk as it was left.
type Machine struct {
	dir     string
	options Options
	process *exec.Cmd
	ended   chan error
	started time.Time

	// QMP is the machine's control connection, Shell its root console (the
	// test build only).
	QMP   *QMP
	Shell *Shell
}

// New makes a machine in dir, an empty folder for its disk and sockets, and leaves it off.
func New(dir string, o Options) (*Machine, error) {
	if o.Memory == 0 {
		o.Memory = 2048
	}
	m := &Machine{dir: dir, options: o}
	if err := copySparse(m.path("disk.img"), o.Disk); err != nil {
		return nil, fmt.Errorf("machine: copy the image: %w (make image-test makes it)", err)
	}
	if o.Size > 0 {
		if err := os.Truncate(m.path("disk.img"), o.Size); err != nil {
			return nil, fmt.Errorf("machine: %w", err)
		}
	}
	if err := copySparse(m.path("vars.fd"), firmwareVars); err != nil {
		return nil, fmt.Errorf("machine: firmware: %w", err)
	}
	return m, nil
}

func (m *Machine) path(name string) string { return filepath.Join(m.dir, name) }

// Disk is the file that is the machine's disk. Change it only while it is off.
func (m *Machine) Disk() string { return m.path("disk.img") }

// Boot switches the machine on.
func (m *Machine) Boot(ctx context.Context) error {
	if m.process != nil {
		return errors.New("machine: it is on already")
	}
	args := []string{
		"-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2",
		"-m", strconv.Itoa(m.options.Memory), "-display", "none", "-nodefaults",
		"-drive", "if=pflash,format=raw,readonly=on,file=" + firmwareCode,
		"-drive", "if=pflash,format=raw,file=" + m.path("vars.fd"),
		"-drive", "if=none,id=disk,format=raw,cache=writeback,file=" + m.Disk(),
		"-device", "virtio-blk-pci,drive=disk,bootindex=1",
		"-device", "virtio-rng-pci", "-device", "qemu-xhci",
		"-device", "i6300esb", "-action", "watchdog=reset",
		"-serial", "file:" + m.path("console.log"),
		"-chardev", "socket,id=shell,path=" + m.path("shell.sock") + ",server=on,wait=off",
		"-device", "isa-serial,chardev=shell,index=1",
		"-qmp", "unix:" + m.path("qmp.sock") + ",server=on,wait=off",
	}
	var files []*os.File
	for i, p := range m.options.Ports {
		files = append(files, p.tap)
		args = append(args,
			"-netdev", fmt.Sprintf("tap,id=net%d,fd=%d", i, 3+i),
			// A name that follows from the slot: enp<slot>s0 behind no bridge is ens<slot> or enp0s<slot>.
			"-device", fmt.Sprintf("virtio-net-pci,id=nic%d,netdev=net%d,mac=%s,addr=%#x,romfile=", i, i, p.MAC, 16+i))
	}
	log, err := os.Create(m.path("qemu.log"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	m.process = exec.Command("qemu-system-x86_64", args...)
	m.process.ExtraFiles = files
	m.process.Stdout, m.process.Stderr = log, log
	for _, stale := range []string{"shell.sock", "qmp.sock"} {
		_ = os.Remove(m.path(stale))
	}
	m.started = time.Now()
	m.ended = make(chan error, 1)
	if err := startWithUs(m.process, m.ended); err != nil {
		m.process = nil
		return fmt.Errorf("machine: %w", err)
	}
	if m.QMP, err = dialQMP(ctx, m.path("qmp.sock")); err == nil {
		m.Shell, err = dialShell(ctx, m.path("shell.sock"))
	}
	if err != nil {
		_ = m.CutPower()
		text, _ := os.ReadFile(m.path("qemu.log"))
		return fmt.Errorf("machine: %w: %s", err, bytes.TrimSpace(text))
	}
	return nil
}

// startWithUs starts a process that dies when this one does, however it ends,
// and tells ended when it has. The kernel ties the child to the thread that
// made it, so that thread waits for it.
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

// CutPower ends the machine at once. What it had not yet written to its disk is lost.
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
	err := m.process.Process.Kill()
	<-m.ended
	m.process, m.QMP, m.Shell = nil, nil, nil
	return err
}

// Off waits until the machine has switched itself off.
func (m *Machine) Off(ctx context.Context) error {
	if m.process == nil {
		return nil
	}
	select {
	case <-m.ended:
		m.process, m.QMP, m.Shell = nil, nil, nil
		return nil
	case <-ctx.Done():
		return fmt.Errorf("machine: still on: %w", ctx.Err())
	}
}

// Console returns what the machine wrote to its first serial port.
func (m *Machine) Console() string {
	text, err := os.ReadFile(m.path("console.log"))
	if err != nil {
		return ""
	}
	return strings.ToValidUTF8(string(text), "?")
}

// copySparse copies a file and leaves its holes holes.
func copySparse(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }()
	if err := out.Truncate(info.Size()); err != nil {
		return err
	}
	block, zero := make([]byte, 1<<16), make([]byte, 1<<16)
	for at := int64(0); ; {
		n, err := io.ReadFull(in, block)
		if n > 0 && !bytes.Equal(block[:n], zero[:n]) {
			if _, err := out.WriteAt(block[:n], at); err != nil {
				return err
			}
		}
		at += int64(n)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return out.Close()
		}
		if err != nil {
			return err
		}
	}
}

// espOffset is where systemd-repart puts the first partition.
const espOffset = 1 << 20

// ESP lets f change the EFI partition of a machine that is off.
func (m *Machine) ESP(f func(*fat.Volume) error) error {
	if m.process != nil {
		return errors.New("machine: it is on, and its firmware may write to the EFI partition")
	}
	disk, err := os.OpenFile(m.Disk(), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = disk.Close() }()
	v, err := fat.Open(partition{disk})
	if err != nil {
		return err
	}
	if err := f(v); err != nil {
		return err
	}
	return disk.Close()
}

// partition is the first partition of a disk image.
type partition struct{ disk *os.File }

func (p partition) ReadAt(b []byte, off int64) (int, error)  { return p.disk.ReadAt(b, off+espOffset) }
func (p partition) WriteAt(b []byte, off int64) (int, error) { return p.disk.WriteAt(b, off+espOffset) }
func (p partition) Sync() error                              { return p.disk.Sync() }
