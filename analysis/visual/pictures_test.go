package visual

import (
	"image"
	"image/color"
	"math"
	"testing"
)

func TestHeatImage(t *testing.T) {
	area := image.Rect(10, 20, 210, 60)
	r := &Result{Heat: Heat{Area: area, Counts: make([]uint16, area.Dx()*area.Dy())}}
	r.Heat.Counts[3*200+7] = 40
	if got := r.Heat.Most(); got != 40 {
		t.Errorf("Most() = %d, want 40", got)
	}
	img := HeatImage(r)
	if got, want := img.Rect, image.Rect(0, 0, 200, 40+legendBar+legendText); got != want {
		t.Fatalf("size %v, want %v", got, want)
	}
	if got := img.RGBAAt(0, 0); got != (color.RGBA{A: 255}) {
		t.Errorf("never changed is %v, want black", got)
	}
	if got, want := img.RGBAAt(7, 3), heatColour(1); got != want {
		t.Errorf("most changed is %v, want %v", got, want)
	}
	dark := 0
	for y := 40 + legendBar; y < img.Rect.Dy(); y++ {
		for x := range 200 {
			if img.RGBAAt(x, y) == (color.RGBA{A: 255}) {
				dark++
			}
		}
	}
	if dark < 50 {
		t.Errorf("%d dark pixels: the legend has no numbers", dark)
	}
	r.Heat.Counts[3*200+7] = 0
	HeatImage(r) // nothing changed: must not divide by zero
}

// TestHeatColour: equal steps of the value are equal steps of lightness (CIE L*).
func TestHeatColour(t *testing.T) {
	lightness := func(c color.RGBA) float64 {
		linear := func(v uint8) float64 {
			s := float64(v) / 255
			if s <= 0.04045 {
				return s / 12.92
			}
			return math.Pow((s+0.055)/1.055, 2.4)
		}
		y := 0.2126*linear(c.R) + 0.7152*linear(c.G) + 0.0722*linear(c.B)
		if y <= 0.008856 {
			return 903.3 * y
		}
		return 116*math.Cbrt(y) - 16
	}
	before := lightness(heatColour(0))
	for i := 1; i <= 20; i++ {
		l := lightness(heatColour(float64(i) / 20))
		if step := l - before; step < 2 || step > 8 {
			t.Errorf("step %d: lightness %.1f → %.1f", i, before, l)
		}
		before = l
	}
	if before < 90 {
		t.Errorf("the last colour has lightness %.1f, too dark for a scale", before)
	}
}
