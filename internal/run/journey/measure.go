package journey

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"image"
	"slices"
	"sort"
	"strings"

	"eidetic/analysis/ends"
	"eidetic/analysis/find"
	"eidetic/analysis/response"
	"eidetic/analysis/visual"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// lastingShare is the share of the pixels that a step changes, in percent, which makes metric.FirstLasting.
const lastingShare = 5.0

// More measures of steps what their plan asks for besides; nil measures nothing more.
type More interface {
	// Options widens the options of a step's measurement.
	Options(s *lab.TrialStep, o *visual.Options)
	// Measure adds to the measurements of a step that has an end.
	Measure(s *lab.TrialStep, r *visual.Result) error
}

// Measure measures the steps of a trial on the frames of its recording, and fills them in with
// their measurements. A step whose end is not found there is invalid, and says so.
func Measure(frames visual.Frames, content image.Rectangle, t *lab.Trial, templates map[string]*find.Template, more More) error {
	m := &measuring{frames, content, templates, more}
	for i, s := range t.Steps {
		if s.End == lab.StepLimit || s.End == lab.StepFailed {
			continue
		}
		s.StartFrame = frameAt(frames, s.First.Earliest)
		last := frames.Len() - 1
		if next := follower(t.Steps, i); next != nil {
			last = min(last, max(frameAt(frames, next.First.Earliest), s.StartFrame+1))
		}
		if s.StartFrame >= last {
			s.Invalid = append(s.Invalid, "the recording has no frame after its input")
			continue
		}
		if err := m.step(t, s, last); err != nil {
			return fmt.Errorf("step %q: %w", s.Name, err)
		}
	}
	flatten(t)
	return nil
}

// measuring is what the steps of a trial are measured on.
type measuring struct {
	frames    visual.Frames
	content   image.Rectangle
	templates map[string]*find.Template
	more      More
}

// follower returns the next step that is not within steps[i].
func follower(steps []*lab.TrialStep, i int) *lab.TrialStep {
	for _, s := range steps[i+1:] {
		if !strings.HasPrefix(s.Name, steps[i].Name+"/") && s.First.Earliest > steps[i].First.Earliest {
			return s
		}
	}
	return nil
}

// frameAt finds the last frame taken before an instant, or the first frame.
func frameAt(frames visual.Frames, at lab.Time) int {
	after := sort.Search(frames.Len(), func(i int) bool { return frames.Info(i).Time > at })
	return max(0, after-1)
}

func (m *measuring) step(t *lab.Trial, s *lab.TrialStep, last int) error {
	if len(s.Pings) > 0 || s.Verb == lab.VerbIdle {
		return m.special(s, last)
	}
	frames, content := m.frames, m.content
	ignore := masks(s.Mask, content)
	met := s.Input.Latest
	s.EndFrame = last
	if s.Expect != "" {
		since, frame, missing, err := m.judge(t, s, last)
		if err != nil {
			return err
		}
		if missing != "" {
			if err := m.propose(s, ignore); err != nil {
				return err
			}
			if len(s.Restless) > 0 {
				missing += "; if these places do not count, " + maskLine(s.Restless)
			}
			s.Invalid = append(s.Invalid, fmt.Sprintf("its end (%s) is not on the frames up to frame %d: %s", s.Expect, last, missing))
		} else {
			met, s.EndFrame = since, frame
		}
	}
	o := visual.Options{Start: s.StartFrame, End: s.EndFrame + 1, Origin: s.First, Content: content, Ignore: ignore}
	if lab.IsAppPage(t.Page) { // no page begins white on the green screen
		o.Baseline = visual.BaselineStart
	}
	if m.more != nil {
		m.more.Options(s, &o)
	}
	r, err := visual.Analyze(frames, o)
	if err != nil {
		return err
	}
	s.Met = met
	s.LoadHistogram, s.VisualProgress, s.FrameTimes = r.LoadHistogram, r.Progress, r.Times
	s.Measurements = measurements(frames, r, s, met)
	if s.Verb == lab.VerbLaunch {
		first, err := response.FirstWindow(frames, s.StartFrame, s.EndFrame+1)
		if err != nil {
			return err
		}
		if first > 0 {
			s.Measurements = append(s.Measurements, r.Instant(metric.FirstWindow, first))
		}
	}
	if s.Opens {
		if err := m.window(s, ignore); err != nil {
			return err
		}
	}
	if s.Expect != "" && m.more != nil {
		if err := m.more.Measure(s, r); err != nil {
			return err
		}
	}
	if s.Expect == "" {
		return nil // its last picture is that of an instant, and not of an end
	}
	pix, err := frames.Pixels(s.EndFrame)
	if err != nil {
		return err
	}
	pic, err := visual.PictureOf(frames.Format(), pix, content)
	if err != nil {
		return err
	}
	s.FinalFrame = hash(pic, visual.Without(content, ignore))
	return nil
}

