package video

import (
	"fmt"
	"image"
	"io"

	"golang.org/x/image/draw"

	"eidetic/internal/lab"
)

// filmPicture turns frames into pictures of a film.
type filmPicture interface {
	// header returns the film's size and YUV4MPEG2's name of its colour space.
	header() (w, h int, colour string)
	// update shows a frame; changed are the parts that differ from the one shown.
	update(f lab.Format, pix []byte, changed []image.Rectangle) error
	// bytes is the picture, valid until the next update.
	bytes() []byte
}

// yuvPicture is a picture in I420 (4:2:0, ITU-R BT.601 limited range, which is
// what VP8 means), made from RGBA; only what changed is made again.
type yuvPicture struct {
	in     image.Rectangle // the part of the frames that is shown
	full   *image.RGBA     // the frame
	scaled *image.RGBA     // nil when the film has the frames' own size
	w, h   int             // of the film, even
	data   []byte
}

func newYUV(f lab.Format, in image.Rectangle, width int) *yuvPicture {
	p := &yuvPicture{in: in, full: image.NewRGBA(f.Bounds()), w: in.Dx(), h: in.Dy()}
	if width > 0 && width < p.w {
		p.h, p.w = max(2, p.h*width/p.w), width
		p.scaled = image.NewRGBA(image.Rect(0, 0, p.w, p.h))
	}
	p.w, p.h = (p.w+1)&^1, (p.h+1)&^1
	p.data = make([]byte, p.w*p.h*3/2)
	return p
}

func (p *yuvPicture) header() (w, h int, colour string) { return p.w, p.h, "420jpeg" }
func (p *yuvPicture) bytes() []byte                     { return p.data }

func (p *yuvPicture) update(f lab.Format, pix []byte, changed []image.Rectangle) error {
	for _, r := range changed {
		if r = r.Intersect(p.in); r.Empty() {
			continue
		}
		if err := ToRGBA(p.full, f, pix, r); err != nil {
			return err
		}
		if p.scaled == nil {
			p.convert(p.full, p.in.Min, r.Sub(p.in.Min))
		}
	}
	if p.scaled != nil && len(changed) > 0 {
		draw.ApproxBiLinear.Scale(p.scaled, p.scaled.Rect, p.full, p.in, draw.Src, nil)
		p.convert(p.scaled, image.Point{}, p.scaled.Rect)
	}
	return nil
}

// convert makes the part r of the film from src, whose pixel at origin is the film's first.
func (p *yuvPicture) convert(src *image.RGBA, origin image.Point, r image.Rectangle) {
	limit := image.Pt(p.in.Dx()-1, p.in.Dy()-1).Add(origin)
	if p.scaled != nil {
		limit = p.scaled.Rect.Max.Sub(image.Pt(1, 1))
	}
	luma, u, v := p.data[:p.w*p.h], p.data[p.w*p.h:], p.data[p.w*p.h*5/4:]
	for y := r.Min.Y &^ 1; y < r.Max.Y; y += 2 {
		for x := r.Min.X &^ 1; x < r.Max.X; x += 2 {
			var sr, sg, sb int32
			for k := range 4 {
				dx, dy := k&1, k>>1
				// Past an odd edge the last pixel is repeated.
				at := src.PixOffset(min(x+dx+origin.X, limit.X), min(y+dy+origin.Y, limit.Y))
				px := src.Pix[at : at+3 : at+3]
				r, g, b := int32(px[0]), int32(px[1]), int32(px[2])
				luma[(y+dy)*p.w+x+dx] = byte((66*r+129*g+25*b+128)>>8 + 16)
				sr, sg, sb = sr+r, sg+g, sb+b
			}
			at := y/2*(p.w/2) + x/2
			u[at] = byte((-38*sr-74*sg+112*sb+512)>>10 + 128)
			v[at] = byte((112*sr-94*sg-18*sb+512)>>10 + 128)
		}
	}
}

// longestFilm, in seconds, stops a recording with a wild timestamp from filling the disk.
const longestFilm = 24 * 60 * 60

// writeY4M writes the frames on a constant timeline of rate frames per second
// (YUV4MPEG2, as mjpegtools defines it): at each instant the newest frame. p makes
// the pictures; nil means 4:2:0, for people.
func writeY4M(w io.Writer, f Frames, o Options, p filmPicture, stop func() error) error {
	first, last, err := span(f, o.First, o.Last)
	if err != nil {
		return err
	}
	in, err := crop(f.Format(), o.Crop)
	if err != nil {
		return err
	}
	rate := o.Rate
	if rate == 0 {
		rate = 60
	}
	if p == nil {
		p = newYUV(f.Format(), in, o.Width)
	}
	start := f.Info(first).Time
	length := f.Info(last).Time.Sub(start).Seconds()
	if length < 0 || length > longestFilm {
		return fmt.Errorf("frames %d … %d span %.0f s, a film may last %d", first, last, length, longestFilm)
	}
	if _, err := fmt.Fprint(w, y4mHeader(p, rate)); err != nil {
		return err
	}
	shown := first - 1
	for n := 0; float64(n) <= length*rate+0.5; n++ {
		if err := stop(); err != nil {
			return err
		}
		// Half a period of tolerance: a frame that came a little late stands in its own place.
		due := start + lab.Time((float64(n)+0.5)/rate*1e9)
		for shown < last && (shown < first || f.Info(shown+1).Time < due) {
			shown++
			if err := show(p, f, shown, shown == first); err != nil {
				return err
			}
		}
		if err := writePicture(w, p); err != nil {
			return err
		}
	}
	return nil
}

// y4mHeader begins a stream of pictures.
func y4mHeader(p filmPicture, rate float64) string {
	width, height, colour := p.header()
	return fmt.Sprintf("YUV4MPEG2 W%d H%d F%d:1000 Ip A1:1 C%s\n", width, height, int(rate*1000+0.5), colour)
}

// writePicture writes one picture of a stream.
func writePicture(w io.Writer, p filmPicture) error {
	if _, err := io.WriteString(w, "FRAME\n"); err != nil {
		return err
	}
	_, err := w.Write(p.bytes())
	return err
}

// show puts frame i into the film's picture.
func show(p filmPicture, f Frames, i int, whole bool) error {
	changed := f.Info(i).Changed
	if whole {
		changed = []image.Rectangle{f.Format().Bounds()}
	}
	if len(changed) == 0 {
		return nil
	}
	pix, err := f.Pixels(i)
	if err != nil {
		return err
	}
	if err := p.update(f.Format(), pix, changed); err != nil {
		return fmt.Errorf("frame %d: %w", i, err)
	}
	return nil
}
