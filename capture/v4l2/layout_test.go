package v4l2

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"eidetic/capture/diff"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// laid is a picture of 4 × 2 pixels as a driver lays it out: the rows of each plane.
type laid struct {
	code string
	rows [][][]byte
	want [][]byte // the rows of our planes
}

// Samples of the picture: brightness, and colour differences at half the resolution across.
var (
	luma  = [][]byte{{10, 11, 12, 13}, {14, 15, 16, 17}}
	uRows = [][]byte{{101, 102}, {103, 104}}
	vRows = [][]byte{{201, 202}, {203, 204}}
	uvs   = [][]byte{{101, 201, 102, 202}, {103, 203, 104, 204}}
	vus   = [][]byte{{201, 101, 202, 102}, {203, 103, 204, 104}}
	yuyv  = [][]byte{{10, 101, 11, 201, 12, 102, 13, 202}, {14, 103, 15, 203, 16, 104, 17, 204}}
	uyvy  = [][]byte{{101, 10, 201, 11, 102, 12, 202, 13}, {103, 14, 203, 15, 104, 16, 204, 17}}
	nv12  = [][]byte{luma[0], luma[1], uvs[0]}
	bgr   = [][]byte{{3, 2, 1, 6, 5, 4, 9, 8, 7, 12, 11, 10}, {13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24}}
	rgb   = [][]byte{{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {15, 14, 13, 18, 17, 16, 21, 20, 19, 24, 23, 22}}
	// Red, blue, white and the grey 128 of BT.601 in limited range, as (255, 0, 0) makes (81, 90, 240) by the
	// standard's formula; the second row has them in the opposite order. Red comes back as 254: 1.164·65 + 1.596·112 =
	// 254.4.
	y444 = [][]byte{{81, 41, 235, 126}, {126, 235, 41, 81}}
	u444 = [][]byte{{90, 240, 128, 128}, {128, 128, 240, 90}}
	v444 = [][]byte{{240, 110, 128, 128}, {128, 128, 110, 240}}
	bgrx = [][]byte{{0, 0, 254, 0, 255, 0, 0, 0, 255, 255, 255, 0, 128, 128, 128, 0},
		{128, 128, 128, 0, 255, 255, 255, 0, 255, 0, 0, 0, 0, 0, 254, 0}}
)

// mixed puts a byte of each row of a before the one of b.
func mixed(a, b [][]byte) (rows [][]byte) {
	for y := range a {
		var row []byte
		for x := range a[y] {
			row = append(row, a[y][x], b[y][x])
		}
		rows = append(rows, row)
	}
	return rows
}

func pictures() []laid {
	with := func(fourth byte) (rows [][]byte) { // what drivers leave in the fourth byte
		for _, row := range bgrx {
			row = bytes.Clone(row)
			for i := 3; i < len(row); i += 4 {
				row[i] = fourth
			}
			rows = append(rows, row)
		}
		return rows
	}
	return []laid{
		{"XR24", [][][]byte{with(7)}, bgrx},
		{"BGR4", [][][]byte{with(0)}, bgrx},
		{"AR24", [][][]byte{with(255)}, bgrx},
		{"BGR3", [][][]byte{bgr}, bgr},
		{"RGB3", [][][]byte{rgb}, bgr},
		{"YUYV", [][][]byte{yuyv}, yuyv},
		{"YVYU", [][][]byte{{{10, 201, 11, 101, 12, 202, 13, 102}, {14, 203, 15, 103, 16, 204, 17, 104}}}, yuyv},
		{"UYVY", [][][]byte{uyvy}, uyvy},
		{"VYUY", [][][]byte{{{201, 10, 101, 11, 202, 12, 102, 13}, {203, 14, 103, 15, 204, 16, 104, 17}}}, uyvy},
		{"NV16", [][][]byte{luma, uvs}, yuyv},
		{"NV61", [][][]byte{luma, vus}, yuyv},
		{"422P", [][][]byte{luma, uRows, vRows}, yuyv},
		{"NM16", [][][]byte{luma, uvs}, yuyv},
		{"NM61", [][][]byte{luma, vus}, yuyv},
		{"YM16", [][][]byte{luma, uRows, vRows}, yuyv},
		{"YM61", [][][]byte{luma, vRows, uRows}, yuyv},
		{"NV12", [][][]byte{luma, uvs[:1]}, nv12},
		{"NM12", [][][]byte{luma, uvs[:1]}, nv12},
		{"NV21", [][][]byte{luma, vus[:1]}, nv12},
		{"NM21", [][][]byte{luma, vus[:1]}, nv12},
		{"YU12", [][][]byte{luma, uRows[:1], vRows[:1]}, nv12},
		{"YV12", [][][]byte{luma, vRows[:1], uRows[:1]}, nv12},
		{"YM12", [][][]byte{luma, uRows[:1], vRows[:1]}, nv12},
		{"YM21", [][][]byte{luma, vRows[:1], uRows[:1]}, nv12},
		// Ten bits in the upper bits of sixteen, little-endian: 64 (black) is 0x1000, 940 (white) 0xeb00; 1023 is
		// 255.75, which does not fit; 41 is 10.25, 42 is 10.5, 43 is 10.75.
		{"P010", [][][]byte{
			{{0x00, 0x10, 0x00, 0xeb, 0xc0, 0xff, 0x00, 0x00}, {0x40, 0x0a, 0x80, 0x0a, 0xc0, 0x0a, 0x00, 0x0b}},
			{{0x00, 0x80, 0x40, 0x80, 0x80, 0x80, 0x00, 0xf0}},
		}, [][]byte{{16, 235, 255, 0}, {10, 11, 11, 11}, {128, 128, 129, 240}}},
		{"GREY", [][][]byte{luma}, luma},
		{"NV24", [][][]byte{y444, mixed(u444, v444)}, bgrx},
		{"NV42", [][][]byte{y444, mixed(v444, u444)}, bgrx},
		{"YM24", [][][]byte{y444, u444, v444}, bgrx},
		{"YM42", [][][]byte{y444, v444, u444}, bgrx},
	}
}

// Every layout becomes what it stands for, also in rows with padding and of widths that no word divides.
func TestLayouts(t *testing.T) {
	seen := map[string]bool{"MJPG": true, "JPEG": true} // have no rows
	for _, p := range pictures() {
		seen[p.code] = true
		l, ok := known(fourcc(p.code))
		if !ok {
			t.Errorf("%s is not known", p.code)
			continue
		}
		for times := 1; times <= 9; times++ {
			for _, padding := range []int{0, 8 * times} {
				f := lab.Format{Pixels: l.pixels, Width: 4 * times, Height: 2, Rate: 60, Matrix: lab.BT601}
				want := bytes.Join(repeated(p.want, times), nil)
				mem, strides := p.memory(l, times, padding)
				got := make([]byte, f.FrameSize())
				if n := l.assemble(got, f, f.YCbCr().Tables(), mem, strides); n != len(got) || !bytes.Equal(got, want) {
					t.Errorf("%s, %d pixels wide in rows of %d bytes: %d bytes\n%v, want\n%v", p.code, f.Width, strides[0], n, got, want)
				}
			}
		}
	}
	for _, l := range layouts() {
		if !seen[l.code] {
			t.Errorf("no picture is known of %s", l.code)
		}
	}
}

// memory is what a driver fills with a picture that stands so many times beside itself.
func (p laid) memory(l layout, times, padding int) (mem [][]byte, strides []int) {
	granted := []planeFormat{{stride: uint32(times*len(p.rows[0][0]) + padding)}}
	if l.apart {
		granted = nil
		for _, plane := range p.rows {
			granted = append(granted, planeFormat{stride: uint32(times*len(plane[0]) + padding)})
		}
	}
	strides = l.strides(granted)
	for i, plane := range p.rows {
		if i == 0 || l.apart {
			mem = append(mem, nil)
		}
		last := len(mem) - 1
		for _, row := range repeated(plane, times) {
			mem[last] = append(mem[last], row...)
			mem[last] = append(mem[last], bytes.Repeat([]byte{0xee}, strides[i]-len(row))...)
		}
	}
	return mem, strides
}

func repeated(rows [][]byte, times int) (wide [][]byte) {
	for _, row := range rows {
		wide = append(wide, bytes.Repeat(row, times))
	}
	return wide
}

// A buffer that ends early gives the rows before its end.
func TestLayoutsOfShortBuffers(t *testing.T) {
	for _, p := range pictures() {
		l, _ := known(fourcc(p.code))
		f := lab.Format{Pixels: l.pixels, Width: 4, Height: 2, Rate: 60}
		mem, strides := p.memory(l, 1, 0)
		last := len(mem) - 1
		mem[last] = mem[last][:len(mem[last])-1]
		got := make([]byte, f.FrameSize())
		if n := l.assemble(got, f, f.YCbCr().Tables(), mem, strides); n >= len(got) {
			t.Errorf("%s without its last byte: %d bytes of %d were filled", p.code, n, len(got))
		}
	}
}

// What a driver says of its samples' colours, and what V4L2 says where it says part.
func TestColours(t *testing.T) {
	for _, c := range []struct {
		name    string
		says    pixFormat
		isYCbCr bool
		m       lab.Matrix
		r       lab.ColourRange
	}{
		{"nothing is said", pixFormat{}, true, "", ""},
		{"SMPTE 170M", pixFormat{colourspace: 1}, true, lab.BT601, lab.LimitedRange},
		{"Rec. 709", pixFormat{colourspace: 3}, true, lab.BT709, lab.LimitedRange},
		{"BT.2020", pixFormat{colourspace: 10}, true, lab.BT2020, lab.LimitedRange},
		{"sRGB, as of USB cameras", pixFormat{colourspace: 8}, true, lab.BT601, lab.LimitedRange},
		{"JPEG", pixFormat{colourspace: 7}, true, lab.BT601, lab.FullRange},
		{"the encoding before the space", pixFormat{colourspace: 8, encoding: 2, quantisation: 1}, true, lab.BT709, lab.FullRange},
		{"SMPTE 240M", pixFormat{colourspace: 2, quantisation: 2}, true, lab.SMPTE240M, lab.LimitedRange},
		{"RGB", pixFormat{colourspace: 8}, false, "", ""},
		{"RGB as on a television", pixFormat{colourspace: 8, quantisation: 2}, false, "", lab.LimitedRange},
	} {
		if m, r := c.says.colours(c.isYCbCr); m != c.m || r != c.r {
			t.Errorf("%s: colours() = %q, %q; want %q, %q", c.name, m, r, c.m, c.r)
		}
	}
}

// A driver's format says its colours; what was converted to RGB is of full range.
func TestColoursOfASource(t *testing.T) {
	for _, c := range []struct {
		code                             string
		size, stride                     uint32
		encoding, quantisation           uint32
		pixels                           lab.PixelFormat
		matrix                           lab.Matrix
		colours                          lab.ColourRange
		layout, notLossless, colourWords string
	}{
		{"YU12", 24, 4, 6, 1, lab.NV12, lab.BT2020, lab.FullRange, "YU12, kept as NV12: the same samples in another order", "",
			"sRGB, matrix 2020, full range"},
		{"NV24", 48, 4, 2, 2, lab.BGRX, "", "", "NV24, 4:4:4 at the source, converted to RGB",
			"NV24, 4:4:4 at the source, converted to RGB", "sRGB, matrix 709, limited range (16 … 235)"},
		{"GREY", 16, 4, 0, 2, lab.Grey, "", "", "", "", "sRGB, full range"},
		{"P010", 48, 8, 7, 0, lab.NV12, lab.BT2020, lab.LimitedRange, "P010, 10 bits a sample at the source, rounded to 8",
			"P010, 10 bits a sample at the source, rounded to 8", "sRGB, matrix 2020 (the driver says constant luminance, " +
				"which is not converted: colours are approximate), limited range (16 … 235)"},
	} {
		dev := newFake(4, 4, c.code, c.stride, delivery{value: 100})
		setU32(dev.format[:], 28, c.size)
		setU32(dev.format[:], 32, spaceSRGB)
		setU32(dev.format[:], 44, c.encoding)
		setU32(dev.format[:], 48, c.quantisation)
		s, err := start(dev, Options{}, dev.settings)
		if err != nil {
			t.Errorf("%s: %v", c.code, err)
			continue
		}
		want := lab.Format{Pixels: c.pixels, Width: 4, Height: 4, Rate: s.Format().Rate, Matrix: c.matrix, Range: c.colours}
		if s.Format() != want || s.NotLossless() != c.notLossless || s.Notes()["layout"] != c.layout || s.Notes()["colour"] != c.colourWords {
			t.Errorf("%s: %+v, %q, %v; want %+v, %q, layout %q, colour %q", c.code, s.Format(), s.NotLossless(), s.Notes(), want,
				c.notLossless, c.layout, c.colourWords)
		}
		if f, err := s.Next(t.Context()); err != nil || f.Flags != 0 || len(f.Pix) != want.FrameSize() {
			t.Errorf("%s: %d bytes with flags %d (%v), want %d whole ones", c.code, len(f.Pix), f.Flags, err, want.FrameSize())
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// FuzzLayouts: whatever a driver says of its rows and fills, nothing beyond its memory is read, and nothing beyond the
// frame written.
func FuzzLayouts(f *testing.F) {
	for i, l := range layouts() {
		f.Add(uint8(i), 4, 2, 64, uint16(100), []byte(l.code+" filled by a driver, more or less"))
	}
	f.Fuzz(func(t *testing.T, which uint8, width, height, stride int, cut uint16, data []byte) {
		defer testlab.Input(t)()
		l := layouts()[int(which)%len(layouts())]
		if width < 1 || width > 300 || height < 1 || height > 40 || stride < 0 || stride > 1<<16 {
			return
		}
		format := lab.Format{Pixels: l.pixels, Width: width, Height: height, Rate: 60}
		granted := slices.Repeat([]planeFormat{{stride: uint32(stride)}}, max(1, len(l.planes)))
		if !l.apart {
			granted = granted[:1]
		}
		if l.pixels == lab.MJPEG || l.check(format, granted) != nil {
			return // is refused before it streams
		}
		mem := [][]byte{data}
		if l.apart {
			at := min(int(cut), len(data))
			mem = [][]byte{data[:at:at], data[at:], data}[:len(l.planes)]
		}
		dst := make([]byte, format.FrameSize())
		if n := l.assemble(dst, format, format.YCbCr().Tables(), mem, l.strides(granted)); n < 0 || n > len(dst) {
			t.Errorf("%s: assemble() = %d of %d bytes", l.code, n, len(dst))
		}
	})
}

// BenchmarkLayouts takes a frame of 1920 × 1080 out of the driver's memory; at 60 frames a second there are 16.7 ms.
// The time of the processor counts, of the quickest frame too: a machine that does other things delays the rest.
func BenchmarkLayouts(b *testing.B) {
	for _, l := range layouts() {
		if l.pixels == lab.MJPEG {
			continue
		}
		b.Run(l.code+"/noise", func(b *testing.B) { l.benchmark(b, 1) })
		if l.isYCbCr() && l.pixels == lab.BGRX { // converts each pixel that differs from the one before
			b.Run(l.code+"/screen", func(b *testing.B) { l.benchmark(b, 16) })
		}
	}
}

// benchmark fills the planes with runs of equal bytes.
func (l layout) benchmark(b *testing.B, run int) {
	r := rand.New(rand.NewPCG(1, 2))
	f := lab.Format{Pixels: l.pixels, Width: 1920, Height: 1080, Rate: 60}
	var mem [][]byte
	var granted []planeFormat
	for i, p := range l.planes {
		granted = append(granted, planeFormat{stride: uint32(p.tight(f.Width))})
		if i == 0 || l.apart {
			mem = append(mem, nil)
		}
		for k := 0; k < p.tight(f.Width)*p.rows(f.Height); k += run {
			mem[len(mem)-1] = append(mem[len(mem)-1], bytes.Repeat([]byte{byte(r.Uint32())}, run)...)
		}
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	spent := func() time.Duration {
		var u unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_THREAD, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	strides, dst, c := l.strides(granted), make([]byte, f.FrameSize()), f.YCbCr().Tables()
	begin, least := spent(), time.Hour
	for b.Loop() {
		began := time.Now()
		if l.assemble(dst, f, c, mem, strides) != len(dst) {
			b.Fatal("not all was filled")
		}
		least = min(least, time.Since(began))
	}
	b.ReportMetric(float64((spent()-begin).Microseconds())/1e3/float64(b.N), "cpu-ms/frame")
	b.ReportMetric(float64(least.Microseconds())/1e3, "least-ms/frame")
}

// The planes of ours that steps fill are those of the format.
func TestStepsFillEveryPlane(t *testing.T) {
	for _, l := range layouts() {
		if planes := diff.Planes(lab.Format{Pixels: l.pixels, Width: 4, Height: 4}); l.steps != nil && len(l.steps) != len(planes) {
			t.Errorf("%s: %d steps for %d planes of %s", l.code, len(l.steps), len(planes), l.pixels)
		}
	}
}
