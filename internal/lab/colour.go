package lab

import "math"

// Matrix says which weights of red, green and blue make a Y′CbCr sample. "" is unknown: BT709 is then
// assumed from 720 rows on, BT601 below, as HDMI has it (CTA-861).
type Matrix string

// The matrices, by the standards that define them.
const (
	BT601     Matrix = "601"  // ITU-R BT.601-7
	BT709     Matrix = "709"  // ITU-R BT.709-6
	BT2020    Matrix = "2020" // ITU-R BT.2020-2, non-constant luminance
	SMPTE240M Matrix = "240M" // SMPTE 240M-1999
)

// ColourRange says between which values a channel lies. "" is unknown: Y′CbCr is then taken as limited, RGB and
// grey as full.
type ColourRange string

// The ranges of 8-bit channels.
const (
	FullRange    ColourRange = "full"    // 0 … 255
	LimitedRange ColourRange = "limited" // brightness, red, green and blue 16 … 235, colour differences 16 … 240
)

// IsYCbCr says whether the format's pixels are brightness and colour differences.
func (p PixelFormat) IsYCbCr() bool { return p == YUYV || p == UYVY || p == NV12 }

// YCbCr turns samples into colours, in 16-bit fixed point.
type YCbCr struct{ floor, gain, vr, ug, vg, ub int32 }

// YCbCr returns the conversion of the format's samples.
func (f Format) YCbCr() YCbCr {
	matrix := f.Matrix
	if matrix == "" {
		if matrix = BT601; f.Height >= 720 {
			matrix = BT709
		}
	}
	var kr, kb float64 // weights of red and blue in the brightness
	switch matrix {
	case BT601:
		kr, kb = 0.299, 0.114
	case BT709:
		kr, kb = 0.2126, 0.0722
	case BT2020:
		kr, kb = 0.2627, 0.0593
	case SMPTE240M:
		kr, kb = 0.212, 0.087
	}
	kg := 1 - kr - kb
	floor, luma, chroma := int32(16), 255.0/219, 255.0/224
	if f.Range == FullRange {
		floor, luma, chroma = 0, 1, 1
	}
	fixed := func(v float64) int32 { return int32(math.Round(v * (1 << 16))) }
	return YCbCr{
		floor: floor, gain: fixed(luma),
		vr: fixed(2 * (1 - kr) * chroma), ub: fixed(2 * (1 - kb) * chroma),
		ug: fixed(2 * (1 - kb) * kb / kg * chroma), vg: fixed(2 * (1 - kr) * kr / kg * chroma),
	}
}

// RGB converts a pixel; values beyond the range are cut off.
func (c YCbCr) RGB(y, u, v byte) (r, g, b byte) {
	l := c.gain*(int32(y)-c.floor) + 1<<15
	cu, cv := int32(u)-128, int32(v)-128
	return clamp8(l + c.vr*cv), clamp8(l - c.ug*cu - c.vg*cv), clamp8(l + c.ub*cu)
}

func clamp8(v int32) byte { return byte(max(0, min(255, v>>16))) }

// YCbCrTables does the same several times as fast, for whole pictures.
type YCbCrTables struct {
	y, vr, ug, vg, ub [256]int32
	cut               [1 << 10]uint8
}

// cutFrom is the lowest colour of the table that cuts off: a little below the lowest that there is.
const cutFrom = -320

// Tables returns the conversion as tables.
func (c YCbCr) Tables() *YCbCrTables {
	var t YCbCrTables
	for i := range int32(256) {
		t.y[i] = c.gain*(i-c.floor) + 1<<15 - cutFrom<<16
		t.vr[i], t.ug[i], t.vg[i], t.ub[i] = c.vr*(i-128), c.ug*(i-128), c.vg*(i-128), c.ub*(i-128)
	}
	for i := range int32(len(t.cut)) {
		t.cut[i] = clamp8((i + cutFrom) << 16)
	}
	return &t
}

// BGRX converts a pixel, to a word whose lowest byte is blue.
func (t *YCbCrTables) BGRX(y, u, v byte) uint32 {
	const last = uint32(len(t.cut) - 1)
	l := t.y[y]
	r, g, b := uint32(l+t.vr[v])>>16, uint32(l-t.ug[u]-t.vg[v])>>16, uint32(l+t.ub[u])>>16
	return uint32(t.cut[r&last])<<16 | uint32(t.cut[g&last])<<8 | uint32(t.cut[b&last])
}

// Stretch returns what each value of an RGB or grey channel of limited range stands for; nil where the values
// are colours already.
func (f Format) Stretch() *[256]byte {
	if f.Range != LimitedRange || f.Pixels.IsYCbCr() || f.Pixels == MJPEG {
		return nil
	}
	c := Format{Range: LimitedRange}.YCbCr()
	var table [256]byte
	for v := range table {
		table[v], _, _ = c.RGB(byte(v), 128, 128)
	}
	return &table
}
