package gesture

import (
	"bytes"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// absInfo is struct input_absinfo.
type absInfo struct{ Value, Minimum, Maximum, Fuzz, Flat, Resolution int32 }

// ioctl numbers of linux/input.h.
const (
	eviocgAbs  = 0x80184540 // + axis: struct input_absinfo
	eviocgName = 0x81004506 // 256 bytes
	eviocgRel  = 0x80084522 // EVIOCGBIT(EV_REL), 8 bytes
)

// OpenEvdev opens an input device of Linux, such as /dev/input/event5. The caller closes the file, which
// ends a read in progress.
func OpenEvdev(path string) (f *os.File, name string, a Axes, err error) {
	f, err = os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, "", a, err
	}
	var text [256]byte
	if err := ioctl(f, eviocgName, unsafe.Pointer(&text[0])); err != nil {
		_ = f.Close() // the error before counts
		return nil, "", a, fmt.Errorf("%s is no input device: %w", path, err)
	}
	name = string(bytes.TrimRight(text[:], "\x00"))
	axis := func(number uintptr) (i absInfo, ok bool) {
		err := ioctl(f, eviocgAbs+number, unsafe.Pointer(&i))
		return i, err == nil && i.Maximum > i.Minimum
	}
	for _, pair := range [][2]uintptr{{absMTX, absMTY}, {absX, absY}} {
		x, hasX := axis(pair[0])
		y, hasY := axis(pair[1])
		if hasX && hasY {
			a = Axes{MinX: int(x.Minimum), MaxX: int(x.Maximum), MinY: int(y.Minimum), MaxY: int(y.Maximum), Slots: pair[0] == absMTX}
			return f, name, a, nil
		}
	}
	var relative [8]byte
	if err := ioctl(f, eviocgRel, unsafe.Pointer(&relative[0])); err == nil && relative[0]&3 == 3 {
		return f, name, Axes{Mouse: true}, nil
	}
	_ = f.Close() // nothing was written
	return nil, "", a, fmt.Errorf("%s (%s) is neither a touch screen nor a mouse", path, name)
}

func ioctl(f *os.File, number uintptr, to unsafe.Pointer) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var code unix.Errno
	if err := c.Control(func(fd uintptr) { _, _, code = unix.Syscall(unix.SYS_IOCTL, fd, number, uintptr(to)) }); err != nil {
		return err
	}
	if code != 0 {
		return code
	}
	return nil
}
