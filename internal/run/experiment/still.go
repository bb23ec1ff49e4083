package experiment

import (
	"time"

	"eidetic/internal/lab"
)

// stillFor returns how long the screen is known to have been still. The newest frame shows
// the screen at some instant within its uncertainty; a slow source may not have seen a
// change since then.
func stillFor(film Film, status FilmStatus) time.Duration {
	known := status.LastFrame.Sub(status.LastChange)
	film.Latest(func(_ lab.Format, frame lab.Frame) { known -= frame.Uncertainty })
	return known
}
