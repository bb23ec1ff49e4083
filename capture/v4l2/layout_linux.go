package v4l2

import (
	"fmt"
	"slices"

	"eidetic/capture/diff"
	"eidetic/internal/lab"
)

// layout says how a driver lays out the samples of a picture, and what is made of them. Most are one of our
// formats with the samples in another order; they lose nothing.
type layout struct {
	code   string // fourcc
	pixels lab.PixelFormat
	planes []shape // the driver's
	apart  bool    // each plane lies in a piece of memory of its own
	steps  []step  // for each plane of ours; nil: the planes are copied as they are
	word   string  // what is lost; "" for nothing
}

// shape is a plane whose units of so many bytes each cover across × down pixels.
type shape struct{ unit, across, down int }

func (s shape) tight(width int) int { return s.unit * ((width + s.across - 1) / s.across) }
func (s shape) rows(height int) int { return (height + s.down - 1) / s.down }

// step makes a row of ours of the rows of up to three planes of the driver's.
type step struct {
	from []int
	make rowMaker
}

// rowMaker fills a row; the conversion is for those that make colours of brightness and colour differences.
type rowMaker func(dst []byte, src [3][]byte, c *lab.YCbCrTables)

// layouts lists what is understood. Of several for one format, earlier ones are preferred.
func layouts() []layout {
	var (
		luma     = shape{1, 1, 1}
		pair     = shape{2, 1, 1} // packed 4:2:2, and the interleaved chroma of 4:4:4
		three    = shape{3, 1, 1}
		four     = shape{4, 1, 1}
		half     = shape{1, 2, 1}
		halves   = shape{2, 2, 1}
		quarter  = shape{1, 2, 2}
		quarters = shape{2, 2, 2}
		rgb      = []shape{three}
		packed   = []shape{pair}
		nv12     = []shape{luma, quarters}
		nv16     = []shape{luma, halves}
		nv24     = []shape{luma, pair}
		yu12     = []shape{luma, quarter, quarter}
		yu16     = []shape{luma, half, half}
		yu24     = []shape{luma, luma, luma}
	)
	one := func(do rowMaker, from ...int) []step { return []step{{from, do}} }
	two := func(do rowMaker, from ...int) []step { return []step{{[]int{0}, asIs}, {from, do}} }
	const whole = "4:4:4 at the source, converted to RGB"
	return []layout{
		{"XR24", lab.BGRX, []shape{four}, false, one(clearFourth, 0), ""},
		{"BGR4", lab.BGRX, []shape{four}, false, one(clearFourth, 0), ""},
		{"AR24", lab.BGRX, []shape{four}, false, one(clearFourth, 0), ""},
		{"BGR3", lab.BGR24, rgb, false, nil, ""},
		{"RGB3", lab.BGR24, rgb, false, one(swapOfThree, 0), ""},
		{"YUYV", lab.YUYV, packed, false, nil, ""},
		{"YVYU", lab.YUYV, packed, false, one(swapOdd, 0), ""},
		{"UYVY", lab.UYVY, packed, false, nil, ""},
		{"VYUY", lab.UYVY, packed, false, one(swapEven, 0), ""},
		{"NV16", lab.YUYV, nv16, false, one(zip, 0, 1), ""},
		{"NV61", lab.YUYV, nv16, false, one(weaveSwapped, 0, 1), ""},
		{"422P", lab.YUYV, yu16, false, one(weaveThree, 0, 1, 2), ""},
		{"NM16", lab.YUYV, nv16, true, one(zip, 0, 1), ""},
		{"NM61", lab.YUYV, nv16, true, one(weaveSwapped, 0, 1), ""},
		{"YM16", lab.YUYV, yu16, true, one(weaveThree, 0, 1, 2), ""},
		{"YM61", lab.YUYV, yu16, true, one(weaveThree, 0, 2, 1), ""},
		{"NV12", lab.NV12, nv12, false, nil, ""},
		{"NM12", lab.NV12, nv12, true, nil, ""},
		{"NV21", lab.NV12, nv12, false, two(swapPairs, 1), ""},
		{"NM21", lab.NV12, nv12, true, two(swapPairs, 1), ""},
		{"YU12", lab.NV12, yu12, false, two(zip, 1, 2), ""},
		{"YV12", lab.NV12, yu12, false, two(zip, 2, 1), ""},
		{"YM12", lab.NV12, yu12, true, two(zip, 1, 2), ""},
		{"YM21", lab.NV12, yu12, true, two(zip, 2, 1), ""},
		{"P010", lab.NV12, []shape{pair, {4, 2, 2}}, false, []step{{[]int{0}, narrow}, {[]int{1}, narrow}},
			"10 bits a sample at the source, rounded to 8"},
		{"GREY", lab.Grey, []shape{luma}, false, nil, ""},
		{"MJPG", lab.MJPEG, nil, false, nil, ""},
		{"JPEG", lab.MJPEG, nil, false, nil, ""},
		{"NV24", lab.BGRX, nv24, false, one(colour, 0, 1), whole},
		{"NV42", lab.BGRX, nv24, false, one(colourSwapped, 0, 1), whole},
		{"YM24", lab.BGRX, yu24, true, one(colourThree, 0, 1, 2), whole},
		{"YM42", lab.BGRX, yu24, true, one(colourThree, 0, 2, 1), whole},
	}
}

