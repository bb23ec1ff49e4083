package bisection

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"

	"eidetic/analysis/stats"
	"eidetic/analysis/visual"
	"eidetic/internal/lab"
)

// Parting is where the recordings of two revisions part: the first picture that both show and one shows clearly
// later than the other. Where what is loaded at the same time comes in another order each time, so that hardly a
// picture is shown twice, it is the first share of the page that one shows clearly later.
type Parting struct {
	Text    string `json:"text"`
	Picture string `json:"picture_sha256,omitempty"` // of the content area's pixels
	// Complete is the visual progress that both have reached by then, in percent.
	Complete float64 `json:"visually_complete_percent,omitempty"`
	// Control and Treatment are the medians of the times of the picture in each arm, in ms.
	Control   float64 `json:"control_ms"`
	Treatment float64 `json:"treatment_ms"`
	Shown     [2]Seen `json:"shown"` // in a typical trial of each arm
}

// Seen is a picture in a recording.
type Seen struct {
	Run    string  `json:"run"`
	Trial  int     `json:"trial"`
	Frame  int     `json:"frame"`
	TimeMS float64 `json:"time_ms"`
}

// Film is the recording of a trial.
type Film struct {
	Run    string
	Trial  *lab.Trial
	Frames visual.Frames
}

// sighting is when each picture is first seen in a film.
type sighting map[string]Seen

// pictures looks at every changed frame of a film from its start on.
func pictures(f Film) (sighting, error) {
	format, t := f.Frames.Format(), f.Trial
	bytes := format.Stride() / max(format.Width, 1)
	if t.ContentX < 0 || t.ContentY < 0 || t.ContentW < 1 || t.ContentH < 1 || t.ContentX+t.ContentW > format.Width ||
		t.ContentY+t.ContentH > format.Height {
		return nil, fmt.Errorf("trial %d: its content area is outside of its recording", t.Number)
	}
	seen := sighting{}
	for i := max(t.StartFrame+1, 0); i < f.Frames.Len(); i++ {
		info := f.Frames.Info(i)
		if len(info.Changed) == 0 {
			continue
		}
		pixels, err := f.Frames.Pixels(i)
		if err != nil {
			return nil, fmt.Errorf("trial %d, frame %d: %w", t.Number, i, err)
		}
		h := sha256.New()
		for y := t.ContentY; y < t.ContentY+t.ContentH; y++ {
			at := y*format.Stride() + t.ContentX*bytes
			h.Write(pixels[at : at+t.ContentW*bytes])
		}
		key := hex.EncodeToString(h.Sum(nil))
		if _, before := seen[key]; !before {
			seen[key] = Seen{f.Run, t.Number, i, float64(info.Time-t.StartTime) / 1e6}
		}
	}
	return seen, nil
}

// Part finds where the films of two arms part by at least half of size, which is the treatment's less the
// control's. It is nil if they do nowhere.
func Part(control, treatment []Film, size float64) (*Parting, error) {
	best, err := byPicture(control, treatment, size)
	if err != nil {
		return nil, err
	}
	what := "a picture that both show"
	if best == nil {
		if best = byProgress(control, treatment, size); best == nil {
			return nil, nil
		}
		what = fmt.Sprintf("the first frame that is %.0f %% visually complete", best.Complete)
		if best.Complete == 0 {
			what = "the first frame that changes"
		}
	}
	best.Text = fmt.Sprintf("The two part at %s: it comes after %.0f ms before the change and after %.0f ms with it (medians), as frame %d of "+
		"trial %d and frame %d of trial %d of run %s", what, best.Control, best.Treatment, best.Shown[0].Frame, best.Shown[0].Trial,
		best.Shown[1].Frame, best.Shown[1].Trial, best.Shown[1].Run)
	return best, nil
}

// isApart says whether the arms are at least half of size apart.
func (p *Parting) isApart(size float64) bool {
	apart := p.Treatment - p.Control
	return math.Signbit(apart) == math.Signbit(size) && math.Abs(apart) >= math.Abs(size)/2
}

// byProgress compares when the arms reach each share of their visual progress.
func byProgress(control, treatment []Film, size float64) *Parting {
	for share := 0.0; share <= 100; share += 5 {
		var seen [2][]Seen
		for i, films := range [][]Film{control, treatment} {
			for _, f := range films {
				if s, ok := reached(f, share); ok {
					seen[i] = append(seen[i], s)
				}
			}
		}
		if len(seen[0]) == 0 || len(seen[0]) < len(control) || len(seen[1]) < len(treatment) { // some trial never gets there
			continue
		}
		p := &Parting{
			Complete: share, Control: medianTime(seen[0]), Treatment: medianTime(seen[1]), Shown: [2]Seen{typicalOf(seen[0]), typicalOf(seen[1])},
		}
		if p.isApart(size) {
			return p
		}
	}
	return nil
}

// reached is the first frame in which a film is more than 0 %, or at least another share of its visual progress,
// complete.
func reached(f Film, share float64) (Seen, bool) {
	t := f.Trial
	for i, progress := range t.VisualProgress {
		if i < len(t.FrameTimes) && progress > 0 && progress >= share {
			return Seen{f.Run, t.Number, t.StartFrame + i, t.FrameTimes[i]}, true
		}
	}
	return Seen{}, false
}

// byPicture compares when the arms show each picture.
func byPicture(control, treatment []Film, size float64) (*Parting, error) {
	var arms [2]map[string][]Seen
	for i, films := range [][]Film{control, treatment} {
		arms[i] = map[string][]Seen{}
		for _, f := range films {
			seen, err := pictures(f)
			if err != nil {
				return nil, err
			}
			for key, s := range seen {
				arms[i][key] = append(arms[i][key], s)
			}
		}
	}
	var best *Parting
	for key, in := range arms[0] {
		also := arms[1][key]
		// What few of the trials show is chance: pictures between two frames that others skip.
		if 2*len(in) < len(control) || 2*len(also) < len(treatment) || len(also) == 0 {
			continue
		}
		a, b := typicalOf(in), typicalOf(also)
		p := Parting{Picture: key, Control: medianTime(in), Treatment: medianTime(also), Shown: [2]Seen{a, b}}
		if !p.isApart(size) {
			continue
		}
		if best == nil || cmp.Or(cmp.Compare(p.Control, best.Control), cmp.Compare(p.Picture, best.Picture)) < 0 {
			best = &p
		}
	}
	return best, nil
}

func medianTime(seen []Seen) float64 {
	var times []float64
	for _, s := range seen {
		times = append(times, s.TimeMS)
	}
	return stats.Median(times)
}

// typicalOf is the sighting nearest to the median.
func typicalOf(seen []Seen) Seen {
	middle := medianTime(seen)
	return slices.MinFunc(seen, func(a, b Seen) int {
		return cmp.Or(cmp.Compare(math.Abs(a.TimeMS-middle), math.Abs(b.TimeMS-middle)), cmp.Compare(a.Trial, b.Trial))
	})
}
