// Package scene draws what screens and cameras show, for benchmarks and tests
// of recorders: pages with anti-aliased text, pages that load, scroll by whole and by
// fractional rows, natural moving pictures, and a noisy camera.
//
// A scene is made from its name and size alone, so every run and every machine
// gets the same frames. Frames are BGRX; [Convert] makes YUYV of them.
package scene

import (
	"fmt"
	"image"
	"math"
	"math/rand/v2"
)

// Names of the scenes, the content classes of the capture benchmark.
const (
	Static   = "static"          // a page; a caret blinks
	PageLoad = "pageload"        // a page fills, a spinner turns, then it rests
	Scroll   = "scroll"          // 8 rows a frame under a fixed header, with a scroll bar
	SubPixel = "scroll-subpixel" // 7.3 rows a frame, text interpolated between rows
	Video    = "video"           // panning and zooming natural picture without noise
	Camera   = "camera"          // a still natural picture with noise of σ = 2 in every sample
)

// Names lists all scenes.
func Names() []string { return []string{Static, PageLoad, Scroll, SubPixel, Video, Camera} }

// Scene draws frames of Width × Height BGRX pixels.
type Scene struct {
	Width, Height int
	draw          func(dst []byte, n int)
}

// New makes the scene of a name.
func New(name string, width, height int) (*Scene, error) {
	s := &Scene{Width: width, Height: height}
	switch name {
	case Static:
		page := newPage(width, height)
		s.draw = func(dst []byte, n int) {
			copy(dst, page)
			if n/30%2 == 0 {
				box(dst, width, image.Rect(width/3, height/2, width/3+2, height/2+18), 0, 0, 0)
			}
		}
	case PageLoad:
		s.draw = load(newPage(width, height), width, height)
	case Scroll, SubPixel:
		step := 8.0
		if name == SubPixel {
			step = 7.3
		}
		s.draw = scroll(newPage(width, 6*height), width, height, step)
	case Video:
		s.draw = video(width, height)
	case Camera:
		s.draw = camera(width, height)
	default:
		return nil, fmt.Errorf("scene %q is not one of %v", name, Names())
	}
	return s, nil
}

// Draw draws frame n into dst, 4·Width·Height bytes.
func (s *Scene) Draw(dst []byte, n int) { s.draw(dst, n) }

// box fills a rectangle.
func box(dst []byte, width int, r image.Rectangle, red, green, blue byte) {
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			i := 4 * (y*width + x)
			dst[i], dst[i+1], dst[i+2], dst[i+3] = blue, green, red, 0
		}
	}
}

// load shows a page in tiles that appear one after another, in the order in
// which they come over a network, and a spinner while there are some to come.
func load(page []byte, width, height int) func([]byte, int) {
	const columns, rows, every = 4, 8, 5
	order := rand.New(rand.NewPCG(5, 6)).Perm(columns * rows)
	return func(dst []byte, n int) {
		for i := range dst {
			dst[i] = 0xff &^ byte(0xff*(i&3/3))
		}
		shown := min(n/every, len(order))
		for _, tile := range order[:shown] {
			x0, x1 := tile%columns*width/columns, (tile%columns+1)*width/columns
			y0, y1 := tile/columns*height/rows, (tile/columns+1)*height/rows
			for y := y0; y < y1; y++ {
				copy(dst[4*(y*width+x0):4*(y*width+x1)], page[4*(y*width+x0):])
			}
		}
		if shown < len(order) {
			for k := range 12 {
				a := float64(k) * math.Pi / 6
				x, y := width/2+int(24*math.Cos(a)), height/2+int(24*math.Sin(a))
				v := byte(20 * ((k + n) % 12))
				box(dst, width, image.Rect(x-4, y-4, x+4, y+4), v, v, 255)
			}
		}
	}
}

// scroll moves a long page up by step rows a frame, below a header that stays
// and beside a bar that shows where it is.
func scroll(page []byte, width, height int, step float64) func([]byte, int) {
	const header, bar = 80, 16
	stride := 4 * width
	rows := len(page) / stride
	return func(dst []byte, n int) {
		copy(dst, page[:header*stride])
		at := math.Mod(float64(n)*step, float64(rows-height-1))
		first, frac := int(at), int(256*(at-math.Floor(at)))
		for y := header; y < height; y++ {
			a := page[(first+y)*stride:][:stride]
			out := dst[y*stride:][:stride]
			if frac == 0 {
				copy(out, a)
				continue
			}
			b := page[(first+y+1)*stride:][:stride]
			for i := range out {
				out[i] = byte((int(a[i])*(256-frac) + int(b[i])*frac + 128) >> 8)
			}
		}
		box(dst, width, image.Rect(width-bar, header, width, height), 240, 240, 240)
		thumb := header + int(at)*(height-header)/rows
		box(dst, width, image.Rect(width-bar+3, thumb, width-3, thumb+height/6), 150, 150, 150)
	}
}
