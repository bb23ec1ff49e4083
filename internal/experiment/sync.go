package experiment

import (
	"time"

	"eidetic/internal/lab"
)

// The synchronisation colours of Eideticker's specification.
var (
	green = [3]int{0, 255, 0}
	red   = [3]int{255, 0, 0}
)

// near is the greatest sum of channel differences that is still the colour
// (Eideticker's value).
const near = 30

// shows tells whether the newest picture is all of one colour, looking at
// every 8th pixel of every 8th row: this only decides when to go on, the exact
// area is found by the analysis. Only 32-bit pixels are looked at; the sources
// of devices that deliver others are asked for a conversion.
func shows(film Film, colour [3]int) (all bool) {
	film.Latest(func(format lab.Format, frame lab.Frame) {
		if format.Pixels != lab.BGRX || len(frame.Pix) < format.FrameSize() {
			return
		}
		stride := format.Stride()
		for y := 0; y < format.Height; y += 8 {
			row := frame.Pix[y*stride:]
			for x := 0; x < format.Width; x += 8 {
				b, g, r := int(row[4*x]), int(row[4*x+1]), int(row[4*x+2])
				if abs(r-colour[0])+abs(g-colour[1])+abs(b-colour[2]) >= near {
					return
				}
			}
		}
		all = true
	})
	return all
}

// stillFor tells for how long the screen is known to have been still. The newest
// frame shows the screen as it was at some instant that its uncertainty reaches
// back to: what a slow source has not seen yet may have changed since.
func stillFor(film Film, status FilmStatus) time.Duration {
	known := status.LastFrame.Sub(status.LastChange)
	film.Latest(func(_ lab.Format, frame lab.Frame) { known -= frame.Uncertainty })
	return known
}

func abs(n int) int {
	if n < 0 {
		return -n
	}
	return n
}
