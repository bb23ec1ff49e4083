package qualify

import (
	"fmt"
	"image"

	"eidetic/capture/mjpeg"
	"eidetic/internal/lab"
)

// Fidelity says how the pixels of frames compare with those that were shown.
type Fidelity struct {
	Lossless bool   `json:"lossless"` // as far as the pixel format can be
	Words    string `json:"words"`
	// Of the pixels that were compared (all in RGB formats, the grey ones
	// otherwise): the share that differs by more than rounding, and by how many levels.
	Different float64 `json:"different_percent"`
	Worst     int     `json:"worst_levels"`
	Compared  int     `json:"frames_compared"`
}

// comparer compares frames with the picture that was shown.
type comparer struct {
	format lab.Format
	shown  []byte // BGRX
	loses  string // what the source says that it loses; "" for nothing
	pixels int
	wrong  [3]int // in RGB; luma in full range, in limited range
	worst  [3]int
	frames int // that were compared
	came   int // frames that arrived
	read   int // of them those whose number could be read
}

// How the values of a frame can be read.
const (
	asRGB = iota
	asFull
	asLimited
)

func (c *comparer) add(pix []byte) {
	c.frames++
	switch c.format.Pixels {
	case lab.BGRX, lab.BGR24:
		c.rgb(pix)
	default:
		c.luma(pix)
	}
}

// rgb compares every pixel below the number.
func (c *comparer) rgb(pix []byte) {
	step, stretch, rounding := c.format.Stride()/c.format.Width, c.format.Stretch(), 0
	if stretch != nil {
		rounding = 1
	}
	for i := stripRows * c.format.Width; i < c.format.Width*c.format.Height; i++ {
		worst := 0
		for k := range 3 {
			v := pix[step*i+k]
			if stretch != nil {
				v = stretch[v]
			}
			worst = max(worst, distance(v, int(c.shown[4*i+k])))
		}
		c.note(asRGB, worst, rounding)
		c.pixels++
	}
}

// luma compares the brightness of the grey areas; of the coloured one it
// depends on the matrix, and colour was averaged by the format.
func (c *comparer) luma(pix []byte) {
	const rounding = 1
	for y := greyTop; y < noiseTop; y++ {
		for x := range c.format.Width {
			v, got := int(grey(x, y, c.format.Width)), brightness(c.format, pix, x, y)
			c.note(asFull, distance(got, v), rounding)
			c.note(asLimited, distance(got, 16+(v*219+127)/255), rounding)
			c.pixels++
		}
	}
}

func (c *comparer) note(reading, distance, rounding int) {
	if distance > rounding {
		c.wrong[reading]++
	}
	c.worst[reading] = max(c.worst[reading], distance)
}

func distance(got byte, want int) int {
	d := int(got) - want
	return max(d, -d)
}

// brightness is the luma of a pixel.
func brightness(f lab.Format, pix []byte, x, y int) byte {
	i := y*f.Stride() + x*f.Stride()/f.Width
	switch f.Pixels {
	case lab.UYVY:
		return pix[y*f.Stride()+2*x+1]
	case lab.YUYV:
		return pix[y*f.Stride()+2*x]
	default:
		return pix[i]
	}
}

// fidelity sums up the comparison.
func (c *comparer) fidelity() Fidelity {
	f := Fidelity{Compared: c.frames}
	if c.pixels == 0 {
		f.Words = c.uncompared()
		return f
	}
	reading := asRGB
	if c.format.Pixels != lab.BGRX && c.format.Pixels != lab.BGR24 {
		if reading = asFull; c.wrong[asLimited] < c.wrong[asFull] {
			reading = asLimited
		}
	}
	f.Different = 100 * float64(c.wrong[reading]) / float64(c.pixels)
	f.Worst = c.worst[reading]
	f.Lossless = c.wrong[reading] == 0 && c.format.Pixels != lab.MJPEG && c.loses == ""
	switch {
	case c.format.Pixels == lab.MJPEG:
		f.Words = "lossy: the grabber compresses with JPEG"
	case !f.Lossless && c.wrong[reading]*10 > c.pixels*9:
		f.Words = "not the picture that was shown: scaled, shifted or converted"
	case c.loses != "":
		f.Words = fmt.Sprintf("lossy: %s; no pixel differs by more than %d levels", c.loses, f.Worst)
	case !f.Lossless:
		f.Words = "lossy: the grabber compresses, scales or filters"
	case reading == asRGB:
		f.Words = "lossless: every pixel is as it was shown"
	default:
		f.Words = fmt.Sprintf("lossless as far as %s can be: brightness as shown (%s range), colour at a part of the resolution",
			c.format.Pixels, map[int]string{asFull: "full", asLimited: "limited"}[reading])
		if c.format.Pixels == lab.Grey {
			f.Words = "lossless as far as GREY can be: brightness as shown, no colour"
		}
	}
	return f
}

// uncompared says why no frame was compared.
func (c *comparer) uncompared() string {
	switch {
	case c.came == 0:
		return "not compared: no frame arrived"
	case c.read == 0:
		return "no picture's number could be read: the grabber scales or cuts the picture, or something lies over its top"
	}
	return fmt.Sprintf("not compared: %d frames arrived whose number could be read, but none of those that are compared, which is one number of %d",
		c.read, compareEvery)
}

// decode makes of a JPEG its brightness, in full range.
func decode(b []byte, f lab.Format) ([]byte, error) {
	m, err := mjpeg.Picture(b, f)
	if err != nil {
		return nil, err
	}
	var luma []byte
	var stride int
	switch m := m.(type) {
	case *image.YCbCr:
		luma, stride = m.Y, m.YStride
	case *image.Gray:
		luma, stride = m.Pix, m.Stride
	default:
		return nil, fmt.Errorf("a JPEG with colours of type %T", m)
	}
	out := make([]byte, 0, f.Width*f.Height)
	for y := range f.Height {
		out = append(out, luma[y*stride:][:f.Width]...)
	}
	return out, nil
}
