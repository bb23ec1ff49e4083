package visual

import (
	"image"
	"image/color"
	"testing"

	"eidetic/internal/lab"
)

// lean is a film whose frames share memory where they are equal, so that ten
// seconds of 720p fit.
func lean(n int, edit func(i int, f lab.Format, pix []byte) image.Rectangle) *still {
	f := bgrx(1280, 720)
	s := &still{format: f}
	pix := canvas(f, white)
	for i := range n {
		next := append([]byte(nil), pix...)
		var changed []image.Rectangle
		if i == 0 {
			changed = []image.Rectangle{f.Bounds()}
		} else if r := edit(i, f, next); !r.Empty() {
			changed = []image.Rectangle{r}
		} else {
			next = pix
		}
		pix = next
		s.pix = append(s.pix, pix)
		s.infos = append(s.infos, lab.FrameInfo{Seq: uint64(i), Time: lab.Time(i) * lab.Time(period), Changed: changed})
	}
	return s
}

// still hands out frames without copying: what is measured is the analysis.
type still struct {
	format lab.Format
	pix    [][]byte
	infos  []lab.FrameInfo
}

func (s *still) Format() lab.Format           { return s.format }
func (s *still) Len() int                     { return len(s.pix) }
func (s *still) Info(i int) lab.FrameInfo     { return s.infos[i] }
func (s *still) Pixels(i int) ([]byte, error) { return s.pix[i], nil }

// BenchmarkAnalyze720p10s analyses 600 frames of 1280×720.
func BenchmarkAnalyze720p10s(b *testing.B) {
	noise := func(i, x, y int) color.RGBA {
		v := uint8(x*7 + y*13 + i*29)
		return color.RGBA{v, v ^ 0x55, uint8(y), 255}
	}
	box := func(f lab.Format, pix []byte, r image.Rectangle, i int) image.Rectangle {
		for y := r.Min.Y; y < r.Max.Y; y++ {
			for x := r.Min.X; x < r.Max.X; x++ {
				c := noise(i, x, y)
				copy(pix[y*f.Stride()+4*x:], []byte{c.B, c.G, c.R, 0})
			}
		}
		return r
	}
	films := []struct {
		name string
		edit func(i int, f lab.Format, pix []byte) image.Rectangle
	}{
		{"pageload", func(i int, f lab.Format, pix []byte) image.Rectangle {
			if i < 20 || i > 140 || i%2 == 1 { // 60 changes, from a line to the whole page
				return image.Rectangle{}
			}
			if i%20 == 0 {
				return box(f, pix, f.Bounds(), i)
			}
			return box(f, pix, image.Rect(0, i*4, 1280, i*4+80), i)
		}},
		{"spinner", func(i int, f lab.Format, pix []byte) image.Rectangle {
			return box(f, pix, image.Rect(600, 300, 680, 380), i)
		}},
		{"video", func(i int, f lab.Format, pix []byte) image.Rectangle {
			return box(f, pix, f.Bounds(), i%4)
		}},
	}
	for _, film := range films {
		n := 600
		if film.name == "video" {
			n = 60 // each frame is a megapixel of its own: see the ms/frame
		}
		s := lean(n, film.edit)
		for _, also := range []Indices{0, WPT | Perceptual | Contentful} {
			name := film.name
			if also != 0 {
				if film.name != "pageload" {
					continue
				}
				name += "/all indices"
			}
			b.Run(name, func(b *testing.B) {
				for b.Loop() {
					if _, err := Analyze(s, Options{Also: also}); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(b.Elapsed().Seconds()*1e3/float64(b.N)/float64(n), "ms/frame")
			})
		}
	}
}
