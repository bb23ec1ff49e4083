package hidtest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// InputEvent is an event of an input device of the kernel.
type InputEvent struct {
	At         lab.Time // when the kernel got it
	Kind, Code uint16
	Value      int32
}

// Kinds of events and their codes, of linux/input-event-codes.h.
const (
	KindSync, KindKey, KindRelative, KindAbsolute = 0, 1, 2, 3
	kindLight                                     = 0x11
	CodeWheel, CodePan                            = 8, 6
	CodeX, CodeY                                  = 0, 1
	CodeTouchX, CodeTouchY, CodeTouchID           = 0x35, 0x36, 0x39
	CodeLeft, CodeRight, CodeMiddle               = 0x110, 0x111, 0x112
	codeCapsLock, codeCapsLight                   = 58, 1
)

// Input is an input device of this machine's kernel, grabbed so that nothing else gets its events.
type Input struct {
	Name string
	t    testing.TB
	file *os.File
	rest []byte
	// mayEnd allows the device to vanish; ended says that it did.
	mayEnd, ended bool
}

// Ioctls of linux/input.h.
const (
	eviocgrab     = 0x40044590
	eviocsclockid = 0x400445a0
)

// OpenInput waits for the input device whose name contains one text and whose files in sysfs
// have the capability of another ("abs", "rel", "led"; "" is any), and grabs it.
func OpenInput(t testing.TB, name, capability string) *Input {
	t.Helper()
	for deadline := time.Now().Add(testlab.Hang); time.Now().Before(deadline); <-time.After(20 * time.Millisecond) {
		names, err := filepath.Glob("/sys/class/input/event*/device/name")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range names {
			text, err := os.ReadFile(file)
			if err != nil || !strings.Contains(string(text), name) || !capable(filepath.Dir(file), capability) {
				continue
			}
			if in, err := openInput(t, "/dev/input/"+filepath.Base(filepath.Dir(filepath.Dir(file))), strings.TrimSpace(string(text))); err == nil {
				return in
			}
		}
	}
	t.Fatalf("the kernel has no input device %q that is capable of %s", name, capability)
	return nil
}

// capable says whether a device has a bit set in a capability, besides those of every device.
func capable(device, capability string) bool {
	if capability == "" {
		return true
	}
	b, err := os.ReadFile(filepath.Join(device, "capabilities", capability))
	return err == nil && strings.Trim(string(b), " 0\n") != ""
}

func openInput(t testing.TB, path, name string) (*Input, error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.IoctlSetPointerInt(fd, eviocsclockid, unix.CLOCK_MONOTONIC); err != nil {
		unix.Close(fd)
		return nil, err
	}
	if err := unix.IoctlSetInt(fd, eviocgrab, 1); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("grab %s: %w", path, err)
	}
	in := &Input{Name: name, t: t, file: os.NewFile(uintptr(fd), path)}
	t.Cleanup(func() { in.file.Close() })
	return in, nil
}

// eventBytes is the length of struct input_event on a 64-bit machine.
const eventBytes = 24

// Next returns the next event that is no synchronisation.
func (in *Input) Next() InputEvent {
	in.t.Helper()
	for {
		for len(in.rest) >= eventBytes {
			b := in.rest[:eventBytes]
			in.rest = in.rest[eventBytes:]
			order := binary.NativeEndian
			e := InputEvent{
				At:   lab.Time(int64(order.Uint64(b))*1e9 + int64(order.Uint64(b[8:]))*1e3),
				Kind: order.Uint16(b[16:]), Code: order.Uint16(b[18:]), Value: int32(order.Uint32(b[20:])),
			}
			if e.Kind == KindKey || e.Kind == KindRelative || e.Kind == KindAbsolute {
				return e
			}
		}
		if err := in.file.SetReadDeadline(time.Now().Add(testlab.Hang)); err != nil {
			in.t.Fatal(err)
		}
		buffer := make([]byte, 64*eventBytes)
		n, err := in.file.Read(buffer)
		if in.mayEnd && errors.Is(err, unix.ENODEV) {
			in.ended = true
			return InputEvent{}
		}
		if err != nil {
			in.t.Fatalf("%s: %v", in.Name, err)
		}
		in.rest = append(in.rest, buffer[:n]...)
	}
}

// AnswerCapsLock switches the keyboard's light at each press of Caps Lock, as the program does that has the
// keyboard, until the test ends. Nothing else may read its events then.
func (in *Input) AnswerCapsLock() {
	go func() {
		on := false
		b := make([]byte, 64*eventBytes)
		for {
			n, err := in.file.Read(b)
			if err != nil {
				return // the test has ended, or the keyboard is gone: what waits for the light says so
			}
			for e := b[:n]; len(e) >= eventBytes; e = e[eventBytes:] {
				order := binary.NativeEndian
				if order.Uint16(e[16:]) != KindKey || order.Uint16(e[18:]) != codeCapsLock || order.Uint32(e[20:]) != 1 {
					continue
				}
				on = !on
				light := make([]byte, 2*eventBytes) // the light, and the synchronisation that ends it
				order.PutUint16(light[16:], kindLight)
				order.PutUint16(light[18:], codeCapsLight)
				if on {
					order.PutUint32(light[20:], 1)
				}
				if _, err := in.file.Write(light); err != nil {
					return
				}
			}
		}
	}()
}

// AwaitReleaseOrEnd returns once a key is released, or the whole device is gone: the kernel
// releases the keys of a device that is unplugged, and a reader that is late finds no device
// to read that from.
func (in *Input) AwaitReleaseOrEnd(key uint16) {
	in.t.Helper()
	in.mayEnd = true
	for !in.ended {
		if e := in.Next(); !in.ended && e.Kind == KindKey && e.Code == key && e.Value == 0 {
			return
		}
	}
}

// Await returns the next event of this kind and code.
func (in *Input) Await(kind, code uint16) InputEvent {
	in.t.Helper()
	for {
		if e := in.Next(); e.Kind == kind && e.Code == code {
			return e
		}
	}
}
