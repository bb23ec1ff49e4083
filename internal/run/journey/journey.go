// Package journey carries out the steps of a plan on a device: it gives each step's input
// through a controller, finds its targets on the newest picture of the screen, and waits for
// its end by the rules of analysis/ends. Steps, pictures and a controller flow in; a trial's
// steps with the intervals of their input and the instants of their ends flow out. Afterwards
// Measure computes from the recording how each step felt, by the same rules.
package journey

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"slices"

	"eidetic/analysis/find"
	"eidetic/analysis/visual"
	"eidetic/control"
	"eidetic/control/gesture"
	"eidetic/internal/lab"
	"eidetic/internal/run/experiment"
)

// Names of a trial's artifacts.
const (
	InputFile = "input.jsonl" // each event of a step's input
)

// Player is a device that steps can be carried out on.
type Player struct {
	Controller control.Controller
	Clock      lab.Clock
	// Templates and Gestures are the files that the plan's steps name.
	Templates map[string]*find.Template
	Gestures  map[string]*gesture.Recording
	// File returns the path on the device of a file that steps choose; nil where none is put there.
	File func(name string) (string, error)
	// Where tells where an element is, Open makes the page that is shown go to a URL, and Launch starts
	// the browser's program again. What is nil the device cannot do.
	Where  Where
	Open   Open
	Launch Open
	// Used reads what the processes of the device's program have used and, if asked to, their memory; nil where they are
	// not seen.
	Used func(ctx context.Context, memory bool) (lab.ProgramUse, error)
}

// Where tells where the first visible element of a CSS selector is on a screen of which the page fills
// content.
type Where func(ctx context.Context, life experiment.Life, selector string, content image.Rectangle) (image.Rectangle, error)

// Open opens a URL.
type Open func(ctx context.Context, life experiment.Life, url string) (lab.Event, error)

// foundByProtocol says in a trial's step who told where its aim is.
const foundByProtocol = "%s: the browser's debugging protocol, asked before the input; the input itself is the operating system's"

var _ experiment.Journey = (*Player)(nil)

// errNoPicture says that the recorder has no picture.
var errNoPicture = errors.New("the screen has no picture yet") // constant

// Begin notes the content area, which the synchronisation page fills.
func (p *Player) Begin(film experiment.Film) (experiment.Play, error) {
	run := &play{Player: p, film: film}
	err := errNoPicture
	film.Latest(func(f lab.Format, frame lab.Frame) {
		run.format = f
		run.content, err = visual.ContentOf(f, frame.Pix)
	})
	if err != nil {
		return nil, experiment.Broken(err)
	}
	if run.first, err = run.picture(); err != nil {
		return nil, err
	}
	return run, nil
}

// play is a journey in progress.
type play struct {
	*Player
	experiment.Scene
	film    experiment.Film
	format  lab.Format
	content image.Rectangle
	first   *visual.Picture // when the present step began
	doer    *gesture.Doer
	input   *os.File
	asked   string // the selector that the present step asked the browser for
}

// picture returns the newest picture of the content area.
func (p *play) picture() (*visual.Picture, error) {
	var pic *visual.Picture
	err := errNoPicture
	p.film.Latest(func(f lab.Format, frame lab.Frame) { pic, err = visual.PictureOf(f, frame.Pix, p.content) })
	if err != nil {
		return nil, experiment.Broken(err)
	}
	return pic, nil
}

// Run implements [experiment.Play].
func (p *play) Run(ctx context.Context, s experiment.Scene) (err error) {
	p.Scene = s
	if p.input, err = os.Create(filepath.Join(s.Dir, InputFile)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.input.Close()) }()
	s.Trial.Files["input"] = InputFile
	p.doer = &gesture.Doer{
		Controller: p.Controller, Clock: p.Clock, Find: p.find,
		Screen: p.content, Recorded: func(name string) (*gesture.Recording, error) {
			if g := p.Gestures[name]; g != nil {
				return g, nil
			}
			return nil, fmt.Errorf("gesture %s was not read", name)
		},
		File: p.Player.File,
		Open: p.opener(p.Player.Open), Launch: p.opener(p.Player.Launch),
	}
	_, err = p.all(ctx, s.Steps, nest{})
	return err
}

// opener opens URLs on the device of this trial.
func (p *play) opener(open Open) func(context.Context, string) (lab.Event, error) {
	if open == nil {
		return nil
	}
	return func(ctx context.Context, url string) (lab.Event, error) { return open(ctx, p.Life, url) }
}

