package execute

import (
	"context"
	"errors"
	"fmt"
	"image"
	"os"
	"path/filepath"

	"eidetic/analysis/visual"
	"eidetic/capture/reel"
	"eidetic/capture/video"
	"eidetic/internal/lab"
	"eidetic/internal/run/experiment"
	"eidetic/internal/run/journey"
)

// stepsFile names the pictures of each step of a trial.
const stepsFile = "steps.json"

// stepsFolder holds them.
const stepsFolder = "steps"

// stepMost is the most pictures of a step.
const stepMost = 8

// measureSteps measures a journey: each step from its own start picture. The trial as a whole
// has no curves, as its pictures lead to no common goal.
func (a *analyst) measureSteps(r *reel.Reader, o visual.Options, t *lab.Trial, d *deep) error {
	if err := journey.Measure(r, o.Content, t, a.templates, stepMore{d}); err != nil {
		return err
	}
	t.StartFrame, t.StartTime = o.Start, middle(o.Origin)
	t.ContentX, t.ContentY, t.ContentW, t.ContentH = o.Content.Min.X, o.Content.Min.Y, o.Content.Dx(), o.Content.Dy()
	for i := o.Start; i < r.Len(); i++ {
		t.FrameTimes = append(t.FrameTimes, r.Info(i).Time.Sub(t.StartTime).Seconds()*1e3)
	}
	if n := len(t.Steps); n > 0 {
		t.FinalFrame = t.Steps[n-1].FinalFrame
	}
	t.Spans = stepSpans(t)
	return nil
}

// stepMore measures of steps what a plan asks for.
type stepMore struct{ *deep }

// Options widens those of a step.
func (m stepMore) Options(s *lab.TrialStep, o *visual.Options) {
	if m.deep != nil && m.ask.OfStep(s.Name) {
		m.widen(o)
	}
}

// Measure adds to a step's measurements.
func (m stepMore) Measure(s *lab.TrialStep, r *visual.Result) (err error) {
	if m.deep == nil || !m.ask.OfStep(s.Name) {
		return nil
	}
	excuses := []lab.Event{s.Input}
	if s.Verb == lab.VerbOpen { // a page that loads moves by itself
		excuses = nil
	}
	s.Measurements, s.Analysis, err = m.measure(s.Name, r, s.Measurements, s.First, excuses)
	return err
}

// stepSpans is the tree of a journey's steps.
func stepSpans(t *lab.Trial) (roots []*lab.Span) {
	var path []*lab.Span
	for _, s := range t.Steps {
		depth := 0
		for i, level := range lab.Levels() {
			if level == s.Level {
				depth = i
			}
		}
		span := &lab.Span{Name: s.Name, Level: s.Level, Start: s.First.Earliest, End: max(s.Met, s.Input.Latest)}
		path = append(path[:min(depth, len(path))], span)
		if len(path) == 1 {
			roots = append(roots, span)
		} else {
			parent := path[len(path)-2]
			parent.Children = append(parent.Children, span)
		}
	}
	return roots
}

// contentOf is a measured trial's content area.
func contentOf(t *lab.Trial) image.Rectangle {
	return image.Rect(t.ContentX, t.ContentY, t.ContentX+t.ContentW, t.ContentY+t.ContentH)
}

// StepPictures are the pictures of one step, as in steps.json.
type StepPictures struct {
	Name   string        `json:"name"`
	Thumbs []video.Thumb `json:"thumbs"`
}

// stepEvidence makes the pictures of each step and waits for the trial's video.
func stepEvidence(ctx context.Context, dir string, t *lab.Trial, d *deep, filmed <-chan error) error {
	errs := []error{writeStepStrips(ctx, dir, t), d.writeTimeline(dir, t), d.writeAreas(dir, t)}
	if errs[0] == nil {
		t.Files["steps"] = stepsFile
	}
	err := <-filmed
	if err == nil {
		t.Files["video"] = videoFile
	}
	return errors.Join(append(errs, err)...)
}

// writeStepStrips makes pictures of every step that has an end: from its start picture on,
// where the screen changed.
func writeStepStrips(ctx context.Context, dir string, t *lab.Trial) error {
	r, err := reel.Open(filepath.Join(dir, experiment.ReelFile))
	if err != nil {
		return err
	}
	defer r.Close()
	var all []StepPictures
	for i, s := range t.Steps {
		if !s.Measured() || s.EndFrame <= s.StartFrame {
			continue
		}
		name := fmt.Sprintf("%s/%02d", stepsFolder, i+1)
		folder := filepath.Join(dir, name)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		thumbs, err := video.Filmstrip(ctx, r, folder, video.StripOptions{
			First: s.StartFrame, Last: s.EndFrame, Crop: contentOf(t), Width: 240, Max: stepMost,
		})
		if err != nil {
			return fmt.Errorf("pictures of step %q: %w", s.Name, err)
		}
		for k := range thumbs {
			thumbs[k].File = name + "/" + filepath.Base(thumbs[k].File)
			thumbs[k].TimeMS = max(0, r.Info(thumbs[k].Frame).Time.Sub(middle(s.First)).Seconds()*1e3)
		}
		all = append(all, StepPictures{s.Name, thumbs})
	}
	return writeJSON(dir, stepsFile, all)
}
