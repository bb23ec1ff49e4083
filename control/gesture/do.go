package gesture

import (
	"context"
	"errors"
	"fmt"
	"image"
	"time"

	"eidetic/control"
	"eidetic/internal/base/priority"
	"eidetic/internal/lab"
)

// Sent is an event of a gesture: when it was planned, and when the device can have got it.
type Sent struct {
	lab.Event
	Planned lab.Time `json:"planned_ns"` // 0 for an event without a schedule
}

// Late is how long after its planned time the event was sent at the earliest.
func (s Sent) Late() time.Duration {
	if s.Planned == 0 {
		return 0
	}
	return max(0, s.Earliest.Sub(s.Planned))
}

// Log is what a step's input was.
type Log struct {
	// Before are the events that only led to the input, such as those that open a file dialogue.
	Before []Sent
	Events []Sent
	// At is the point that the step aimed at, if it had one; Area is what was found there.
	At   image.Point
	Area image.Rectangle
}

// Spoiled returns why input that was given counts for nothing: an event was late, or a key was down for too long. It is
// "" for an error that says that the input was not given.
func Spoiled(err error) string {
	var late *LateError
	var held *control.HeldError
	switch {
	case errors.As(err, &late):
		return late.Error()
	case errors.As(err, &held):
		return held.Error()
	}
	return ""
}

// Worst is the lateness of the event that was latest.
func (l Log) Worst() (worst time.Duration) {
	for _, e := range l.Events {
		worst = max(worst, e.Late())
	}
	return worst
}

// Span is the interval of the whole input: from the earliest time of its first event to the
// latest of its last. It is false without an event.
func (l Log) Span() (lab.Event, bool) {
	if len(l.Events) == 0 {
		return lab.Event{}, false
	}
	first, last := l.Events[0].Event, l.Events[len(l.Events)-1].Event
	return lab.Event{Name: first.Name, Detail: first.Detail, Earliest: first.Earliest, Latest: last.Latest}, true
}

// LateError says that an event was sent later than the step allows.
type LateError struct {
	Event int // from 0
	Of    int
	By    time.Duration
	Bound time.Duration
}

func (e *LateError) Error() string {
	return fmt.Sprintf("event %d of %d was sent %v late; at most %v is allowed (late_ms)", e.Event+1, e.Of,
		e.By.Round(10*time.Microsecond), e.Bound.Round(10*time.Microsecond))
}

// Doer does the input of steps.
type Doer struct {
	Controller control.Controller
	Clock      lab.Clock
	// Find returns the rectangle of a target on the screen; its middle is aimed at. It is asked
	// for every target, so that pictures, selectors and shares of the content area are the
	// caller's business.
	Find func(ctx context.Context, t lab.Target) (image.Rectangle, error)
	// Open and Launch open a URL on the device; nil refuses.
	Open, Launch func(ctx context.Context, url string) (lab.Event, error)
	// Recorded returns the recorded gesture of a name; nil refuses.
	Recorded func(name string) (*Recording, error)
	// File returns the path on the device of a plan's file; nil refuses. Ready is called before the key that chooses it,
	// when the file dialogue is on the screen; it may be nil.
	File  func(name string) (string, error)
	Ready func(ctx context.Context) error
	// Screen is the size to which recorded gestures are fitted.
	Screen image.Rectangle
	// Until waits until an instant of Clock; nil is the precise wait of this system.
	Until func(ctx context.Context, at lab.Time) error
}

// errRefused says that the device cannot do a step.
var errRefused = errors.New("this device cannot do that") // constant

// Do does the input of one step; the steps in it, its end and its repetitions are the caller's. Where an event was too
// late, the gesture is completed, and the error is a *LateError; where a key was down for too long, it is a
// *control.HeldError.
func (d *Doer) Do(ctx context.Context, s lab.Step) (Log, error) {
	verb, value := s.Verb()
	switch verb {
	case lab.VerbOpen:
		return d.url(ctx, d.Open, value)
	case lab.VerbLaunch:
		return d.url(ctx, d.Launch, value)
	case lab.VerbClick:
		return d.aimed(ctx, value, func(at image.Point) (lab.Event, error) {
			return d.Controller.Click(ctx, at.X, at.Y, buttonOf(s))
		})
	case lab.VerbMove:
		return d.aimed(ctx, value, func(at image.Point) (lab.Event, error) { return d.Controller.Move(ctx, at.X, at.Y) })
	case lab.VerbKey:
		return one(d.Controller.Key(ctx, value))
	case lab.VerbType:
		return d.typed(ctx, s)
	case lab.VerbScroll:
		return d.scroll(ctx, s)
	case lab.VerbDrag, lab.VerbPan:
		if s.Fingers > 0 {
			return d.sideBySide(ctx, s, verb, value)
		}
		return d.drag(ctx, s, verb, value)
	case lab.VerbPinch:
		return d.pinch(ctx, s)
	case lab.VerbRotate:
		return d.rotate(ctx, s)
	case lab.VerbReplay:
		return d.replay(ctx, s)
	case lab.VerbChoose:
		return d.choose(ctx, s)
	case lab.VerbWait:
		return d.wait(ctx, value)
	case lab.VerbIdle:
		return d.idle(ctx, value)
	case lab.VerbMark:
		now := d.Clock()
		return one(lab.Event{Name: "mark", Detail: value, Earliest: now, Latest: now}, nil)
	}
	return Log{}, fmt.Errorf("%w: %s", errRefused, verb)
}

