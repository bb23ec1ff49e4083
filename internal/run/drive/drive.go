// Package drive carries out steps on a device for a person or a script, without a trial:
// steps flow in, one after another; flow out the events, each with the interval in which
// the device can have got it. Pictures are looked for, and stillness is waited for, on the
// device's screen, where there is one to look at.
package drive

import (
	"context"
	"errors"
	"fmt"
	"image"
	"time"

	"eidetic/analysis/ends"
	"eidetic/analysis/find"
	"eidetic/control"
	"eidetic/control/gesture"
	"eidetic/internal/lab"
)

// Options of a drive.
type Options struct {
	Controller control.Controller
	Size       image.Point // of the device's screen
	Screen     *Screen     // nil: no step can look at it
	// Opening returns the steps that open a URL; Open opens it in another way. Without
	// either, such steps are refused.
	Opening   func(url string) ([]lab.Step, error)
	Open      func(ctx context.Context, url string) error
	Templates map[string]*find.Template
	Gestures  map[string]*gesture.Recording
	Clock     lab.Clock
	Limit     time.Duration // of waiting for an end; 0 is UsualLimit
}

// UsualLimit is how long an end is waited for.
const UsualLimit = time.Minute

// NeedsScreen says whether steps look at the screen.
func NeedsScreen(steps []lab.Step) bool {
	if len(lab.Pictures(steps)) > 0 {
		return true
	}
	for _, s := range steps {
		if _, end, err := lab.ParseWait(s.Wait); s.Wait != "" && err == nil && end != nil {
			return true
		}
	}
	return false
}

// Run carries out the steps; did is told of each event as it is done.
func Run(ctx context.Context, o Options, steps []lab.Step, did func(step int, e gesture.Sent)) error {
	if o.Limit == 0 {
		o.Limit = UsualLimit
	}
	if err := prepareTexts(ctx, o.Controller, steps); err != nil {
		return err
	}
	d := &doer{Options: o}
	d.gestures = gesture.Doer{
		Controller: o.Controller, Clock: o.Clock, Find: d.find, Screen: image.Rectangle{Max: o.Size},
		Recorded: func(name string) (*gesture.Recording, error) {
			if g := o.Gestures[name]; g != nil {
				return g, nil
			}
			return nil, fmt.Errorf("gesture %s was not read", name)
		},
	}
	for i, s := range lab.StepsOf(steps, 0) {
		if err := d.do(ctx, i, s, did); err != nil {
			verb, value := s.Verb()
			return fmt.Errorf("step %d (%s %.60s): %w", i+1, verb, value, err)
		}
	}
	return nil
}

// prepareTexts refuses, before the first step, a text that cannot get to the device.
func prepareTexts(ctx context.Context, c control.Controller, steps []lab.Step) error {
	p, ok := c.(control.TextPreparer)
	if !ok {
		return nil
	}
	for _, text := range lab.Texts(steps) {
		if _, err := p.PrepareText(ctx, text); err != nil {
			return fmt.Errorf("type %.60q: %w", text, err)
		}
	}
	return nil
}

type doer struct {
	Options
	gestures gesture.Doer
	latest   lab.Time // of the last event
}

func (d *doer) do(ctx context.Context, i int, s lab.Step, did func(int, gesture.Sent)) error {
	verb, value := s.Verb()
	if verb == lab.VerbOpen || verb == lab.VerbLaunch {
		return d.open(ctx, i, value, did)
	}
	if verb == lab.VerbWait {
		if _, end, err := lab.ParseWait(value); err != nil || end != nil {
			if err != nil {
				return err
			}
			return d.await(ctx, i, *end, did)
		}
	}
	log, err := d.gestures.Do(ctx, s)
	for _, e := range log.Events {
		d.latest = max(d.latest, e.Latest)
		did(i, e)
	}
	var late *gesture.LateError
	if errors.As(err, &late) { // it is done, and each event's lateness is told
		return nil
	}
	return err
}