// nest is where a list of steps is in the plan.
type nest struct {
	prefix, place string // of names, and of the plan's fields
	depth         int
}

// all carries out a list of steps, and returns the input of all of them.
func (p *play) all(ctx context.Context, steps []lab.Step, in nest) (events []gesture.Sent, err error) {
	for i, s := range steps {
		for n := range max(1, s.Repeat) {
			name := lab.StepName(s, i, n)
			sent, err := p.one(ctx, s, nest{in.prefix + name, fmt.Sprintf("%ssteps[%d]", in.place, i), in.depth})
			events = append(events, sent...)
			if err != nil {
				return events, err
			}
		}
	}
	return events, nil
}

// one carries out a step, and waits for its end.
func (p *play) one(ctx context.Context, s lab.Step, at nest) ([]gesture.Sent, error) {
	verb, _ := s.Verb()
	t := &lab.TrialStep{
		Name: at.prefix, Level: lab.Levels()[min(at.depth, len(lab.Levels())-1)], Verb: verb, Place: at.place, Mask: s.Mask,
	}
	p.Trial.Steps = append(p.Trial.Steps, t)
	if p.Doing != nil && at.depth == 0 {
		p.Doing(at.prefix)
	}
	first := p.first // of the first step: the synchronisation page
	if p.first = nil; first == nil {
		var err error
		if first, err = p.picture(); err != nil {
			return nil, err
		}
	}
	p.doer.Ready = func(ctx context.Context) (err error) {
		first, err = p.dialogue(ctx, s, first)
		return err
	}
	log, err := p.act(ctx, s, t, at)
	if err != nil {
		return log.Events, p.fail(ctx, t, lab.StepFailed, err)
	}
	if span, ok := log.Span(); ok {
		t.Input, t.First = span, log.Events[0].Event
		p.Trial.Events = append(p.Trial.Events, lab.Event{Name: "step", Detail: t.Name, Earliest: span.Earliest, Latest: span.Latest})
	} else {
		now := p.Clock()
		t.Input = lab.Event{Name: verb, Earliest: now, Latest: now}
		t.First = t.Input
	}
	ending, err := p.ending(s, verb, at, t)
	if err != nil {
		return log.Events, err
	}
	if t.Opens = s.Window; s.Pings > 0 || verb == lab.VerbIdle {
		t.End, t.Valid, t.Met, t.Seen = map[bool]string{true: lab.StepPings, false: lab.StepIdle}[s.Pings > 0], true, t.Input.Latest, p.Clock()
		return log.Events, nil
	}
	if ending == nil {
		t.End, t.Valid, t.Met, t.Seen = lab.StepInput, true, t.Input.Latest, t.Input.Latest
		return log.Events, nil
	}
	return log.Events, p.await(ctx, s, t, *ending, first)
}

// act gives the step's input. The first step's has been given: it is the navigation.
func (p *play) act(ctx context.Context, s lab.Step, t *lab.TrialStep, at nest) (gesture.Log, error) {
	if at.place == "steps[0]" {
		return gesture.Log{Events: []gesture.Sent{{Event: p.Navigate}}}, p.note(t, []gesture.Sent{{Event: p.Navigate}})
	}
	if t.Verb == lab.VerbSteps {
		events, err := p.all(ctx, s.Steps, nest{at.prefix + "/", at.place + ".", at.depth + 1})
		return gesture.Log{Events: events}, err
	}
	p.asked = ""
	do := p.doer.Do
	if t.Verb == lab.VerbIdle && p.Used != nil {
		do = func(ctx context.Context, s lab.Step) (gesture.Log, error) { return p.idle(ctx, s, t) }
	}
	if s.Pings > 0 {
		do = func(ctx context.Context, s lab.Step) (gesture.Log, error) { return p.pings(ctx, s, t) }
	}
	log, err := do(ctx, s)
	if p.asked != "" {
		t.FoundBy = fmt.Sprintf(foundByProtocol, p.asked)
	}
	t.AimX, t.AimY, t.AimW, t.AimH = log.At.X, log.At.Y, log.Area.Dx(), log.Area.Dy()
	t.Late = float64(log.Worst().Microseconds()) / 1e3
	if why := gesture.Spoiled(err); why != "" {
		t.Invalid, err = append(t.Invalid, why), nil
	}
	return log, errors.Join(err, p.note(t, slices.Concat(log.Before, log.Events)))
}

