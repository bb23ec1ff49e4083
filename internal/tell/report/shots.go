package report

import (
	"net/url"
	"os"
	"strings"

	"eidetic/internal/lab"
)

// Shots are pictures of an arm's typical trial, in the order of time. Those of two arms are of
// the same instants.
type Shots struct {
	Name    string // "Control"
	Differs string // what distinguishes the arm from the other
	All     []Shot
}

// Shot is the screen at one instant.
type Shot struct {
	TimeMS float64
	File   string // path below the run's folder
}

// ShotsOf finds the pictures that represent each arm of a run in the run's folder. An arm
// without pictures is left out.
func ShotsOf(run *lab.Run, files *os.Root) []Shots {
	var sides []side
	step := tellingStep(run)
	for _, arm := range armsOf(run) {
		i, ok := typical(run, arm)
		if !ok {
			continue
		}
		s := side{Arm: arm, Name: armName(arm), Differs: differsOf(run, arm), Seen: &trial{Trial: run.Trials[i]}}
		s.Seen.Thumbs, _ = filmstrip(files, run.Trials[i])
		if step != "" {
			s.Seen.Thumbs = stepThumbs(files, run.Trials[i])[step]
			s.Name += ", step " + step
		}
		if len(s.Seen.Thumbs) > 0 {
			sides = append(sides, s)
		}
	}
	period := align(sides)
	var out []Shots
	for _, s := range sides {
		cells := s.Cells
		if len(cells) == 0 {
			for _, t := range s.Seen.Thumbs {
				cells = append(cells, cell{thumb: t})
			}
		}
		one := Shots{Name: s.Name, Differs: s.Differs}
		for k, c := range cells {
			at := c.TimeMS
			if len(s.Cells) > 0 {
				at = float64(k) * period
			}
			if file, err := url.PathUnescape(c.URL); err == nil {
				one.All = append(one.All, Shot{at, file})
			}
		}
		out = append(out, one)
	}
	return out
}

// tellingStep is the step of a journey whose pictures tell most: the first in which a guarded metric
// differs, or else the last that was measured; "" for a page load.
func tellingStep(run *lab.Run) (step string) {
	shown := shownTrial(run)
	if shown == nil {
		return ""
	}
	for _, s := range shown.Steps {
		if s.Measured() {
			step = s.Name
		}
	}
	if run.Comparison == nil {
		return step
	}
	for _, e := range run.Comparison.Effects {
		if i := strings.LastIndexByte(e.Metric, '/'); i > 0 && e.Guard && (e.Finding == lab.Slower || e.Finding == lab.Faster) {
			return e.Metric[:i]
		}
	}
	return step
}

// FilmstripOf lists the pictures of a trial's filmstrip, in the order of time.
func FilmstripOf(files *os.Root, t *lab.Trial) (all []Shot) {
	thumbs, _ := filmstrip(files, t)
	for _, one := range thumbs {
		if file, err := url.PathUnescape(one.URL); err == nil {
			all = append(all, Shot{one.TimeMS, file})
		}
	}
	return all
}
