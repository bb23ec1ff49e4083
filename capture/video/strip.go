package video

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"

	"golang.org/x/image/draw"
	"golang.org/x/image/font"
	"golang.org/x/image/font/basicfont"
	"golang.org/x/image/math/fixed"

	"eidetic/internal/lab"
)

// Thumb is one picture of a filmstrip.
type Thumb struct {
	Frame  int     `json:"frame"`          // index in the recording
	TimeMS float64 `json:"time_ms"`        // since the strip's first frame
	File   string  `json:"file,omitempty"` // name in the strip's folder
}

// StripOptions of a filmstrip.
type StripOptions struct {
	First, Last int             // frames, inclusive; Last 0 means the last one
	Crop        image.Rectangle // part of the picture; default all of it
	Width       int             // of one thumbnail, pixels; default 200
	// EveryMS takes a picture at this distance. 0 means at visual changes:
	// pictures lie so that about as much of the screen changes between any two.
	EveryMS float64
	Max     int // pictures; default 12 at changes, 1000 at a distance
}

// choose returns the frames of a strip.
func choose(f Frames, o StripOptions) ([]Thumb, error) {
	first, last, err := span(f, o.First, o.Last)
	if err != nil {
		return nil, err
	}
	start := f.Info(first).Time
	var picked []Thumb
	pick := func(i int) {
		picked = append(picked, Thumb{Frame: i, TimeMS: f.Info(i).Time.Sub(start).Seconds() * 1e3})
	}
	pick(first)
	if o.EveryMS > 0 {
		for i := first + 1; i <= last && len(picked) < orDefault(o.Max, 1000); i++ {
			if t := f.Info(i).Time.Sub(start).Seconds() * 1e3; t >= float64(len(picked))*o.EveryMS-500/f.Format().Rate {
				pick(i)
			}
		}
		return picked, nil
	}
	// weight is the share of the screen that a frame changed, and a little for
	// changing anything.
	weight := func(i int) float64 {
		area := 0
		for _, r := range f.Info(i).Changed {
			area += r.Dx() * r.Dy()
		}
		if area == 0 {
			return 0
		}
		return 0.02 + min(1, float64(area)/float64(f.Format().Width*f.Format().Height))
	}
	var total float64
	final := first
	for i := first + 1; i <= last; i++ {
		if w := weight(i); w > 0 {
			total, final = total+w, i
		}
	}
	pictures := max(2, orDefault(o.Max, 12))
	var sum float64
	for i := first + 1; i <= final; i++ {
		w := weight(i)
		sum += w
		if i == final || w > 0 && sum >= total*float64(len(picked))/float64(pictures-1) && len(picked) < pictures-1 {
			pick(i)
		}
	}
	return picked, nil
}

func orDefault(v, d int) int {
	if v <= 0 {
		return d
	}
	return v
}

// thumbs calls each with every picture of the strip, scaled, and whether it
// differs from the one before; the image is valid during the call.
func thumbs(ctx context.Context, f Frames, o StripOptions, each func(n int, t Thumb, img *image.RGBA, differs bool) error) (
	[]Thumb, error) {
	picked, err := choose(f, o)
	if err != nil {
		return nil, err
	}
	in, err := crop(f.Format(), o.Crop)
	if err != nil {
		return nil, err
	}
	width := min(orDefault(o.Width, 200), in.Dx())
	small := image.NewRGBA(image.Rect(0, 0, width, max(1, in.Dy()*width/in.Dx())))
	full := image.NewRGBA(f.Format().Bounds())
	half := image.NewRGBA(image.Rect(0, 0, in.Dx()/2, in.Dy()/2))
	for n := range picked {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if n > 0 && still(f, picked[n-1].Frame, picked[n].Frame, in) {
			if err := each(n, picked[n], small, false); err != nil {
				return nil, err
			}
			continue
		}
		pix, err := f.Pixels(picked[n].Frame)
		if err != nil {
			return nil, err
		}
		if err := ToRGBA(full, f.Format(), pix, in); err != nil {
			return nil, fmt.Errorf("frame %d: %w", picked[n].Frame, err)
		}
		from, part := halved(half, full, in, width)
		draw.BiLinear.Scale(small, small.Rect, from, part, draw.Src, nil)
		if err := each(n, picked[n], small, true); err != nil {
			return nil, err
		}
	}
	return picked, nil
}

