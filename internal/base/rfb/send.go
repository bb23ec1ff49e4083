package rfb

import "image"

// Encoding is how a rectangle is sent or, if negative, a pseudo-encoding: an extension that
// the client announces.
type Encoding int32

// The supported encodings.
const (
	Raw               Encoding = 0
	CopyRect          Encoding = 1
	Hextile           Encoding = 5
	ZRLE              Encoding = 16
	Cursor            Encoding = -239 // the server sends the pointer's shape instead of drawing it
	DesktopSize       Encoding = -223
	ExtDesktopSize    Encoding = -308
	FenceSupport      Encoding = -312
	ContinuousUpdates Encoding = -313
)

// The types of messages from the client.
const (
	setPixelFormat    = 0
	setEncodings      = 2
	updateRequest     = 3
	keyEvent          = 4
	pointerEvent      = 5
	enableContinuous  = 150
	clientFence       = 248
	bytesPerPixel     = 4
	fenceRequest      = 1 << 31
	fenceBlockBefore  = 1
	fenceBlockAfter   = 2
	maxFence          = 64
	knownFences       = fenceBlockBefore | fenceBlockAfter
	fencePayloadBytes = 8
)

// AppendPixelFormat asks for BGRX: 32 bits, depth 24, little-endian.
func AppendPixelFormat(b []byte) []byte {
	return append(b, setPixelFormat, 0, 0, 0,
		8*bytesPerPixel, 24, 0, 1, // bits per pixel, depth, little-endian, true colour
		0, 255, 0, 255, 0, 255, // the largest red, green and blue
		16, 8, 0, // their shifts
		0, 0, 0)
}

// AppendEncodings announces the supported encodings, in order of preference.
func AppendEncodings(b []byte, list ...Encoding) []byte {
	b = append(b, setEncodings, 0)
	b = be.AppendUint16(b, uint16(len(list)))
	for _, e := range list {
		b = be.AppendUint32(b, uint32(e))
	}
	return b
}

// AppendRequest requests an update of a rectangle: of its changes, or of all of it.
func AppendRequest(b []byte, incremental bool, r image.Rectangle) []byte {
	b = append(b, updateRequest, bit(incremental))
	return appendRectangle(b, r)
}

// AppendContinuous switches updates without requests on or off.
func AppendContinuous(b []byte, on bool, r image.Rectangle) []byte {
	b = append(b, enableContinuous, bit(on))
	return appendRectangle(b, r)
}

// AppendKey presses or releases the key with an X11 keysym.
func AppendKey(b []byte, down bool, keysym uint32) []byte {
	b = append(b, keyEvent, bit(down), 0, 0)
	return be.AppendUint32(b, keysym)
}

// AppendPointer moves the pointer to x, y with the buttons in mask pressed; bit 0 is the
// first button.
func AppendPointer(b []byte, mask byte, x, y int) []byte {
	b = append(b, pointerEvent, mask)
	b = be.AppendUint16(b, uint16(x))
	return be.AppendUint16(b, uint16(y))
}

// AppendFence asks the server to return id once it has processed everything sent before.
func AppendFence(b []byte, id uint64) []byte {
	var payload [fencePayloadBytes]byte
	be.PutUint64(payload[:], id)
	return appendFence(b, fenceRequest|fenceBlockBefore, payload[:])
}

func appendFence(b []byte, flags uint32, payload []byte) []byte {
	b = append(b, clientFence, 0, 0, 0)
	b = be.AppendUint32(b, flags)
	b = append(b, byte(len(payload)))
	return append(b, payload...)
}

func appendRectangle(b []byte, r image.Rectangle) []byte {
	for _, v := range []int{r.Min.X, r.Min.Y, r.Dx(), r.Dy()} {
		b = be.AppendUint16(b, uint16(v))
	}
	return b
}

func bit(on bool) byte {
	if on {
		return 1
	}
	return 0
}