// hash is the SHA-256 of parts of a picture as BGRX.
func hash(p *visual.Picture, parts []image.Rectangle) string {
	h := sha256.New()
	for _, r := range parts {
		row := make([]byte, 4*r.Dx())
		for y := r.Min.Y; y < r.Max.Y; y++ {
			for x, v := range p.Row(y, r.Min.X, r.Max.X) {
				row[4*x], row[4*x+1], row[4*x+2] = byte(v), byte(v>>8), byte(v>>16)
			}
			h.Write(row)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// judge judges a step's end on every frame. It returns since when the end holds, the frame on
// which that was certain, or what was missing.
func (m *measuring) judge(t *lab.Trial, s *lab.TrialStep, last int) (since lab.Time, frame int, missing string, err error) {
	frames, content := m.frames, m.content
	ending, err := lab.ParseEnd(s.Expect)
	if err != nil {
		return 0, 0, "", err
	}
	shot := func(i int) (*visual.Picture, error) {
		pix, err := frames.Pixels(i)
		if err != nil {
			return nil, err
		}
		return visual.PictureOf(frames.Format(), pix, content)
	}
	first, err := shot(s.StartFrame)
	if err != nil {
		return 0, 0, "", err
	}
	j, err := ends.New(ends.Config{Ending: ending, Content: content, Masks: masks(s.Mask, content), Templates: m.templates,
		Rate: frames.Format().Rate, Since: s.Input.Latest, First: first})
	if err != nil {
		return 0, 0, "", err
	}
	var done []lab.Event
	for _, e := range t.Events {
		if e.Name == "done" {
			done = append(done, e)
		}
	}
	network := ends.Network{Last: s.Network}
	for i := s.StartFrame + 1; i <= last; i++ {
		info := frames.Info(i)
		if len(info.Changed) > 0 {
			pic, err := shot(i)
			if err != nil {
				return 0, 0, "", err
			}
			j.Look(info.Time, pic)
		}
		if since, met := j.Met(info.Time.Add(-info.Uncertainty), network, done); met {
			return since, i, "", nil
		}
	}
	info := frames.Info(last)
	return 0, last, j.Missing(info.Time.Add(-info.Uncertainty), network, done), nil
}

// measurements returns what is measured of a step.
func measurements(frames visual.Frames, r *visual.Result, s *lab.TrialStep, met lab.Time) (all []lab.Measurement) {
	for _, m := range r.Measurements() {
		switch {
		case m.Name == metric.FirstChange.String():
			all = append(all, r.Instant(metric.FirstFeedback, r.FirstChange))
			if i := firstLasting(r.LoadHistogram); i > 0 && s.Verb != lab.VerbOpen {
				all = append(all, r.Instant(metric.FirstLasting, r.Start+i))
			}
		case m.Name == metric.FirstContent.String() && s.Verb != lab.VerbOpen: // only a page begins as one flat colour
		default:
			all = append(all, m)
		}
	}
	if s.Expect == "" {
		return all
	}
	asked := "the end is " + s.Expect
	if i := frameAt(frames, met); i > r.Start && frames.Info(i).Time == met {
		return append(all, r.Instant(metric.TimeToEnd, i, asked))
	}
	origin := s.First.Earliest + (s.First.Latest-s.First.Earliest)/2
	end := metric.TimeToEnd.Measure(float64(met.Sub(origin))/1e6, []int{s.EndFrame}, asked)
	low, high := float64(met.Sub(s.First.Latest))/1e6, float64(met.Sub(s.First.Earliest))/1e6
	end.Low, end.High = &low, &high
	return append(all, end)
}

// firstLasting returns the index from which what stays begins to be there; 0 where the step changed nothing.
func firstLasting(histogram []float64) int {
	if len(histogram) == 0 || histogram[0] >= 100 {
		return 0
	}
	return slices.IndexFunc(histogram, func(equal float64) bool {
		return 100*(equal-histogram[0]) >= lastingShare*(100-histogram[0])
	})
}

// flatten adds the steps' measurements to those of the trial, under the path of the step, so
// that summaries, verdicts and histories name step and metric.
func flatten(t *lab.Trial) {
	sum, n := 0.0, 0
	for _, s := range t.Steps {
		if !s.Measured() {
			continue // only its input was given
		}
		for _, m := range s.Measurements {
			if m.Name == metric.TimeToEnd.String() && s.Level == lab.Levels()[0] {
				sum += m.Value
				n++
			}
			m.Name = s.Name + "/" + m.Name
			t.Measurements = append(t.Measurements, m)
		}
	}
	if n > 0 {
		t.Measurements = append(t.Measurements, metric.Journey.Measure(sum, nil))
	}
}

// ErrNoSteps says that a recording has no steps that could be judged again.
var ErrNoSteps = errors.New("its trial has no steps") // constant

// Rescore gives the steps of a trial the ends and masks that a plan has for them. It returns the
// names of the steps whose end is another one now.
func Rescore(t *lab.Trial, steps []lab.Step, still string) (changed []string, err error) {
	if len(t.Steps) == 0 {
		return nil, ErrNoSteps
	}
	at := map[string]lab.Step{}
	collect(steps, "", at)
	for _, s := range t.Steps {
		planned, ok := at[s.Place]
		verb, _ := planned.Verb()
		if !ok || verb != s.Verb {
			return nil, fmt.Errorf("step %q was %s at %s: the plan has another step there, which this recording does not show",
				s.Name, s.Verb, s.Place)
		}
		expect := planned.End
		if expect == "" && s.Default {
			expect = still
		}
		if verb == lab.VerbWait && expect == "" {
			if _, end, err := lab.ParseWait(planned.Wait); err == nil && end != nil {
				expect = end.Text
			}
		}
		if expect != s.Expect || !slices.Equal(planned.Mask, s.Mask) {
			changed = append(changed, s.Name)
		}
		s.Expect, s.Mask = expect, planned.Mask
		if expect != "" && s.End != lab.StepLimit && s.End != lab.StepFailed {
			end, err := lab.ParseEnd(expect)
			if err != nil {
				return nil, err
			}
			s.End, s.Invalid = end.Kinds(), nil
		}
	}
	return changed, nil
}

// collect lists the steps of a plan by their place in it.
func collect(steps []lab.Step, prefix string, into map[string]lab.Step) {
	for i, s := range steps {
		place := fmt.Sprintf("%ssteps[%d]", prefix, i)
		into[place] = s
		collect(s.Steps, place+".", into)
	}
}
