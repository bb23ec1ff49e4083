package chart_test

import (
	"encoding/xml"
	"io"
	"math"
	"strings"
	"testing"

	"eidetic/analysis/chart"
)

// TestCharts: any values give a picture and well-formed SVG without a NaN.
func TestCharts(t *testing.T) {
	for name, s := range map[string][]chart.Series{
		"none":   nil,
		"empty":  {{Name: "a"}},
		"one":    {{Name: "a", X: []float64{3}, Y: []float64{4}}},
		"equal":  {{Name: "a", X: []float64{1, 2, 3, 4}, Y: []float64{7, 7, 7, 7}}},
		"curves": {{Name: "a <&> b", X: []float64{0, 10, 20}, Y: []float64{0, 50, 100}}, {Name: "b", X: []float64{0, 20}, Y: []float64{-5, 1e9}}},
		"odd":    {{Name: "a", X: []float64{0, 1, 2, math.Inf(1)}, Y: []float64{math.NaN(), 1, math.Inf(-1), 5}}},
		"uneven": {{Name: "a", X: []float64{0, 1}, Y: []float64{1, 2, 3}}},
	} {
		c := chart.Chart{Title: "load <1>", XUnit: "ms", YUnit: "%", Series: s}
		svg := string(c.SVG())
		d := xml.NewDecoder(strings.NewReader(svg))
		for {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%s: %v\n%s", name, err, svg)
			}
		}
		if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
			t.Errorf("%s: %s", name, svg)
		}
		if img := c.Image(); img.Rect.Dx() != 900 {
			t.Errorf("%s: a picture of %v", name, img.Rect)
		}
	}
}