func fourcc(s string) uint32 {
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
}

// known returns the layout that a code stands for.
func known(code uint32) (layout, bool) {
	all := layouts()
	i := slices.IndexFunc(all, func(l layout) bool { return fourcc(l.code) == code })
	if i < 0 {
		return layout{}, false
	}
	return all[i], true
}

// codesOf returns the codes that can be asked of a driver for one of our formats.
func codesOf(pixels lab.PixelFormat) (codes []uint32) {
	for _, l := range layouts() {
		if l.pixels == pixels {
			codes = append(codes, fourcc(l.code))
		}
	}
	return codes
}

// isYCbCr says whether the driver's samples are brightness and colour differences.
func (l layout) isYCbCr() bool {
	return l.pixels.IsYCbCr() || l.pixels == lab.BGRX && len(l.planes) > 1
}

// told says in words what the source does to the driver's samples; "" for nothing.
func (l layout) told() string {
	switch {
	case l.word != "":
		return l.code + ", " + l.word
	case l.pixels == lab.MJPEG || l.steps == nil || l.pixels == lab.BGRX:
		return ""
	}
	return fmt.Sprintf("%s, kept as %s: the same samples in another order", l.code, l.pixels)
}

// check says whether the layout and what the driver grants can hold pictures of a format.
func (l layout) check(f lab.Format, driver []planeFormat) error {
	if l.pixels == lab.MJPEG {
		return nil
	}
	isPaired := l.steps != nil && (l.pixels == lab.YUYV || l.pixels == lab.UYVY)
	for _, p := range l.planes {
		isPaired = isPaired || p.across > 1
	}
	if isPaired && f.Width%2 == 1 {
		return fmt.Errorf("%s with an odd width of %d has no defined layout", l.code, f.Width)
	}
	want := 1
	if l.apart {
		want = len(l.planes)
	}
	if len(driver) != want {
		return fmt.Errorf("the device delivers %s in %d planes of memory, %d are known", l.code, len(driver), want)
	}
	for i, stride := range l.strides(driver) {
		if need := l.planes[i].tight(f.Width); stride < need {
			return fmt.Errorf("the device claims rows of %d bytes, %d are needed", stride, need)
		}
	}
	return nil
}

// strides returns the bytes from row to row of each plane: what the driver says of its pieces of memory, and what
// follows from the first row's length for planes that share one.
func (l layout) strides(driver []planeFormat) []int {
	all := make([]int, len(l.planes))
	for i, p := range l.planes {
		if l.apart {
			all[i] = int(driver[i].stride)
		} else {
			all[i] = int(driver[0].stride) * p.unit / (p.across * l.planes[0].unit)
		}
	}
	return all
}

// filledPlane is the part of a plane that the driver has filled.
type filledPlane struct {
	pix           []byte
	stride, tight int
}

// row returns row y; false if it is not whole.
func (p filledPlane) row(y int) ([]byte, bool) {
	at := y * p.stride
	if at+p.tight > len(p.pix) {
		return nil, false
	}
	return p.pix[at : at+p.tight], true
}

// assemble fills dst, a frame of a format, from the pieces of memory that a driver has filled, and returns the bytes up
// to the first row that the driver left out.
func (l layout) assemble(dst []byte, f lab.Format, c *lab.YCbCrTables, mem [][]byte, strides []int) int {
	var from [3]filledPlane
	at := 0
	for i, p := range l.planes {
		from[i] = filledPlane{stride: strides[i], tight: p.tight(f.Width)}
		if l.apart {
			if i < len(mem) {
				from[i].pix = mem[i]
			}
			continue
		}
		from[i].pix = mem[0][min(at, len(mem[0])):]
		at += strides[i] * p.rows(f.Height)
	}
	done := 0
	for i, p := range diff.Planes(f) {
		if l.steps == nil {
			n := unpad(dst[p.Off:p.Off+p.Size()], from[i].pix, p.Stride, from[i].stride)
			if done += n; n < p.Size() {
				return done
			}
			continue
		}
		for y := range p.Rows {
			var src [3][]byte
			for k, plane := range l.steps[i].from {
				var whole bool
				if src[k], whole = from[plane].row(y); !whole {
					return done
				}
			}
			l.steps[i].make(dst[p.Off+y*p.Stride:][:p.Stride], src, c)
			done += p.Stride
		}
	}
	return done
}

// unpad copies rows without padding and returns the bytes of those that were whole.
func unpad(dst, src []byte, tight, stride int) int {
	if stride == tight {
		return copy(dst, src)
	}
	for at := 0; at < len(dst); at += tight {
		if len(src) < tight {
			return at
		}
		copy(dst[at:at+tight], src)
		src = src[min(stride, len(src)):]
	}
	return len(dst)
}
