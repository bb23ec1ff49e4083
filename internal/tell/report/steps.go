package report

import (
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"os"
	"path"
	"strings"

	"eidetic/internal/lab"
)

// step is one step of a journey as the template shows it.
type step struct {
	Name   string
	Anchor string
	End    string // what it was to end by
	Depth  int
	Seen   int // number of the trial whose pictures are shown
	Thumbs []thumb
	Aim    string
	Rows   []stepRowOf
	Curves []stepCurve
	Axis   string // the time at the end of the curves
	Equal  string // what the last pictures say
	Notes  []string
	Pinged bool // Curves are the distributions of its answers
}

// stepRowOf is one metric of a step, of one arm.
type stepRowOf struct {
	Label, Arm, Median, Spread, Range, Unit string
	N                                       int
}

// stepCurve is the curve of a trial: how much of the screen is as at the step's end. Times, in ms, and Values, in
// percent, are where it changes.
type stepCurve struct {
	Path   template.HTMLAttr `json:"-"`
	Trial  int               `json:"n"`
	Arm    string            `json:"arm"`
	Valid  bool              `json:"valid"`
	Times  []float64         `json:"t"`
	Values []float64         `json:"v"`
}

// stepData are the curves of a step for the page's script.
type stepData struct {
	Anchor string      `json:"anchor"`
	Pinged bool        `json:"pinged"`
	Curves []stepCurve `json:"curves"`
}

func stepDataOf(steps []step) []stepData {
	all := []stepData{}
	for _, s := range steps {
		if len(s.Curves) > 0 {
			all = append(all, stepData{s.Anchor, s.Pinged, s.Curves})
		}
	}
	return all
}

// isOfStep says whether a metric is that of a step: its name has the step's path before it.
func isOfStep(metric string) bool { return strings.Contains(metric, "/") }

// placesOfSteps returns what tells the place of a metric's step in the plan; 0 is before all steps.
func placesOfSteps(run *lab.Run) func(metric string) int {
	places := map[string]int{}
	if shown := shownTrial(run); shown != nil {
		for i, s := range shown.Steps {
			places[s.Name] = i + 1
		}
	}
	return func(metric string) int { return places[metric[:max(0, strings.LastIndexByte(metric, '/'))]] }
}

// stepsOf lists the steps of a journey that have an end, in the order of the plan.
func stepsOf(files *os.Root, run *lab.Run) (all []step) {
	shown := shownTrial(run)
	if shown == nil {
		return nil
	}
	thumbs := stepThumbs(files, shown)
	for i, s := range shown.Steps {
		if !s.Measured() {
			continue
		}
		one := step{
			Name: s.Name, Anchor: fmt.Sprintf("step-%d", i+1), End: endOf(s),
			Notes: notesOf(run, s), Pinged: len(s.Pings) > 0, Depth: strings.Count(s.Name, "/"), Seen: shown.Number,
			Thumbs: thumbs[s.Name], Equal: equalPictures(run, s.Name),
		}
		if s.AimX != 0 || s.AimY != 0 {
			one.Aim = fmt.Sprintf("%d,%d", s.AimX, s.AimY)
			if s.FoundBy != "" {
				one.Aim += " (" + s.FoundBy + ")"
			}
		}
		for _, sum := range run.Summary {
			name, ok := strings.CutPrefix(sum.Metric, s.Name+"/")
			if !ok || isOfStep(name) {
				continue
			}
			row := stepRowOf{
				Label: describe(name, sum.Unit).Label, N: sum.N, Median: number(sum.Median, sum.Unit), Unit: sum.Unit,
				Spread: number(sum.Q3-sum.Q1, sum.Unit), Range: number(sum.Min, sum.Unit) + " – " + number(sum.Max, sum.Unit),
			}
			if both(run) {
				row.Arm = armName(sum.Arm)
			}
			one.Rows = append(one.Rows, row)
		}
		if one.Curves, one.Axis = stepCurves(run, s.Name); one.Pinged {
			one.Curves, one.Axis = answerCurves(run, s.Name)
		}
		all = append(all, one)
	}
	return all
}

// shownTrial is the trial whose pictures represent the run: the typical one of the first arm, or
// else the first that has steps.
func shownTrial(run *lab.Run) *lab.Trial {
	if arms := armsOf(run); len(arms) > 0 {
		if i, ok := typical(run, arms[0]); ok && len(run.Trials[i].Steps) > 0 {
			return run.Trials[i]
		}
	}
	for _, t := range run.Trials {
		if len(t.Steps) > 0 {
			return t
		}
	}
	return nil
}