// one is the log of a single event, which has happened even where it may mean more than it was to.
func one(e lab.Event, err error) (Log, error) {
	if err != nil && !control.IsHeld(err) {
		return Log{}, err
	}
	return Log{Events: []Sent{{Event: e}}}, err
}

func (d *Doer) url(ctx context.Context, open func(context.Context, string) (lab.Event, error), url string) (Log, error) {
	if open == nil {
		return Log{}, fmt.Errorf("%w: nothing here opens a URL", errRefused)
	}
	return one(open(ctx, url))
}

// aimed does an action in the middle of a target.
func (d *Doer) aimed(ctx context.Context, target string, do func(image.Point) (lab.Event, error)) (Log, error) {
	area, err := d.find(ctx, target)
	if err != nil {
		return Log{}, err
	}
	at := middle(area)
	log, err := one(do(at))
	log.At, log.Area = at, area
	return log, err
}

func (d *Doer) find(ctx context.Context, target string) (image.Rectangle, error) {
	t, err := lab.ParseTarget(target)
	if err != nil {
		return image.Rectangle{}, err
	}
	return d.Find(ctx, t)
}

func middle(r image.Rectangle) image.Point {
	return image.Pt(r.Min.X+(r.Dx()-1)/2, r.Min.Y+(r.Dy()-1)/2)
}

func buttonOf(s lab.Step) control.Button {
	switch s.Button {
	case "middle":
		return control.Middle
	case "right":
		return control.Right
	}
	return control.Left
}

func overOf(s lab.Step, usual time.Duration) time.Duration {
	if s.Over == 0 {
		return usual
	}
	return time.Duration(s.Over * float64(time.Millisecond))
}

// wait waits for a time. An end to wait for is the caller's.
func (d *Doer) wait(ctx context.Context, value string) (Log, error) {
	pause, end, err := lab.ParseWait(value)
	if err != nil || end != nil {
		return Log{}, err
	}
	return d.pause(ctx, lab.VerbWait, value, pause)
}

// idle leaves the device alone for a time.
func (d *Doer) idle(ctx context.Context, value string) (Log, error) {
	pause, err := lab.ParseIdle(value)
	if err != nil {
		return Log{}, err
	}
	return d.pause(ctx, lab.VerbIdle, value, pause)
}

// pause waits for a time; its event is the beginning.
func (d *Doer) pause(ctx context.Context, verb, value string, pause time.Duration) (Log, error) {
	from := d.Clock()
	if err := d.until(ctx, from.Add(pause)); err != nil {
		return Log{}, err
	}
	return one(lab.Event{Name: verb, Detail: value, Earliest: from, Latest: from}, nil)
}

// Wait waits until an instant, as precisely as the events of gestures are timed.
func (d *Doer) Wait(ctx context.Context, at lab.Time) error { return d.until(ctx, at) }

func (d *Doer) until(ctx context.Context, at lab.Time) error {
	if d.Until != nil {
		return d.Until(ctx, at)
	}
	return sleepUntil(ctx, d.Clock, at)
}

// errPastedOver refuses a text that comes at once where it was to take a time.
var errPastedOver = errors.New("the keyboard layout has no keys for the whole text, which would be pasted at once: " +
	"leave over_ms out") // constant

// typed types a text at once, or character by character over a time.
func (d *Doer) typed(ctx context.Context, s lab.Step) (Log, error) {
	runes := []rune(s.Type)
	if s.Over == 0 || len(runes) < 2 {
		return one(d.Controller.Text(ctx, s.Type))
	}
	if p, ok := d.Controller.(control.TextPreparer); ok {
		pasted, err := p.PrepareText(ctx, s.Type)
		if err == nil && pasted {
			err = errPastedOver
		}
		if err != nil {
			return Log{}, err
		}
	}
	return d.scheduled(ctx, s, spread(len(runes), overOf(s, 0)), func(i int) (lab.Event, error) {
		return d.Controller.Text(ctx, string(runes[i]))
	})
}

// scroll turns the wheel at once, or notch by notch over a time.
func (d *Doer) scroll(ctx context.Context, s lab.Step) (Log, error) {
	dx, dy, err := lab.ParseNotches(s.Scroll)
	if err != nil {
		return Log{}, err
	}
	where := s.At
	if where == "" {
		where = "50%,50%"
	}
	area, err := d.find(ctx, where)
	if err != nil {
		return Log{}, err
	}
	at := middle(area)
	var log Log
	if s.Over == 0 {
		log, err = one(d.Controller.Scroll(ctx, at.X, at.Y, dx, dy))
	} else {
		notches := max(dx, -dx, dy, -dy)
		log, err = d.scheduled(ctx, s, spread(notches, overOf(s, 0)), func(i int) (lab.Event, error) {
			return d.Controller.Scroll(ctx, at.X, at.Y, share(dx, i, notches), share(dy, i, notches))
		})
	}
	log.At, log.Area = at, area
	return log, err
}

