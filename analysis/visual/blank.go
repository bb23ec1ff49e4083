package visual

import (
	"fmt"
	"image/color"

	"eidetic/internal/lab"
)

// blankPixels is the most pixels of another colour that a blank picture may have: a blinking
// caret, a spinner's last dot. The shortest word in a browser's own size of text has more.
// In a small picture they are no more than 1 of blankShare pixels.
const (
	blankPixels = 64
	blankShare  = 256
)

// NoLoad says why the recording shows no page load that could be measured, or "" if it does: every
// metric of such a recording is small, or missing, and means nothing.
func (r *Result) NoLoad() string {
	total, still := len(r.Heat.Counts), r.Heat.still()
	switch {
	case r.FirstChange < 0:
		return fmt.Sprintf("nothing changed on the screen after frame %d: the page was not shown", r.Start)
	case r.Odd <= min(blankPixels, total/blankShare):
		return fmt.Sprintf("the final picture is blank: all but %d of %d pixels have the colour #%06x", r.Odd, total, r.Ground)
	case 2*r.Odd < total && isNear(r.Ground, lab.SyncGreen()) && 2*still > total:
		return fmt.Sprintf("the final picture is still the green synchronisation page in %d of %d pixels: the browser did not leave it; "+
			"it saves the address as a file, opens another program or asks a person", still, total)
	case len(r.LoadHistogram) > 0 && r.LoadHistogram[0] == 100:
		return fmt.Sprintf("the final picture is that of frame %d again, from which the load starts: what was shown meanwhile went away", r.Start)
	}
	return ""
}

// ground returns the commonest colour of the final frame's content, by channel, and how many
// pixels do not have it. What is ignored does not count.
func (s *screen) ground() (rgb uint32, odd int) {
	var channels [3][256]int
	s.eachFinal(func(rgb uint32, n int) {
		for i := range channels {
			channels[i][rgb>>(16-8*i)&255] += n
		}
	})
	for _, counts := range channels {
		seen, value := 0, 0
		for value = range counts {
			if seen += counts[value]; 2*seen >= s.pixels { // the median is that of the commonest colour, where one has the majority
				break
			}
		}
		rgb = rgb<<8 | uint32(value)
	}
	s.eachFinal(func(v uint32, n int) {
		if !isNear(v, color.RGBA{uint8(rgb >> 16), uint8(rgb >> 8), uint8(rgb), 255}) {
			odd += n
		}
	})
	return rgb, odd
}

// eachFinal calls fn for each stretch of equal pixels in the rows of the final frame.
func (s *screen) eachFinal(fn func(rgb uint32, n int)) {
	for _, r := range s.parts {
		for y := r.Min.Y; y < r.Max.Y; y++ {
			at := (y-s.area.Min.Y)*s.area.Dx() + r.Min.X - s.area.Min.X
			row := s.final[at:][:r.Dx()]
			for from := 0; from < len(row); {
				to := from + 1
				for to < len(row) && row[to] == row[from] {
					to++
				}
				fn(s.plane.rgb(row[from]), to-from)
				from = to
			}
		}
	}
}
