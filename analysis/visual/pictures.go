package visual

import (
	"fmt"
	"image"
	"image/color"
	"math"

	"golang.org/x/image/font"
	"golang.org/x/image/font/basicfont"
	"golang.org/x/image/math/fixed"
)

// Height of the parts below a heat map: the bar of colours and its numbers.
const (
	legendBar  = 12
	legendText = 16
)

// HeatImage paints the heat map and a legend below it. Colour follows the
// logarithm of the count, from black for never to light yellow for the most
// changes, with equal steps of perceived lightness (see heatColour). The
// picture is as wide as the content area and 28 pixels higher.
func HeatImage(r *Result) *image.RGBA {
	w, h := r.Heat.Area.Dx(), r.Heat.Area.Dy()
	most := int(r.Heat.Most())
	colours := make([]color.RGBA, most+1)
	for c := range colours {
		colours[c] = heatColour(heatScale(c, most))
	}
	img := image.NewRGBA(image.Rect(0, 0, w, h+legendBar+legendText))
	for i, c := range r.Heat.Counts {
		img.SetRGBA(i%w, i/w, colours[c])
	}
	for x := range w {
		colour := heatColour(float64(x) / float64(max(w-1, 1)))
		for y := h; y < h+legendBar; y++ {
			img.SetRGBA(x, y, colour)
		}
	}
	legend(img, w, h+legendBar, most)
	return img
}

// heatScale places a count between 0 and 1.
func heatScale(count, most int) float64 {
	if most == 0 {
		return 0
	}
	return math.Log1p(float64(count)) / math.Log1p(float64(most))
}

// legend writes the counts 0, 1, 2, 5, 10 … and the largest under the bar,
// leaving out what would overlap.
func legend(img *image.RGBA, w, top, most int) {
	for y := top; y < img.Rect.Dy(); y++ {
		for x := range w {
			img.SetRGBA(x, y, color.RGBA{255, 255, 255, 255})
		}
	}
	d := font.Drawer{Dst: img, Src: image.Black, Face: basicfont.Face7x13}
	right := fmt.Sprintf("%d changes", most)
	end := max(w-7*len(right)-2, 0)
	write := func(x int, s string) {
		d.Dot = fixed.P(x, top+legendText-4)
		d.DrawString(s)
	}
	write(end, right)
	free := 0
	for step := 1; step <= most; step *= 10 {
		for _, k := range []int{0, 1, 2, 5} {
			if k == 0 && step > 1 {
				continue
			}
			count := k * step
			text := fmt.Sprint(count)
			x := int(math.Round(heatScale(count, most) * float64(w-1)))
			if x < free || count > most || x+7*len(text)+7 > end {
				continue
			}
			write(x, text)
			free = x + 7*len(text) + 7
		}
	}
}

// heatColour maps 0 … 1 to a colour whose lightness (CIE L*, through Oklab,
// Ottosson 2020) is proportional to it, while the hue turns from violet through red to
// yellow: equal steps of value look equal, also to the colour-blind and in print.
func heatColour(v float64) color.RGBA {
	v = min(max(v, 0), 1)
	lightness := (97*v + 16) / 116 // Oklab's is the cube root of Y, L* is 116 times it − 16
	if v < 0.08 {
		lightness = math.Cbrt(97 * v / 903.3)
	}
	chroma := 0.2 * math.Pow(math.Sin(math.Pi*v), 0.6)
	hue := (300 + float64(170*v)) * math.Pi / 180
	// Less chroma until the colour exists on a screen; the lightness stays.
	for {
		if c, ok := oklab(lightness, chroma*math.Cos(hue), chroma*math.Sin(hue)); ok || chroma < 0.004 {
			return c
		}
		chroma *= 0.97
	}
}

// oklab converts to sRGB, clamped, and says whether the colour was inside it.
func oklab(lightness, a, b float64) (color.RGBA, bool) {
	l := cube(lightness + float64(0.3963377774*a) + float64(0.2158037573*b))
	m := cube(lightness - float64(0.1055613458*a) - float64(0.0638541728*b))
	s := cube(lightness - float64(0.0894841775*a) - float64(1.2914855480*b))
	inside := true
	channel := func(v float64) uint8 {
		if v < -1e-4 || v > 1+1e-4 {
			inside = false
		}
		v = min(max(v, 0), 1)
		if v <= 0.0031308 {
			v *= 12.92
		} else {
			v = float64(1.055*math.Pow(v, 1/2.4)) - 0.055
		}
		return uint8(math.Round(255 * v))
	}
	c := color.RGBA{A: 255,
		R: channel(float64(4.0767416621*l) - float64(3.3077115913*m) + float64(0.2309699292*s)),
		G: channel(float64(-1.2684380046*l) + float64(2.6097574011*m) - float64(0.3413193965*s)),
		B: channel(float64(-0.0041960863*l) - float64(0.7034186147*m) + float64(1.7076147010*s)),
	}
	return c, inside
}

func cube(v float64) float64 { return v * v * v }