// choose opens a file dialogue by a click, and chooses a file in it. The input is the key that chooses.
func (d *Doer) choose(ctx context.Context, s lab.Step) (Log, error) {
	chooser, ok := d.Controller.(control.FileChooser)
	if !ok || d.File == nil {
		return Log{}, fmt.Errorf("%w: no file can be put on it, and chosen there", errRefused)
	}
	path, err := d.File(s.Choose)
	if err != nil {
		return Log{}, err
	}
	area, err := d.find(ctx, s.At)
	if err != nil {
		return Log{}, err
	}
	log := Log{At: middle(area), Area: area}
	before, chosen, err := chooser.ChooseFile(ctx, log.At.X, log.At.Y, path, d.Ready)
	for _, e := range before {
		log.Before = append(log.Before, Sent{Event: e})
	}
	if chosen != (lab.Event{}) {
		log.Events = []Sent{{Event: chosen}}
	}
	return log, err
}

// share is the i-th of n nearly equal parts of a number.
func share(all, i, n int) int { return all*(i+1)/n - all*i/n }

// way finds the two ends of a way.
func (d *Doer) way(ctx context.Context, value string) (from, to image.Rectangle, err error) {
	start, end, err := lab.ParseWay(value)
	if err == nil {
		from, err = d.Find(ctx, start)
	}
	if err == nil {
		to, err = d.Find(ctx, end)
	}
	return from, to, err
}

// drag presses at one target, moves, and releases at another.
func (d *Doer) drag(ctx context.Context, s lab.Step, verb, value string) (Log, error) {
	holder, ok := d.Controller.(control.Holder)
	if !ok {
		return Log{}, fmt.Errorf("%w: its controller cannot hold a button", errRefused)
	}
	from, to, err := d.way(ctx, value)
	if err != nil {
		return Log{}, err
	}
	rate, ease := usualRate, steady
	if s.Rate > 0 {
		rate = s.Rate
	}
	if verb == lab.VerbPan {
		ease = finger
	}
	points := line(middle(from), middle(to), overOf(s, usualOver), rate, ease)
	log, err := d.hold(ctx, s, holder, points)
	log.At, log.Area = middle(from), from
	return log, err
}

// hold presses at the first point, moves through the others, and releases. The button is
// released even where the way could not be completed.
func (d *Doer) hold(ctx context.Context, s lab.Step, holder control.Holder, points []point) (Log, error) {
	times := make([]time.Duration, 0, len(points))
	for _, p := range points {
		times = append(times, p.After)
	}
	log, err := d.scheduled(ctx, s, times, func(i int) (lab.Event, error) {
		if at := points[i].At; i > 0 {
			return holder.Move(ctx, at.X, at.Y)
		}
		return holder.Press(ctx, points[0].At.X, points[0].At.Y, buttonOf(s))
	})
	return log.lifted(err, func() (lab.Event, error) { return holder.Lift(ctx) })
}

// lifted ends a gesture that ended with err: what came down is lifted, whatever else went wrong.
func (l Log) lifted(err error, lift func() (lab.Event, error)) (Log, error) {
	if len(l.Events) == 0 {
		return l, err
	}
	e, liftErr := lift()
	if liftErr == nil {
		l.Events = append(l.Events, Sent{Event: e})
	}
	return l, errors.Join(err, liftErr)
}

// leadTime is between the decision to begin a schedule and its first event.
const leadTime = 2 * time.Millisecond

// scheduled sends events at absolute times: one that is late does not delay the next.
func (d *Doer) scheduled(ctx context.Context, s lab.Step, times []time.Duration, send func(i int) (lab.Event, error)) (Log, error) {
	bound := UsualLate
	if s.Late > 0 {
		bound = time.Duration(s.Late * float64(time.Millisecond))
	}
	log := Log{Events: make([]Sent, 0, len(times)+1)}
	var late error
	err := priority.Urgently(priority.Input, func() error {
		begin := d.Clock().Add(leadTime)
		for i, after := range times {
			at := begin.Add(after)
			if err := d.until(ctx, at); err != nil {
				return err
			}
			e, err := send(i)
			if err != nil {
				return fmt.Errorf("event %d of %d: %w", i+1, len(times), err)
			}
			sent := Sent{Event: e, Planned: at}
			log.Events = append(log.Events, sent)
			if late == nil && sent.Late() > bound {
				late = &LateError{Event: i, Of: len(times), By: sent.Late(), Bound: bound}
			}
		}
		return nil
	})
	if err != nil {
		return log, err
	}
	return log, late
}
