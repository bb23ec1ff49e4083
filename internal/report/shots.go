package report

import (
	"net/url"
	"os"

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
	for _, arm := range armsOf(run) {
		i, ok := typical(run, arm)
		if !ok {
			continue
		}
		s := side{Arm: arm, Name: armName(arm), Differs: differsOf(run, arm), Seen: &trial{Trial: run.Trials[i]}}
		s.Seen.Thumbs, _ = filmstrip(files, run.Trials[i])
		if len(s.Seen.Thumbs) > 0 {
			sides = append(sides, s)
		}
	}
	step := align(sides)
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
				at = float64(k) * step
			}
			if file, err := url.PathUnescape(c.URL); err == nil {
				one.All = append(one.All, Shot{at, file})
			}
		}
		out = append(out, one)
	}
	return out
}
