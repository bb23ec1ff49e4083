package v4l2

import (
	"encoding/binary"
	"time"
	"unsafe"
)

// The part of <linux/videodev2.h> that is used here, for 64-bit machines.
// Structures are byte arrays with named offsets: their unions have no Go form.
const (
	reqQueryCap     = 0x80685600
	reqEnumFormat   = 0xC0405602
	reqGetFormat    = 0xC0D05604
	reqSetFormat    = 0xC0D05605
	reqRequestBufs  = 0xC0145608
	reqQueryBuf     = 0xC0585609
	reqQueue        = 0xC058560F
	reqDequeue      = 0xC0585611
	reqStreamOn     = 0x40045612
	reqStreamOff    = 0x40045613
	reqGetParm      = 0xC0CC5615
	reqSetParm      = 0xC0CC5616
	reqGetControl   = 0xC008561B
	reqSetControl   = 0xC008561C
	reqQueryControl = 0xC0445624
	reqGetEDID      = 0xC0285628
	reqSetEDID      = 0xC0285629
	reqSetTimings   = 0xC0845657
	reqDequeueEvent = 0x80885659
	reqSubscribe    = 0x4020565A
	reqQueryTimings = 0x80845663
	reqTimingsCap   = 0xC0905664

	typeCapture    = 1 // V4L2_BUF_TYPE_VIDEO_CAPTURE
	typePlanes     = 9 // V4L2_BUF_TYPE_VIDEO_CAPTURE_MPLANE
	memoryMap      = 1 // V4L2_MEMORY_MMAP
	fieldNone      = 1 // V4L2_FIELD_NONE
	capCapture     = 0x00000001
	capPlanes      = 0x00001000
	capStreaming   = 0x04000000
	capDevice      = 0x80000000 // capabilities of this node stand apart
	flagError      = 0x00000040
	flagClock      = 0x0000e000
	clockMonotonic = 0x00002000

	eventSource      = 5 // V4L2_EVENT_SOURCE_CHANGE
	changeResolution = 1

	controlNext     = 0x80000000 // V4L2_CTRL_FLAG_NEXT_CTRL
	controlDisabled = 0x0001
	controlReadOnly = 0x0004
	controlInteger  = 1
	controlBoolean  = 2
	controlMenu     = 3
	controlButton   = 4
	controlBitmask  = 8
	controlChoice   = 9 // V4L2_CTRL_TYPE_INTEGER_MENU

	maxPlanes = 8
)

type (
	capability [104]byte // driver 0, card 16, bus 48, version 80, capabilities 84, device_caps 88
	format     [208]byte // type 0; v4l2_pix_format or v4l2_pix_format_mplane from 8
	requestBuf [20]byte  // count 0, type 4, memory 8
	buffer     [88]byte
	planes     [maxPlanes][64]byte // bytesused 0, length 4, mem_offset 8, data_offset 16
	parameters [204]byte           // type 0; capability 4, mode 8, numerator 12, denominator 16
	timings    [132]byte           // type 0; v4l2_bt_timings from 4
	timingsCap [144]byte           // type 0; least and most width 16, height 24, pixelclock 32 (64 bits each)
	subscribe  [32]byte            // type 0
	event      [136]byte           // type 0, changes 8
	edid       [40]byte            // pad 0, start_block 4, blocks 8, pointer 32
	query      [68]byte            // id 0, type 4, name 8, minimum 40, maximum 44, step 48, default 52, flags 56
	control    [8]byte             // id 0, value 4
)

var order = binary.NativeEndian

func u32(b []byte, at int) uint32       { return order.Uint32(b[at:]) }
func setU32(b []byte, at int, v uint32) { order.PutUint32(b[at:], v) }

// pixFormat is what v4l2_pix_format and v4l2_pix_format_mplane tell.
type pixFormat struct {
	width, height, fourcc, field uint32
	colourspace, encoding        uint32
	quantisation                 uint32
	planes                       []planeFormat // one for v4l2_pix_format
}

// planeFormat is one piece of memory of a picture; NV12 usually has one.
type planeFormat struct{ stride, size uint32 }

func (f *format) get() pixFormat {
	p := pixFormat{width: u32(f[:], 8), height: u32(f[:], 12), fourcc: u32(f[:], 16), field: u32(f[:], 20)}
	if u32(f[:], 0) == typeCapture {
		p.planes = []planeFormat{{u32(f[:], 24), u32(f[:], 28)}}
		p.colourspace, p.encoding, p.quantisation = u32(f[:], 32), u32(f[:], 44), u32(f[:], 48)
		return p
	}
	p.colourspace, p.encoding, p.quantisation = u32(f[:], 24), uint32(f[8+182]), uint32(f[8+183])
	for i := range min(int(f[8+180]), maxPlanes) {
		at := 28 + 20*i
		p.planes = append(p.planes, planeFormat{u32(f[:], at+4), u32(f[:], at)})
	}
	return p
}

// newFormat asks for a size and pixel format, progressive.
func newFormat(kind uint32, width, height int, fourcc uint32) *format {
	var f format
	setU32(f[:], 0, kind)
	setU32(f[:], 8, uint32(width))
	setU32(f[:], 12, uint32(height))
	setU32(f[:], 16, fourcc)
	setU32(f[:], 20, fieldNone)
	return &f
}

// setStride asks for padded rows in the first plane.
func (f *format) setStride(n uint32) {
	if u32(f[:], 0) == typeCapture {
		setU32(f[:], 24, n)
	} else {
		setU32(f[:], 32, n)
	}
}

// newBuffer names a mapped buffer. The planes of a multi-planar one must stay
// where they are: they are pinned by the source.
func newBuffer(kind, index uint32, p *planes) *buffer {
	var b buffer
	setU32(b[:], 0, index)
	setU32(b[:], 4, kind)
	setU32(b[:], 60, memoryMap)
	if kind == typePlanes {
		order.PutUint64(b[64:], uint64(uintptr(unsafe.Pointer(p))))
		setU32(b[:], 72, maxPlanes)
	}
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
