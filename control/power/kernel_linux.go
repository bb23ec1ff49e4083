package power

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ThisMachine is the kernel that runs this program.
func ThisMachine() Kernel { return Kernel{Root: "/", Control: transfer, Line: takeLine} }

// Ioctls of linux/usbdevice_fs.h and linux/gpio.h, with the sizes of their structures.
const (
	usbdevfsControl  = 0xc0185500
	gpioGetLine      = 0xc250b407
	gpioGetValues    = 0xc010b40e
	gpioSetValues    = 0xc010b40f
	gpioFlagLow      = 1 << 1
	gpioFlagOutput   = 1 << 3
	gpioAttrValues   = 2
	gpioLineConsumer = "eidetic"
)

// controlTransfer is struct usbdevfs_ctrltransfer.
type controlTransfer struct {
	kind, request       uint8
	value, index, limit uint16
	timeout             uint32 // ms
	data                unsafe.Pointer
}

// transfer makes a control transfer by usbfs.
func transfer(ctx context.Context, file string, r Request, data []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	c := controlTransfer{
		kind: r.Type, request: r.Request, value: r.Value, index: r.Index, limit: uint16(len(data)),
		timeout: uint32(transferLimit.Milliseconds()), data: unsafe.Pointer(unsafe.SliceData(data)),
	}
	err = ioctl(f, usbdevfsControl, unsafe.Pointer(&c))
	runtime.KeepAlive(data)
	return err
}

func ioctl(f *os.File, number uintptr, at unsafe.Pointer) error {
	for {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), number, uintptr(at))
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 {
			return fmt.Errorf("%s: %w", f.Name(), errno)
		}
		return nil
	}
}

// lineRequest is struct gpio_v2_line_request.
type lineRequest struct {
	offsets    [64]uint32
	consumer   [32]byte
	flags      uint64
	attributes uint32
	_          [5]uint32
	attribute  [10]lineAttribute
	lines      uint32
	buffer     uint32
	_          [5]uint32
	fd         int32
}

// lineAttribute is struct gpio_v2_line_config_attribute.
type lineAttribute struct {
	id, _  uint32
	values uint64
	mask   uint64
}

// lineValues is struct gpio_v2_line_values, whose first bit is our line.
type lineValues struct{ bits, mask uint64 }

// chipLine is a line of a chip, which is another file.
type chipLine struct{ file *os.File }

// takeLine takes a line of a chip as an active output.
func takeLine(file string, offset uint32, activeLow bool) (Line, error) {
	chip, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer chip.Close()
	r := lineRequest{flags: gpioFlagOutput, attributes: 1, lines: 1}
	r.offsets[0] = offset
	copy(r.consumer[:], gpioLineConsumer)
	r.attribute[0] = lineAttribute{id: gpioAttrValues, values: 1, mask: 1}
	if activeLow {
		r.flags |= gpioFlagLow
	}
	switch err := ioctl(chip, gpioGetLine, unsafe.Pointer(&r)); {
	case errors.Is(err, unix.EBUSY):
		return nil, fmt.Errorf("%s: another program, or the kernel, uses line %d", file, offset)
	case errors.Is(err, unix.EINVAL):
		return nil, fmt.Errorf("%s: it has no line %d that can be an output", file, offset)
	case err != nil:
		return nil, err
	}
	return &chipLine{os.NewFile(uintptr(r.fd), fmt.Sprintf("%s/%d", file, offset))}, nil
}

func (l *chipLine) Set(active bool) error {
	v := lineValues{mask: 1}
	if active {
		v.bits = 1
	}
	return ioctl(l.file, gpioSetValues, unsafe.Pointer(&v))
}

func (l *chipLine) Get() (active bool, err error) {
	v := lineValues{mask: 1}
	err = ioctl(l.file, gpioGetValues, unsafe.Pointer(&v))
	return v.bits&1 != 0, err
}

func (l *chipLine) Close() error { return l.file.Close() }