// open opens a URL by the device's own means, or by keys.
func (d *doer) open(ctx context.Context, i int, url string, did func(int, gesture.Sent)) error {
	if d.Open != nil {
		e := lab.Event{Name: "open", Detail: url, Earliest: d.Clock()}
		if err := d.Open(ctx, url); err != nil {
			return err
		}
		e.Latest = d.Clock()
		d.latest = e.Latest
		did(i, gesture.Sent{Event: e})
		return nil
	}
	if d.Opening == nil {
		return errors.New("nobody said which browser it is: name a recipe (--recipe)")
	}
	steps, err := d.Opening(url)
	if err != nil {
		return err
	}
	for _, s := range steps {
		if err := d.do(ctx, i, s, did); err != nil {
			return err
		}
	}
	return nil
}

// await waits for an end on the screen.
func (d *doer) await(ctx context.Context, i int, end lab.Ending, did func(int, gesture.Sent)) error {
	if d.Screen == nil {
		return errNoScreen
	}
	for _, c := range end.Conditions {
		if c.Kind == lab.EndNetwork || c.Kind == lab.EndIsDone {
			return fmt.Errorf("%s: only a run knows the device's network and its pages", c.Kind)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, d.Limit)
	defer cancel()
	from := d.latest
	if from == 0 {
		from = d.Clock()
	}
	first, err := d.Screen.picture(ctx, 0)
	if err != nil {
		return err
	}
	judge, err := ends.New(ends.Config{
		Ending: end, Content: d.Screen.bounds(), Templates: d.Templates, Rate: d.Screen.format.Rate, Since: from, First: first,
	})
	if err != nil {
		return err
	}
	var seen lab.Time
	for {
		changed, last, news, err := d.Screen.state()
		if err != nil {
			return fmt.Errorf("the screen: %w", err)
		}
		if changed != seen {
			seen = changed
			p, err := d.Screen.picture(ctx, 0)
			if err != nil {
				return err
			}
			judge.Look(seen, p)
		}
		if since, met := judge.Met(last, ends.Network{}, nil); met {
			did(i, gesture.Sent{Event: lab.Event{Name: "end", Detail: end.Text, Earliest: since, Latest: last}})
			return nil
		}
		if err := d.Screen.await(ctx, news); err != nil {
			return fmt.Errorf("it did not come within %v: %s (%w)", d.Limit, judge.Missing(last, ends.Network{}, nil), err)
		}
	}
}

var errNoScreen = errors.New("there is no screen to look at: name one (--source)") // constant

// find returns where a target is.
func (d *doer) find(ctx context.Context, t lab.Target) (image.Rectangle, error) {
	switch {
	case t.CSS != "":
		return image.Rectangle{}, errors.New("css: only a run with a browser of its own knows where elements are: aim at a picture or at a point")
	case t.Picture != "":
		if d.Screen == nil {
			return image.Rectangle{}, errNoScreen
		}
		p, err := d.Screen.picture(ctx, d.latest)
		if err != nil {
			return image.Rectangle{}, err
		}
		area := d.Screen.bounds()
		if t.Within != nil {
			area = t.Within.In(area)
		}
		m, err := d.Templates[t.Picture].In(p, area, t.Tolerance)
		if err != nil {
			return m.Area, fmt.Errorf("picture %s: %w (tolerance %d)", t.Picture, err, t.Tolerance)
		}
		return d.scale(m.Area), nil
	}
	at := image.Pt(int(t.X), int(t.Y))
	if t.Share {
		at = image.Pt(int(t.X*float64(d.Size.X-1)/100+0.5), int(t.Y*float64(d.Size.Y-1)/100+0.5))
	}
	return image.Rectangle{Min: at, Max: at.Add(image.Pt(1, 1))}, nil
}

// scale maps a place of the film to the device's screen: a grabber may film in another size.
func (d *doer) scale(r image.Rectangle) image.Rectangle {
	film := d.Screen.bounds()
	if film.Size() == d.Size {
		return r
	}
	return image.Rect(r.Min.X*d.Size.X/film.Dx(), r.Min.Y*d.Size.Y/film.Dy(), r.Max.X*d.Size.X/film.Dx(), r.Max.Y*d.Size.Y/film.Dy())
}
