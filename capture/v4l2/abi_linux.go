package v4l2

import (
	"encoding/binary"
	"time"
	"unsafe"
)

// The part of <linux/videodev2.h> that is used here, for 64-bit machines.
// Structures are byte arrays with named offsets: their unions have no Go form.
const (
	reqQueryCap      = 0x80685600
	reqGetFormat     = 0xC0D05604
	reqSetFormat     = 0xC0D05605
	reqRequestBufs   = 0xC0145608
	reqQueryBuf      = 0xC0585609
	reqQueue         = 0xC058560F
	reqDequeue       = 0xC0585611
	reqStreamOn      = 0x40045612
	reqStreamOff     = 0x40045613
	reqGetParm       = 0xC0CC5615
	reqSetParm       = 0xC0CC5616
	reqQueryTimings  = 0x80845663
	reqSetTimings    = 0xC0845657
	reqSubscribe     = 0x4020565A
	reqDequeueEvent  = 0x80885659
	typeCapture      = 1 // V4L2_BUF_TYPE_VIDEO_CAPTURE
	memoryMap        = 1 // V4L2_MEMORY_MMAP
	fieldNone        = 1 // V4L2_FIELD_NONE
	capCapture       = 0x00000001
	capStreaming     = 0x04000000
	capDevice        = 0x80000000 // capabilities of this node stand apart
	flagError        = 0x00000040
	flagClock        = 0x0000e000
	clockMonotonic   = 0x00002000
	eventSource      = 5 // V4L2_EVENT_SOURCE_CHANGE
	changeResolution = 1
)

type (
	capability [104]byte // driver 0, card 16, bus 48, version 80, capabilities 84, device_caps 88
	format     [208]byte // type 0; v4l2_pix_format from 8
	requestBuf [20]byte  // count 0, type 4, memory 8
	buffer     [88]byte
	parameters [204]byte // type 0; capability 4, mode 8, numerator 12, denominator 16
	timings    [132]byte
	subscribe  [32]byte // type 0
	event      [136]byte
)

var order = binary.NativeEndian

func u32(b []byte, at int) uint32       { return order.Uint32(b[at:]) }
func setU32(b []byte, at int, v uint32) { order.PutUint32(b[at:], v) }

// pixFormat is v4l2_pix_format.
type pixFormat struct {
	width, height, fourcc, field, stride, size, colourspace, quantisation uint32
}

func (f *format) get() pixFormat {
	return pixFormat{u32(f[:], 8), u32(f[:], 12), u32(f[:], 16), u32(f[:], 20), u32(f[:], 24), u32(f[:], 28), u32(f[:], 32), u32(f[:], 48)}
}

// newFormat asks for a size and pixel format, progressive.
func newFormat(width, height int, fourcc uint32) *format {
	var f format
	setU32(f[:], 0, typeCapture)
	setU32(f[:], 8, uint32(width))
	setU32(f[:], 12, uint32(height))
	setU32(f[:], 16, fourcc)
	setU32(f[:], 20, fieldNone)
	return &f
}

// newBuffer names a mapped buffer.
func newBuffer(index uint32) *buffer {
	var b buffer
	setU32(b[:], 0, index)
	setU32(b[:], 4, typeCapture)
	setU32(b[:], 60, memoryMap)
	return &b
}

func (b *buffer) index() uint32    { return u32(b[:], 0) }
func (b *buffer) used() uint32     { return u32(b[:], 8) }
func (b *buffer) flags() uint32    { return u32(b[:], 12) }
func (b *buffer) sequence() uint32 { return u32(b[:], 56) }
func (b *buffer) offset() uint32   { return u32(b[:], 64) }
func (b *buffer) length() uint32   { return u32(b[:], 72) }

// time is the buffer's timestamp, a timeval.
func (b *buffer) time() time.Duration {
	sec, usec := int64(order.Uint64(b[24:])), int64(order.Uint64(b[32:]))
	return time.Duration(sec)*time.Second + time.Duration(usec)*time.Microsecond
}

// pointer is what an ioctl takes.
func pointer[T any](v *T) unsafe.Pointer { return unsafe.Pointer(v) }
