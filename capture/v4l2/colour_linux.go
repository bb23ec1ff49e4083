package v4l2

import "eidetic/internal/lab"

// Values of enum v4l2_colorspace, v4l2_ycbcr_encoding and v4l2_quantization.
const (
	spaceSMPTE170M = 1
	spaceSMPTE240M = 2
	spaceRec709    = 3
	spaceJPEG      = 7
	spaceSRGB      = 8
	spaceOpRGB     = 9
	spaceBT2020    = 10
	spaceDCIP3     = 12

	encoding601     = 1
	encoding709     = 2
	encodingXV601   = 3
	encodingXV709   = 4
	encodingSYCC    = 5
	encoding2020    = 6
	encodingConst   = 7 // BT.2020 with constant luminance
	encodingSMPTE   = 8
	quantiseFull    = 1
	quantiseLimited = 2
)

// setColours makes the format known, with the colours that the driver says its samples stand for. What is made of
// compressed pictures and of 4:4:4 samples is RGB of full range. Grey is taken as it comes: V4L2 does not define its
// range, and vivid says "limited" of grey that is full.
func (s *Source) setColours(f lab.Format) {
	told := f
	if f.Pixels != lab.MJPEG && f.Pixels != lab.Grey {
		told.Matrix, told.Range = s.pad.colours(s.layout.isYCbCr())
	}
	s.convert = told.YCbCr().Tables()
	s.format = f
	if s.layout.isYCbCr() == f.Pixels.IsYCbCr() {
		s.format = told
	}
	s.told = told
	if s.layout.planes != nil {
		s.strides = s.layout.strides(s.pad.planes)
	}
}

// colours returns the matrix and range by what the driver says, with the defaults of V4L2 ("Colorspaces" of the Linux
// Media API) where it names a colour space alone. A driver that names none leaves both unknown.
func (p pixFormat) colours(isYCbCr bool) (m lab.Matrix, r lab.ColourRange) {
	switch {
	case !isYCbCr && p.quantisation == quantiseLimited:
		return "", lab.LimitedRange
	case !isYCbCr:
		return "", "" // full, as RGB is without a word
	case p.quantisation == quantiseFull, p.quantisation == 0 && p.colourspace == spaceJPEG:
		r = lab.FullRange
	case p.quantisation == quantiseLimited, p.colourspace != 0:
		r = lab.LimitedRange
	}
	switch p.encoding {
	case encoding601, encodingXV601, encodingSYCC:
		return lab.BT601, r
	case encoding709, encodingXV709:
		return lab.BT709, r
	case encoding2020, encodingConst:
		return lab.BT2020, r
	case encodingSMPTE:
		return lab.SMPTE240M, r
	}
	switch p.colourspace {
	case 0:
		return "", r
	case spaceRec709, spaceDCIP3:
		return lab.BT709, r
	case spaceBT2020:
		return lab.BT2020, r
	case spaceSMPTE240M:
		return lab.SMPTE240M, r
	}
	return lab.BT601, r
}

// colourWords says what the values of a picture mean; f has the driver's matrix and range.
func (p pixFormat) colourWords(f lab.Format, isYCbCr bool) string {
	text := map[uint32]string{
		spaceSMPTE170M: "SMPTE 170M", spaceSMPTE240M: "SMPTE 240M", spaceRec709: "Rec. 709", spaceJPEG: "JPEG", spaceSRGB: "sRGB",
		spaceOpRGB: "opRGB", spaceBT2020: "BT.2020", spaceDCIP3: "DCI-P3",
	}[p.colourspace]
	if text == "" {
		text = "unknown colour space"
	}
	if f.Matrix != "" {
		text += ", matrix " + string(f.Matrix)
	}
	if isYCbCr && p.encoding == encodingConst {
		text += " (the driver says constant luminance, which is not converted: colours are approximate)"
	}
	if f.Range == lab.LimitedRange || f.Range == "" && isYCbCr {
		return text + ", limited range (16 … 235)"
	}
	return text + ", full range"
}