// stepThumbs reads the pictures of a trial's steps, by the name of the step.
func stepThumbs(files *os.Root, t *lab.Trial) map[string][]thumb {
	a := artifactOf(files, t, "steps")
	if a == nil || path.Ext(a.Name) != ".json" {
		return nil
	}
	f, err := openArtifact(files, t.Number, a.Name)
	if err != nil {
		return nil
	}
	defer f.Close()
	var list []struct {
		Name   string `json:"name"`
		Thumbs []struct {
			Frame  int     `json:"frame"`
			TimeMS float64 `json:"time_ms"`
			File   string  `json:"file"`
		} `json:"thumbs"`
	}
	if err := json.NewDecoder(io.LimitReader(f, maxStripBytes)).Decode(&list); err != nil {
		return nil
	}
	all, n := map[string][]thumb{}, 0
	for _, s := range list {
		for _, one := range s.Thumbs {
			p := artifactAt(files, t.Number, one.File)
			if p == nil || n == maxThumbs {
				continue
			}
			n++
			all[s.Name] = append(all[s.Name], thumb{artifact: *p, Frame: one.Frame, TimeMS: one.TimeMS, Label: number(one.TimeMS, "ms") + " ms"})
		}
	}
	return all
}

// The size of a step's curves, in the units of their picture.
const (
	curveWidth  = 400.0
	curveHeight = 80.0
)

// stepCurves draws the curves of a step in all trials on one axis of time.
func stepCurves(run *lab.Run, name string) (all []stepCurve, axis string) {
	end := 0.0
	eachStep(run, name, func(_ *lab.Trial, s *lab.TrialStep) {
		for i, v := range s.LoadHistogram {
			if i > 0 && v != s.LoadHistogram[i-1] && i < len(s.FrameTimes) {
				end = max(end, s.FrameTimes[i])
			}
		}
	})
	if end <= 0 {
		return nil, ""
	}
	end *= 1.05
	eachStep(run, name, func(t *lab.Trial, s *lab.TrialStep) {
		if d := curvePath(s, end); d != "" {
			c := stepCurve{Path: template.HTMLAttr(`d="` + d + `"`), Arm: t.Arm, Valid: t.Valid, Trial: t.Number}
			for i, v := range s.LoadHistogram[:min(len(s.LoadHistogram), len(s.FrameTimes))] {
				if v = round3(v); i == 0 || v != c.Values[len(c.Values)-1] {
					c.Times, c.Values = append(c.Times, round3(s.FrameTimes[i])), append(c.Values, v)
				}
			}
			all = append(all, c)
		}
	})
	return all, number(end, "ms") + " ms"
}

// curvePath is the path of a step function; it holds numbers alone.
func curvePath(s *lab.TrialStep, end float64) string {
	var b strings.Builder
	last := -1.0
	low := 100.0
	for _, v := range s.LoadHistogram {
		low = min(low, v)
	}
	for i, v := range s.LoadHistogram[:min(len(s.LoadHistogram), len(s.FrameTimes))] {
		x := curveWidth * min(max(s.FrameTimes[i]/end, 0), 1)
		y := curveHeight
		if low < 100 {
			y = curveHeight * (1 - (v-low)/(100-low))
		}
		switch {
		case last < 0:
			fmt.Fprintf(&b, "M%.1f %.1f", x, y)
		case y != last:
			fmt.Fprintf(&b, "H%.1fV%.1f", x, y)
		}
		last = y
	}
	if b.Len() > 0 {
		fmt.Fprintf(&b, "H%.1f", curveWidth)
	}
	return b.String()
}

// eachStep calls f with the step of a name in every trial.
func eachStep(run *lab.Run, name string, f func(*lab.Trial, *lab.TrialStep)) {
	for _, t := range run.Trials {
		for _, s := range t.Steps {
			if s.Name == name {
				f(t, s)
			}
		}
	}
}

// equalPictures says whether the step's last picture is the same in all valid trials.
func equalPictures(run *lab.Run, name string) string {
	pictures, n := map[string]bool{}, 0
	eachStep(run, name, func(t *lab.Trial, s *lab.TrialStep) {
		if t.Valid && s.FinalFrame != "" {
			pictures[t.Arm+s.FinalFrame], n = true, n+1
		}
	})
	switch {
	case n < 2:
		return ""
	case len(pictures) <= len(armsOf(run)):
		return fmt.Sprintf("the last picture is identical in all %d valid trials", n)
	}
	return fmt.Sprintf("%d different last pictures in %d valid trials", len(pictures), n)
}