// idle leaves the device alone, and notes what its program uses meanwhile.
func (p *play) idle(ctx context.Context, s lab.Step, t *lab.TrialStep) (gesture.Log, error) {
	before, err := p.Used(ctx, false)
	if err != nil {
		return gesture.Log{}, experiment.Broken(err)
	}
	log, err := p.doer.Do(ctx, s)
	if err != nil {
		return log, err
	}
	after, err := p.Used(ctx, true)
	if err != nil {
		return log, experiment.Broken(err)
	}
	if before.Processes+after.Processes > 0 { // else this device tells nothing
		t.Used = []lab.ProgramUse{before, after}
	}
	return log, nil
}

// dialogue waits until a file dialogue has been drawn, and returns the picture with it: the input that chooses the file
// comes next. before is the picture without it.
func (p *play) dialogue(ctx context.Context, s lab.Step, before *visual.Picture) (*visual.Picture, error) {
	now := p.Clock()
	if err := p.answered(ctx, lab.Step{Mask: s.Mask}, lab.Event{Latest: now}, before, pingLimit); err != nil {
		return nil, fmt.Errorf("the file dialogue: %w", err)
	}
	return p.picture()
}

// note writes the events of a step's input.
func (p *play) note(t *lab.TrialStep, events []gesture.Sent) error {
	encoder := json.NewEncoder(p.input)
	for _, e := range events {
		err := encoder.Encode(struct {
			Step string  `json:"step"`
			Late float64 `json:"late_ms"`
			gesture.Sent
		}{t.Name, float64(e.Late().Microseconds()) / 1e3, e})
		if err != nil {
			return err
		}
	}
	return nil
}

// find returns where a target is on the newest picture.
func (p *play) find(ctx context.Context, t lab.Target) (image.Rectangle, error) {
	switch {
	case t.CSS != "" && p.Where == nil:
		return image.Rectangle{}, errors.New("css: nobody here knows where an element is: aim at a picture or at a share of the content area")
	case t.CSS != "":
		p.asked = t.CSS
		return p.Where(ctx, p.Life, t.CSS, p.content)
	case t.Picture != "":
		pic, err := p.picture()
		if err != nil {
			return image.Rectangle{}, err
		}
		area := p.content
		if t.Within != nil {
			area = t.Within.In(p.content)
		}
		m, err := p.Templates[t.Picture].In(pic, area, t.Tolerance)
		if err != nil {
			return m.Area, fmt.Errorf("picture %s: %w (tolerance %d)", t.Picture, err, t.Tolerance)
		}
		return m.Area, nil
	}
	at := image.Pt(int(t.X), int(t.Y))
	if t.Share {
		at = p.content.Min.Add(image.Pt(int(t.X*float64(p.content.Dx()-1)/100+0.5), int(t.Y*float64(p.content.Dy()-1)/100+0.5)))
	}
	return image.Rectangle{at, at.Add(image.Pt(1, 1))}, nil
}

// FailedError says which step of a journey failed, and what was expected.
type FailedError struct {
	Step string
	Err  error
}

func (e *FailedError) Error() string { return fmt.Sprintf("step %q: %v", e.Step, e.Err) }

// Unwrap returns the cause.
func (e *FailedError) Unwrap() error { return e.Err }

// fail ends the trial at a step, and keeps the screen as it is.
func (p *play) fail(ctx context.Context, t *lab.TrialStep, end string, cause error) error {
	var inner *FailedError
	if ctx.Err() != nil {
		return ctx.Err()
	}
	t.End, t.Seen = end, p.Clock()
	if errors.As(cause, &inner) {
		t.Invalid = append(t.Invalid, inner.Error())
		return cause
	}
	t.Invalid = append(t.Invalid, cause.Error())
	if pic, err := p.picture(); err == nil {
		if err := writePNG(filepath.Join(p.Dir, lab.FailedFile), pic.Image()); err == nil {
			p.Trial.Files["failed"] = lab.FailedFile
			cause = fmt.Errorf("%w; the screen is in %s", cause, lab.FailedFile)
		}
	}
	return experiment.Failed(&FailedError{t.Name, cause}, cause)
}

func writePNG(file string, img image.Image) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(png.Encode(f, img), f.Close())
}
