package report

import (
	"math"
	"slices"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// side is an arm with the trial that stands for it, and its film.
type side struct {
	Arm     string
	Name    string // "Treatment"; "" for a run of one arm
	Differs string // "link 3g"
	Seen    *trial
	Cells   []cell // a picture for each instant of the common axis
}

// cell is the screen at one instant.
type cell struct {
	thumb
	At      float64 // ms since the start
	Held    bool    // no newer picture exists; the one of the cell before is repeated
	Before  bool    // nothing of the page was seen yet
	Moments []moment
}

// moment is the instant of a metric, marked at the first picture that is not before it.
type moment struct{ Label, At string }

// sidesOf describes the arms, with the trial that is nearest to each median and their filmstrips on one axis.
func sidesOf(run *lab.Run, trials []trial) (sides []side) {
	for _, arm := range armsOf(run) {
		s := side{Arm: arm}
		if both(run) {
			s.Name, s.Differs = armName(arm), differsOf(run, arm)
		}
		if i, ok := typical(run, arm); ok {
			s.Seen = &trials[i]
		}
		sides = append(sides, s)
	}
	if align(sides) == 0 {
		for i, s := range sides {
			if s.Seen != nil {
				for _, t := range s.Seen.Thumbs {
					sides[i].Cells = append(sides[i].Cells, cell{thumb: t, At: t.TimeMS})
				}
			}
		}
	}
	fromFirstChange(sides)
	for i := range sides {
		mark(&sides[i], metricsOf(run))
	}
	return sides
}

// Filmed says whether a trial that stands for its arm has a film, or the pictures of one.
func (p *page) Filmed() bool {
	return slices.ContainsFunc(p.Sides, func(s side) bool { return s.Seen != nil && (s.Seen.Video != nil || len(s.Cells) > 0) })
}

// Stripped says whether one has a filmstrip.
func (p *page) Stripped() bool {
	return slices.ContainsFunc(p.Sides, func(s side) bool { return s.Seen != nil && (len(s.Cells) > 0 || s.Seen.Sheet != nil) })
}

// fromFirstChange drops what stands before the first change of any side.
func fromFirstChange(sides []side) {
	first := math.Inf(1)
	for _, s := range sides {
		if s.Seen != nil {
			if at, ok := s.Seen.Value(metric.FirstChange.String()); ok {
				first = min(first, at)
			}
		}
	}
	if math.IsInf(first, 1) {
		return
	}
	for i := range sides {
		s := &sides[i]
		if s.Seen == nil {
			continue
		}
		if k := slices.IndexFunc(s.Cells, func(c cell) bool { return c.At >= first-1 }); k > 0 {
			s.Cells = s.Cells[k:]
			s.Cells[0].Held = false
		}
		own, ok := s.Seen.Value(metric.FirstChange.String())
		for k := range s.Cells {
			s.Cells[k].Before = ok && s.Cells[k].TimeMS < own-1
		}
	}
}

// mark puts the instants of a side's trial at its pictures.
func mark(s *side, metrics []metric.Entry) {
	for _, m := range metrics {
		if s.Seen == nil || !m.Instant {
			continue
		}
		at, ok := s.Seen.Value(m.Name)
		k := slices.IndexFunc(s.Cells, func(c cell) bool { return c.At >= at-1 })
		if ok && k >= 0 {
			s.Cells[k].Moments = append(s.Cells[k].Moments, moment{m.Label, number(at, m.Unit)})
		}
	}
}

// slack is how much later than an instant of the axis, in ms, a picture may be and still
// represent it: one frame, with some jitter.
const slack = 25

// align selects, for every instant of an axis, the picture that each arm showed then. The
// axis has the larger step of the two filmstrips, which align returns, in ms; 0 if there is no axis.
func align(sides []side) (step float64) {
	end := 0.0
	for _, s := range sides {
		if s.Seen == nil || len(s.Seen.Thumbs) < 2 {
			return 0 // one arm has no pictures, or only one picture of its whole strip
		}
		n := len(s.Seen.Thumbs) - 1
		first, last := s.Seen.Thumbs[0].TimeMS, s.Seen.Thumbs[n].TimeMS
		step, end = max(step, (last-first)/float64(n)), max(end, last)
	}
	step = math.Round(step/100) * 100 // filmstrips have steps of whole tenths of a second
	if len(sides) < 2 || !(step > 0) || end/step > maxThumbs {
		return 0
	}
	for i := range sides {
		thumbs, at := sides[i].Seen.Thumbs, -1
		for k := 0; float64(k)*step <= end+slack; k++ {
			was := at
			for at+1 < len(thumbs) && thumbs[at+1].TimeMS <= float64(k)*step+slack {
				at++
			}
			shown := max(at, 0)
			sides[i].Cells = append(sides[i].Cells, cell{thumb: thumbs[shown], At: float64(k) * step, Held: k > 0 && at == was})
		}
	}
	return step
}