// still says that no pixel of r changed after frame a, up to frame b.
func still(f Frames, a, b int, r image.Rectangle) bool {
	if f.Format().Pixels == lab.MJPEG {
		return false // it is not known what changed
	}
	for i := a + 1; i <= b; i++ {
		if touches(f.Info(i).Changed, r) {
			return false
		}
	}
	return true
}

// halved returns what to scale from: the part of full, or the mean of each four of
// its pixels where a thumbnail is less than half as wide. Scaling takes time by
// the pixels that it reads, and takes all of them into account.
func halved(half, full *image.RGBA, part image.Rectangle, width int) (*image.RGBA, image.Rectangle) {
	if part.Dx() < 2*width || part.Dy() < 2 {
		return full, part
	}
	for y := range half.Rect.Dy() {
		a := full.Pix[full.PixOffset(part.Min.X, part.Min.Y+2*y):][:8*half.Rect.Dx()]
		b := full.Pix[full.PixOffset(part.Min.X, part.Min.Y+2*y+1):][:len(a)]
		out := half.Pix[y*half.Stride:][:len(a)/2]
		for x := 0; x < len(out); x += 4 {
			p, q, o := a[2*x:2*x+8:2*x+8], b[2*x:2*x+8:2*x+8], out[x:x+4:x+4]
			for c := range 3 {
				o[c] = byte((int(p[c]) + int(p[c+4]) + int(q[c]) + int(q[c+4]) + 2) / 4)
			}
			o[3] = 255
		}
	}
	return half, half.Rect
}

// Filmstrip writes JPEG thumbnails into the folder dir, which must exist, as
// strip-000.jpg and so on, and returns them in order.
func Filmstrip(ctx context.Context, f Frames, dir string, o StripOptions) ([]Thumb, error) {
	var picture bytes.Buffer
	picked, err := thumbs(ctx, f, o, func(n int, _ Thumb, img *image.RGBA, differs bool) error {
		if differs {
			picture.Reset()
			if err := jpeg.Encode(&picture, img, &jpeg.Options{Quality: 85}); err != nil {
				return err
			}
		}
		return os.WriteFile(filepath.Join(dir, stripName(n)), picture.Bytes(), 0o644)
	})
	if err != nil {
		return nil, fmt.Errorf("filmstrip: %w", err)
	}
	for n := range picked {
		picked[n].File = stripName(n)
	}
	return picked, nil
}

func stripName(n int) string { return fmt.Sprintf("strip-%03d.jpg", n) }

// save writes a file through fn.
func save(path string, fn func(*os.File) error) error {
	w, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := fn(w); err != nil {
		w.Close()
		return fmt.Errorf("%s: %w", path, err)
	}
	return w.Close()
}

// Contact draws the strip into one PNG file at path, each picture with its
// time below, in one row.
func Contact(ctx context.Context, f Frames, path string, o StripOptions) ([]Thumb, error) {
	const margin, line = 6, 16
	var sheet *image.RGBA
	picked, err := choose(f, o)
	if err != nil {
		return nil, fmt.Errorf("contact sheet: %w", err)
	}
	_, err = thumbs(ctx, f, o, func(n int, t Thumb, img *image.RGBA, _ bool) error {
		w, h := img.Rect.Dx()+margin, img.Rect.Dy()
		if sheet == nil {
			sheet = image.NewRGBA(image.Rect(0, 0, w*len(picked)+margin, h+2*margin+line))
			draw.Draw(sheet, sheet.Rect, image.White, image.Point{}, draw.Src)
		}
		at := image.Pt(margin+n*w, margin)
		draw.Draw(sheet, img.Rect.Add(at), img, image.Point{}, draw.Src)
		label(sheet, image.Pt(at.X, at.Y+h+line-3), fmt.Sprintf("%.0f ms", t.TimeMS), color.Black)
		return nil
	})
	if err == nil {
		err = save(path, func(w *os.File) error { return png.Encode(w, sheet) })
	}
	if err != nil {
		return nil, fmt.Errorf("contact sheet: %w", err)
	}
	return picked, nil
}

// label writes text with its base line's start at p.
func label(dst *image.RGBA, p image.Point, text string, c color.Color) {
	d := font.Drawer{Dst: dst, Src: image.NewUniform(c), Face: basicfont.Face7x13, Dot: fixed.P(p.X, p.Y)}
	d.DrawString(text)
}
