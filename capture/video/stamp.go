package video

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"slices"

	xdraw "golang.org/x/image/draw"

	"eidetic/internal/lab"
)

// stamped shows a recording with each frame's number and time burnt in.
type stamped struct {
	f      Frames
	format lab.Format
	zero   lab.Time
	box    image.Rectangle // of the text
	canvas *image.RGBA
	pix    []byte
	shown  int // the frame on canvas, or −1
}

// stampText is the longest text that fits into the box.
const stampText = "frame 000000  +000000.000 ms"

// Stamped returns the recording with the number of each frame and its time
// since frame zero in the top left corner, as BGRX. It is not safe for use by several
// goroutines.
func Stamped(f Frames, zero int) (Frames, error) {
	if zero < 0 || zero >= f.Len() {
		return nil, fmt.Errorf("timestamps: frame %d is not among 0 … %d", zero, f.Len()-1)
	}
	s := &stamped{f: f, format: f.Format(), zero: f.Info(zero).Time, shown: -1}
	s.format.Pixels = lab.BGRX
	scale := 1
	if s.format.Height >= 720 {
		scale = 2
	}
	s.box = image.Rect(0, 0, scale*(7*len(stampText)+8), scale*17).Intersect(s.format.Bounds())
	s.canvas = image.NewRGBA(s.format.Bounds())
	s.pix = make([]byte, s.format.FrameSize())
	return s, nil
}

func (s *stamped) Format() lab.Format { return s.format }
func (s *stamped) Len() int           { return s.f.Len() }

// Info adds the text to what changed.
func (s *stamped) Info(i int) lab.FrameInfo {
	info := s.f.Info(i)
	info.Flags &^= lab.FrameRepeat
	info.Changed = append(slices.Clone(info.Changed), s.box)
	return info
}

// Pixels draws the frame and the text.
func (s *stamped) Pixels(i int) ([]byte, error) {
	pix, err := s.f.Pixels(i)
	if err != nil {
		return nil, err
	}
	changed := []image.Rectangle{s.format.Bounds()}
	if i == s.shown+1 && s.shown >= 0 {
		changed = append(slices.Clone(s.f.Info(i).Changed), s.box)
	}
	s.shown = -1 // unless all goes well
	for _, r := range changed {
		if err := ToRGBA(s.canvas, s.f.Format(), pix, r); err != nil {
			return nil, err
		}
	}
	text := fmt.Sprintf("frame %d  %+.3f ms", i, s.f.Info(i).Time.Sub(s.zero).Seconds()*1e3)
	small := image.NewRGBA(image.Rect(0, 0, 7*len(stampText)+8, 17))
	draw.Draw(small, small.Rect, image.Black, image.Point{}, draw.Src)
	label(small, image.Pt(4, 13), text, color.White)
	xdraw.NearestNeighbor.Scale(s.canvas, s.box, small, image.Rectangle{Max: s.box.Size().Div(max(1, s.box.Dy()/17))}, draw.Src, nil)
	for _, r := range changed {
		toBGRX(s.pix, s.format, s.canvas, r)
	}
	s.shown = i
	return s.pix, nil
}

// toBGRX copies the part r of an image, which has the frame's size, into a frame.
func toBGRX(dst []byte, f lab.Format, src *image.RGBA, r image.Rectangle) {
	for y := r.Min.Y; y < r.Max.Y; y++ {
		in := src.Pix[src.PixOffset(r.Min.X, y):][:4*r.Dx()]
		out := dst[y*f.Stride()+4*r.Min.X:][:4*r.Dx()]
		for k := 0; k < len(in); k += 4 {
			out[k], out[k+1], out[k+2], out[k+3] = in[k+2], in[k+1], in[k], 0
		}
	}
}
