// Package chart draws curves over time as SVG and as a picture: steps, since a screen
// shows a frame until the next one. Values and names flow in; nothing is read or written.
package chart

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"math"

	"golang.org/x/image/font"
	"golang.org/x/image/font/basicfont"
	"golang.org/x/image/math/fixed"
)

// Series is one curve.
type Series struct {
	Name string
	X, Y []float64 // of one length, X ascending
}

// Chart is a diagram of curves that share their axes.
type Chart struct {
	Title, XUnit, YUnit string
	Series              []Series
}

// Size of a diagram and the margins for its numbers, in pixels.
const (
	width, height            = 900, 320
	left, right, top, bottom = 70, 20, 30, 36
)

// colours are told apart by the colour-blind too (Okabe and Ito 2008).
func colours() []color.RGBA {
	return []color.RGBA{{0, 114, 178, 255}, {213, 94, 0, 255}, {0, 158, 115, 255}, {204, 121, 167, 255}, {86, 180, 233, 255},
		{230, 159, 0, 255}}
}

// frame is the plane of the numbers and how it is laid onto the diagram.
type frame struct{ x0, x1, y0, y1 float64 }

// bounds finds the plane; values that are no numbers are left out.
func (c Chart) bounds() frame {
	f := frame{math.Inf(1), math.Inf(-1), 0, 0}
	for _, s := range c.Series {
		for i, y := range s.Y {
			if i >= len(s.X) || !finite(y) || !finite(s.X[i]) {
				continue
			}
			f.x0, f.x1 = min(f.x0, s.X[i]), max(f.x1, s.X[i])
			f.y0, f.y1 = min(f.y0, y), max(f.y1, y)
		}
	}
	if f.x0 > f.x1 {
		f.x0, f.x1 = 0, 1
	}
	if f.x1 == f.x0 {
		f.x1 = f.x0 + 1
	}
	if f.y1 == f.y0 {
		f.y1 = f.y0 + 1
	}
	return f
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

func (f frame) x(v float64) float64 { return left + (v-f.x0)/(f.x1-f.x0)*(width-left-right) }
func (f frame) y(v float64) float64 {
	return height - bottom - (v-f.y0)/(f.y1-f.y0)*(height-top-bottom)
}

// ticks returns round numbers within lo … hi, some five of them.
func ticks(lo, hi float64) (out []float64) {
	step := math.Pow(10, math.Floor(math.Log10((hi-lo)/4)))
	for _, m := range []float64{5, 2} {
		if (hi-lo)/(step*m) >= 3 {
			step *= m
			break
		}
	}
	for n := math.Ceil(lo / step); n*step <= hi && len(out) < 20; n++ {
		out = append(out, n*step)
	}
	return out
}

func number(v float64) string {
	if math.Abs(v) >= 1e4 { // no powers of ten for seconds
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.4g", v)
}

// points returns the corners of a curve's steps.
func (f frame) points(s Series) (out [][2]float64) {
	last := math.NaN()
	for i, y := range s.Y {
		if i >= len(s.X) || !finite(y) || !finite(s.X[i]) {
			continue
		}
		if !math.IsNaN(last) && y == last && i+1 < len(s.Y) && s.Y[i+1] == y {
			continue // in the middle of a level
		}
		if !math.IsNaN(last) && y != last {
			out = append(out, [2]float64{f.x(s.X[i]), f.y(last)})
		}
		out = append(out, [2]float64{f.x(s.X[i]), f.y(y)})
		last = y
	}
	return out
}

// SVG draws the chart.
func (c Chart) SVG() []byte {
	f := c.bounds()
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/><text x="%d" y="18" font-size="14">%s</text>`+"\n", width, height, left, escape(c.Title))
	for _, v := range ticks(f.y0, f.y1) {
		fmt.Fprintf(&b, `<path d="M%d %.1fH%d" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n", left, f.y(v), width-right,
			left-6, f.y(v)+4, number(v))
	}
	for _, v := range ticks(f.x0, f.x1) {
		fmt.Fprintf(&b, `<path d="M%.1f %dv5" stroke="#666"/><text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", f.x(v), height-bottom, f.x(v),
			height-bottom+18, number(v))
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text><text x="4" y="%d">%s</text>`+"\n", width-right, height-4, escape(c.XUnit), top-2,
		escape(c.YUnit))
	for i, s := range c.Series {
		col := colours()[i%len(colours())]
		fmt.Fprintf(&b, `<polyline fill="none" stroke="#%02x%02x%02x" stroke-width="1.5" points="`, col.R, col.G, col.B)
		for _, p := range f.points(s) {
			fmt.Fprintf(&b, "%.1f,%.1f ", p[0], p[1])
		}
		fmt.Fprintf(&b, `"/><text x="%d" y="18" text-anchor="end" fill="#%02x%02x%02x">%s</text>`+"\n", width-right-i*150, col.R, col.G, col.B,
			escape(s.Name))
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func escape(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) // a buffer takes everything
	return b.String()
}

// Image draws the chart as a picture.
func (c Chart) Image() *image.RGBA {
	f := c.bounds()
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	draw.Draw(img, img.Rect, image.White, image.Point{}, draw.Src)
	write := func(x, y int, s string, c color.Color) {
		d := font.Drawer{Dst: img, Src: image.NewUniform(c), Face: basicfont.Face7x13, Dot: fixed.P(x, y)}
		d.DrawString(s)
	}
	write(left, 18, c.Title, color.Black)
	for _, v := range ticks(f.y0, f.y1) {
		line(img, left, f.y(v), width-right, f.y(v), color.RGBA{220, 220, 220, 255})
		s := number(v)
		write(left-6-7*len(s), int(f.y(v))+4, s, color.Black)
	}
	for _, v := range ticks(f.x0, f.x1) {
		line(img, f.x(v), height-bottom, f.x(v), height-bottom+5, color.RGBA{100, 100, 100, 255})
		s := number(v)
		write(int(f.x(v))-7*len(s)/2, height-bottom+18, s, color.Black)
	}
	write(width-right-7*len(c.XUnit), height-4, c.XUnit, color.Black)
	write(4, top-2, c.YUnit, color.Black)
	for i, s := range c.Series {
		col := colours()[i%len(colours())]
		points := f.points(s)
		for k := 1; k < len(points); k++ {
			line(img, points[k-1][0], points[k-1][1], points[k][0], points[k][1], col)
		}
		write(width-right-i*150-7*len(s.Name), 18, s.Name, col)
	}
	return img
}

// line draws between two points.
func line(img *image.RGBA, x0, y0, x1, y1 float64, c color.RGBA) {
	n := int(max(math.Abs(x1-x0), math.Abs(y1-y0))) + 1
	for i := range n + 1 {
		u := float64(i) / float64(n)
		img.SetRGBA(int(math.Round(x0+u*(x1-x0))), int(math.Round(y0+u*(y1-y0))), c)
	}
}
