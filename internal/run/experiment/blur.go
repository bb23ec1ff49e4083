package experiment

import (
	"fmt"
	"math"
	"time"

	"eidetic/internal/lab"
)

// LinkReport is what a link reports about a trial.
type LinkReport struct {
	Kept    any    // stored as JSON
	Invalid string // why the trial is invalid whatever the tolerance, or ""
	// Late bounds how much late packets may have moved the trial's times.
	Late []lab.Late
}

// blurOf computes by how much the instruments may have moved a trial's times. Lateness
// after the last change has moved none.
func blurOf(t *lab.Trial, f facts, start lab.Time) *lab.Blur {
	b := &lab.Blur{}
	until := f.film.LastChange
	if until <= start {
		until = lab.Time(math.MaxInt64)
	}
	before := time.Duration(0)
	for _, step := range f.link.Late {
		if step.At > until {
			break
		}
		if step.At >= start && step.Sum-before > time.Duration(b.Stall*1e6) {
			b.Stall, b.StallAt = millis(step.Sum-before), millis(step.At.Sub(start))
		}
		before = step.Sum
	}
	b.Link = millis(lab.LateAt(f.link.Late, until))
	b.Capture = captureBlur(t, f, start, until)
	return b
}

// captureBlur is the largest excess of a change's uncertainty over the usual one, from the
// start to the last change. Usual is the film's normal bound plus half a period, by which
// waking up and fetching a picture vary. So with a tolerance of one frame, one missed look
// beside a change is valid, and two are not.
func captureBlur(t *lab.Trial, f facts, start, until lab.Time) float64 {
	blur := 0.0
	if worst, ok := lab.WorstUnseen(f.film.Unseen, start, until); ok {
		blur = millis(worst.Bound() - f.film.Normal - f.film.Period/2)
	}
	// A stick that sends no picture for a while numbers those that it sends without a gap: only their times say it.
	if t.FramesLost > 0 || t.Capture != nil && t.Capture.Irregular > 0 {
		blur = max(blur, lossBlur(t, f))
	}
	return max(0, blur)
}

// lossBlur is the same for lost frames: no source says what they showed, so a change may
// lie between any two consecutive frames.
func lossBlur(t *lab.Trial, f facts) float64 {
	rate := 60.0
	if t.Capture != nil && t.Capture.Rate > 0 {
		rate = t.Capture.Rate
	}
	const rounding = 0.01
	gap, last := 0.0, millis(f.film.LastChange.Sub(t.StartTime))
	for i := 1; i < len(t.FrameTimes); i++ {
		if t.FrameTimes[i] > last+rounding && last > 0 {
			break // the picture does not change any more
		}
		if t.FrameTimes[i] > 0 {
			gap = max(gap, t.FrameTimes[i]-t.FrameTimes[i-1])
		}
	}
	return math.Round((gap-1.5e3/rate)*1e3) / 1e3
}

func millis(d time.Duration) float64 { return math.Round(d.Seconds()*1e6) / 1e3 }

// blurred returns why a trial's blur makes it invalid, or "".
func blurred(t *lab.Trial, tolerance float64) string {
	b := t.Blur
	if b == nil || b.Worst() <= tolerance {
		return ""
	}
	var what string
	switch {
	case b.Link >= b.Capture && b.Stall > 0.9*b.Link:
		what = fmt.Sprintf("a stall of %s while the page loaded, %s after the start", lab.Millis(b.Stall), lab.Millis(b.StallAt))
	case b.Link >= b.Capture:
		what = fmt.Sprintf("stalls of %s in all while the page loaded, the longest %s", lab.Millis(b.Link), lab.Millis(b.Stall))
	default:
		what = fmt.Sprintf("nobody looked at the screen for a while: the time of a change is known %s less well than usual",
			lab.Millis(b.Capture))
	}
	return fmt.Sprintf("%s (tolerance %s): %s", what, lab.Millis(tolerance), t.Machine.Causes())
}
