package measure

import (
	"image"
	"image/color"
	"image/draw"

	"golang.org/x/image/font"
	"golang.org/x/image/font/basicfont"
	"golang.org/x/image/math/fixed"

	"eidetic/analysis/visual"
	"eidetic/internal/lab"
)

// Overlay draws the areas of a measurement onto a frame's content area: regions in blue, what is
// ignored hatched in orange, what is proposed to be ignored in red.
func Overlay(frames visual.Frames, frame int, content image.Rectangle, a *lab.Analysis) (*image.RGBA, error) {
	pix, err := frames.Pixels(frame)
	if err != nil {
		return nil, err
	}
	p, err := visual.PictureOf(frames.Format(), pix, content)
	if err != nil {
		return nil, err
	}
	img := p.Image()
	for _, kind := range []struct {
		areas   []lab.Area
		colour  color.RGBA
		label   string
		hatched bool
	}{
		{a.Ignored, color.RGBA{230, 110, 0, 255}, "ignored", true},
		{a.Proposed, color.RGBA{200, 0, 60, 255}, "never settles", false},
		{a.Regions, color.RGBA{0, 90, 200, 255}, "", false},
	} {
		for _, one := range kind.areas {
			box := image.Rect(one.X, one.Y, one.X+one.W, one.Y+one.H).Sub(content.Min)
			if kind.hatched {
				hatch(img, box, kind.colour)
			}
			outline(img, box, kind.colour)
			label := one.Name
			if label == "" {
				label = kind.label
			}
			tag(img, box.Min, label, kind.colour)
		}
	}
	return img, nil
}

// outline draws a frame of two pixels within a box.
func outline(img *image.RGBA, box image.Rectangle, c color.RGBA) {
	ink := image.NewUniform(c)
	for _, side := range []image.Rectangle{
		{box.Min, image.Pt(box.Max.X, box.Min.Y+2)}, {image.Pt(box.Min.X, box.Max.Y-2), box.Max},
		{box.Min, image.Pt(box.Min.X+2, box.Max.Y)}, {image.Pt(box.Max.X-2, box.Min.Y), box.Max},
	} {
		draw.Draw(img, side.Intersect(box), ink, image.Point{}, draw.Src)
	}
}

// hatch draws lines across a box.
func hatch(img *image.RGBA, box image.Rectangle, c color.RGBA) {
	box = box.Intersect(img.Rect)
	for y := box.Min.Y; y < box.Max.Y; y++ {
		for x := box.Min.X; x < box.Max.X; x++ {
			if (x+y)%8 == 0 {
				img.SetRGBA(x, y, c)
			}
		}
	}
}

// tag writes a label into the upper left corner of a box.
func tag(img *image.RGBA, at image.Point, label string, c color.RGBA) {
	draw.Draw(img, image.Rect(at.X, at.Y, at.X+7*len(label)+6, at.Y+15), image.NewUniform(c), image.Point{}, draw.Src)
	d := font.Drawer{Dst: img, Src: image.White, Face: basicfont.Face7x13, Dot: fixed.P(at.X+3, at.Y+12)}
	d.DrawString(label)
}
