package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// V4L2's ioctls (include/uapi/linux/videodev2.h).
const (
	setFormat    = 0xc0d05605 // VIDIOC_S_FMT, 208 bytes
	setControl   = 0xc008561c // VIDIOC_S_CTRL, 8 bytes
	queryControl = 0xc0445624 // VIDIOC_QUERYCTRL, 68 bytes
	setTimings   = 0xc0845657 // VIDIOC_S_DV_TIMINGS, 132 bytes
	nextControl  = 0x80000000 // V4L2_CTRL_FLAG_NEXT_CTRL
)

func ioctl(f *os.File, request uintptr, arg unsafe.Pointer) error {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), request, uintptr(arg))
	if errno != 0 {
		return errno
	}
	return nil
}

// openOutput makes vivid's output an HDMI source whose cable leads to vivid's input, and opens it.
func openOutput() (*os.File, error) {
	capture, err := node("vid-cap")
	if err != nil {
		return nil, err
	}
	defer capture.Close()
	output, err := node("vid-out")
	if err != nil {
		return nil, err
	}
	for _, f := range []*os.File{capture, output} {
		t := timings()
		if err := ioctl(f, setTimings, unsafe.Pointer(&t)); err != nil {
			return nil, fmt.Errorf("%s: set the timings: %w", f.Name(), err)
		}
	}
	var format [208 / 4]uint32
	format[0] = 2     // V4L2_BUF_TYPE_VIDEO_OUTPUT
	pix := format[2:] // after padding to 8 bytes
	const yuyv = 'Y' | 'U'<<8 | 'Y'<<16 | 'V'<<24
	pix[0], pix[1], pix[2], pix[3], pix[6] = width, height, yuyv, 1, 1 // progressive, SMPTE 170M
	if err := ioctl(output, setFormat, unsafe.Pointer(&format)); err != nil {
		return nil, fmt.Errorf("set the format: %w", err)
	}
	if pix[0] != width || pix[1] != height || pix[2] != yuyv || pix[4] != 2*width {
		return nil, fmt.Errorf("the output takes %d × %d, rows of %d bytes", pix[0], pix[1], pix[4])
	}
	return output, control(output, "Loop Video", 1)
}

// timings are those of CTA-861's mode 1, 640×480 at 59.94 Hz.
func timings() [33]uint32 {
	// Type, width, height, interlaced, polarities, pixel clock (64 bits), then front porch, sync
	// and back porch of rows and of the picture; behind the three of a second field, the standards.
	return [33]uint32{0, width, height, 0, 0, 25_175_000, 0, 16, 96, 48, 10, 2, 33, 0, 0, 0, 1 | 2}
}

// signal pulls the cable between output and input, or plugs it in again.
func signal(there bool) error {
	capture, err := node("vid-cap")
	if err != nil {
		return err
	}
	defer capture.Close()
	value := uint32(1) // No Signal
	if there {
		value = 0 // Current DV Timings
	}
	return control(capture, "DV Timings Signal Mode", value)
}

// control sets a control by its name.
func control(f *os.File, called string, value uint32) error {
	var q [17]uint32
	for {
		q[0] |= nextControl
		if err := ioctl(f, queryControl, unsafe.Pointer(&q)); err != nil {
			return fmt.Errorf("vivid has no control %s", called)
		}
		name := unsafe.Slice((*byte)(unsafe.Pointer(&q[2])), 32)
		if unix.ByteSliceToString(name) == called {
			break
		}
	}
	set := [2]uint32{q[0], value}
	if err := ioctl(f, setControl, unsafe.Pointer(&set)); err != nil {
		return fmt.Errorf("%s: %w", called, err)
	}
	return nil
}

// node opens vivid's device of a kind.
func node(kind string) (*os.File, error) {
	names, err := filepath.Glob("/sys/class/video4linux/*/name")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err == nil && strings.HasSuffix(strings.TrimSpace(string(text)), kind) {
			return os.OpenFile("/dev/"+filepath.Base(filepath.Dir(name)), os.O_RDWR, 0)
		}
	}
	return nil, fmt.Errorf("there is no %s: modprobe vivid node_types=0x101", kind)
}
