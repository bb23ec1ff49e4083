package experiment

import (
	"time"

	"eidetic/internal/lab"
)

// stillFor tells for how long the screen is known to have been still. The newest
// frame shows the screen as it was at some instant that its uncertainty reaches
// back to: what a slow source has not seen yet may have changed since.
func stillFor(film Film, status FilmStatus) time.Duration {
	known := status.LastFrame.Sub(status.LastChange)
	film.Latest(func(_ lab.Format, frame lab.Frame) { known -= frame.Uncertainty })
	return known
}
