package video

import (
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

// thumbs calls each with every picture of the strip, scaled; the image is
// valid during the call.
func thumbs(ctx context.Context, f Frames, o StripOptions, each func(int, Thumb, *image.RGBA) error) ([]Thumb, error) {
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
	for n := range picked {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		pix, err := f.Pixels(picked[n].Frame)
		if err != nil {
			return nil, err
		}
		if err := ToRGBA(full, f.Format(), pix, in); err != nil {
			return nil, fmt.Errorf("frame %d: %w", picked[n].Frame, err)
		}
		draw.BiLinear.Scale(small, small.Rect, full, in, draw.Src, nil)
		if err := each(n, picked[n], small); err != nil {
			return nil, err
		}
	}
	return picked, nil
}

// Filmstrip writes JPEG thumbnails into the folder dir, which must exist, as
// strip-000.jpg and so on, and returns them in order.
func Filmstrip(ctx context.Context, f Frames, dir string, o StripOptions) ([]Thumb, error) {
	picked, err := thumbs(ctx, f, o, func(n int, _ Thumb, img *image.RGBA) error {
		return save(filepath.Join(dir, stripName(n)), func(w *os.File) error {
			return jpeg.Encode(w, img, &jpeg.Options{Quality: 85})
		})
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
	_, err = thumbs(ctx, f, o, func(n int, t Thumb, img *image.RGBA) error {
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
