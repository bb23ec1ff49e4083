package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// V4L2's ioctls (include/uapi/linux/videodev2.h).
const (
	setFormat    = 0xc0d05605 // VIDIOC_S_FMT, 208 bytes
	setControl   = 0xc008561c // VIDIOC_S_CTRL, 8 bytes
	queryControl = 0xc0445624 // VIDIOC_QUERYCTRL, 68 bytes
	setTimings   = 0xc0845657 // VIDIOC_S_DV_TIMINGS, 132 bytes
	requestBufs  = 0xc0145608 // VIDIOC_REQBUFS, 20 bytes
	queryBuffer  = 0xc0585609 // VIDIOC_QUERYBUF, 88 bytes
	queueBuffer  = 0xc058560f // VIDIOC_QBUF
	dequeue      = 0xc0585611 // VIDIOC_DQBUF
	streamOn     = 0x40045612 // VIDIOC_STREAMON
	nextControl  = 0x80000000 // V4L2_CTRL_FLAG_NEXT_CTRL

	output = 2 // V4L2_BUF_TYPE_VIDEO_OUTPUT
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
	screen, err := node("vid-out")
	if err != nil {
		return nil, err
	}
	for _, f := range []*os.File{screen, capture} {
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
	if err := ioctl(screen, setFormat, unsafe.Pointer(&format)); err != nil {
		return nil, fmt.Errorf("set the format: %w", err)
	}
	if pix[0] != width || pix[1] != height || pix[2] != yuyv || pix[4] != 2*width {
		return nil, fmt.Errorf("the output takes %d × %d, rows of %d bytes", pix[0], pix[1], pix[4])
	}
	return screen, control(capture, "Loop Video", 1)
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

// buffer is struct v4l2_buffer on 64 bits.
type buffer [22]uint32

func newBuffer(index uint32) buffer {
	return buffer{0: index, 1: output, 2: pictureBytes, 4: 1, 15: 1} // all of it, progressive, in mapped memory
}

// show gives the newest picture to the driver, which takes as many a second as the signal has.
func show(f *os.File, newest *atomic.Pointer[[]byte]) error {
	const buffers = 4
	request := [5]uint32{buffers, output, 1}
	if err := ioctl(f, requestBufs, unsafe.Pointer(&request)); err != nil {
		return fmt.Errorf("request buffers: %w", err)
	}
	var memory [buffers][]byte
	var holds [buffers]*[]byte // what a buffer's memory has already
	for i := range memory {
		b := newBuffer(uint32(i))
		err := ioctl(f, queryBuffer, unsafe.Pointer(&b))
		if err == nil {
			memory[i], err = unix.Mmap(int(f.Fd()), int64(b[16]), pictureBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		}
		if err != nil {
			return fmt.Errorf("map a buffer: %w", err)
		}
	}
	for n := 0; ; n++ {
		b := newBuffer(uint32(n))
		if n >= buffers {
			if err := ioctl(f, dequeue, unsafe.Pointer(&b)); err != nil {
				return fmt.Errorf("taking a buffer back: %w", err)
			}
			b = newBuffer(b[0])
		}
		if picture := newest.Load(); holds[b[0]] != picture {
			copy(memory[b[0]], *picture)
			holds[b[0]] = picture
		}
		if err := ioctl(f, queueBuffer, unsafe.Pointer(&b)); err != nil {
			return fmt.Errorf("showing a picture: %w", err)
		}
		if n == 0 {
			kind := uint32(output)
			if err := ioctl(f, streamOn, unsafe.Pointer(&kind)); err != nil {
				return fmt.Errorf("start streaming: %w", err)
			}
		}
	}
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
			// os.Open would let the runtime poll the file, by which the driver begins to stream.
			file := "/dev/" + filepath.Base(filepath.Dir(name))
			fd, err := unix.Open(file, unix.O_RDWR|unix.O_CLOEXEC, 0)
			if err != nil {
				return nil, &os.PathError{Op: "open", Path: file, Err: err}
			}
			return os.NewFile(uintptr(fd), file), nil
		}
	}
	return nil, fmt.Errorf("there is no %s: modprobe vivid node_types=0x101", kind)
}
