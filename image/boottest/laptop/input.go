package main

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func sendInput(to string) error {
	conn, err := net.Dial("tcp", to)
	if err != nil {
		return err
	}
	defer conn.Close()
	go func() { // nothing comes back but the connection's end
		_, _ = io.Copy(io.Discard, conn)
		os.Exit(0)
	}()
	fmt.Println("ready")
	return watchInput(conn)
}

// event is one of the kernel's.
type event struct {
	at         time.Duration // of the monotonic clock
	kind, code uint16
	value      uint32
}

func (e event) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(b, e.kind), e.code)
	return binary.BigEndian.AppendUint32(b, e.value)
}

// device is an input device that is open.
type device struct {
	fd   int
	down map[uint16]bool // keys
}

const (
	kindKey       = 1
	eventBytes    = 24         // struct input_event on 64 bits
	eviocsclockid = 0x400445a0 // EVIOCSCLOCKID of linux/input.h
	// settled is how old an event is when no file can still bring an older one.
	settled = 2 * time.Millisecond
	// rescan is how often devices are looked for that were plugged in.
	rescan = 200 * time.Millisecond
)

// watchInput sends on what every input device of the box's gadget does, whenever it is plugged in, in the order in which
// the kernel had it. Keyboard and mouse are files of their own: a machine that stalls finds a click in one of them and a
// key in the other, and the key must not come first.
func watchInput(to io.Writer) error {
	open := map[string]*device{}
	var held []event
	for {
		if err := openNew(open); err != nil {
			return err
		}
		wait := rescan
		if len(held) > 0 {
			wait = settled
		}
		if err := await(open, wait); err != nil {
			return err
		}
		until, err := now()
		if err != nil {
			return err
		}
		for file, d := range open {
			events, gone := d.read()
			held = append(held, events...)
			if !gone {
				continue
			}
			for code, isDown := range d.down { // nobody else releases them
				if isDown {
					held = append(held, event{until - settled, kindKey, code, 0})
				}
			}
			_ = unix.Close(d.fd)
			delete(open, file)
		}
		var due []event
		due, held = inOrder(held, until-settled)
		var b []byte
		for _, e := range due {
			b = e.append(b)
		}
		if _, err := to.Write(b); err != nil {
			return err
		}
	}
}

// inOrder splits events into those up to a time, by their times, and the others.
func inOrder(events []event, until time.Duration) (due, later []event) {
	slices.SortStableFunc(events, func(a, b event) int { return int(a.at - b.at) })
	n := slices.IndexFunc(events, func(e event) bool { return e.at > until })
	if n < 0 {
		n = len(events)
	}
	return events[:n:n], slices.Clone(events[n:])
}

func now() (time.Duration, error) {
	var ts unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return time.Duration(ts.Nano()), err
}

// openNew opens the devices that are new.
func openNew(open map[string]*device) error {
	files, err := filepath.Glob("/dev/input/event*")
	if err != nil {
		return err
	}
	for _, file := range files {
		name, err := os.ReadFile("/sys/class/input/" + filepath.Base(file) + "/device/name")
		if open[file] != nil || err != nil || !strings.HasPrefix(string(name), "Eidetic") {
			continue
		}
		fd, err := unix.Open(file, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			continue // udev makes it still
		}
		if err := unix.IoctlSetPointerInt(fd, eviocsclockid, unix.CLOCK_MONOTONIC); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		open[file] = &device{fd, map[uint16]bool{}}
	}
	return nil
}

// await waits until a device has something to tell.
func await(open map[string]*device, most time.Duration) error {
	var all []unix.PollFd
	for _, d := range open {
		all = append(all, unix.PollFd{Fd: int32(d.fd), Events: unix.POLLIN})
	}
	if _, err := unix.Poll(all, int(most.Milliseconds())); err != nil && err != unix.EINTR {
		return err
	}
	return nil
}

// read reads what there is; gone says that the device was unplugged.
func (d *device) read() (events []event, gone bool) {
	b := make([]byte, 64*eventBytes)
	for {
		n, err := unix.Read(d.fd, b)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return events, err != unix.EAGAIN
		}
		for part := b[:n]; len(part) >= eventBytes; part = part[eventBytes:] {
			seconds, micro := binary.LittleEndian.Uint64(part), binary.LittleEndian.Uint64(part[8:])
			e := event{
				at:   time.Duration(seconds)*time.Second + time.Duration(micro)*time.Microsecond,
				kind: binary.LittleEndian.Uint16(part[16:]), code: binary.LittleEndian.Uint16(part[18:]), value: binary.LittleEndian.Uint32(part[20:]),
			}
			if e.kind == kindKey {
				d.down[e.code] = e.value != 0
			}
			events = append(events, e)
		}
	}
}
