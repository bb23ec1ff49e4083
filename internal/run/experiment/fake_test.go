package experiment

import (
	"context"
	"errors"
	"image/color"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// The fakes simulate a browser that shows green, and a page that changes the screen at
// given times after the key press. Time is that of the test's synctest bubble.

func now() lab.Time { return lab.Time(time.Now().UnixNano()) }

type world struct {
	crash string // of the page alone
	// the page
	changes  []time.Duration // after the key
	final    color.RGBA      // of the last picture
	requests []lab.Served
	traffic  func(since time.Duration) Traffic

	busyUntil time.Duration // after the key: the page computes until then, and does little afterwards

	// failures
	slowBy    time.Duration // later than greenAfter the green page shows
	diesAfter time.Duration // of the key
	lost      int
	lostOf    []int         // per life, if it differs
	silentAt  time.Duration // after the key: the source reports an interruption
	silences  []silence
	stopErr   error
	filmErr   error
	full      error // ends the film when the key is pressed

	evidenceErr error
	noLoad      string // what the analyst says of the film

	rested        time.Duration // after the key, as the session was told
	born, pressed lab.Time
	dead          chan struct{}
	stopped       int
	analysed      int
	machine       *lab.Machine
	busyOf        []float64       // beside the lab, per life, if it differs
	late, lateAt  time.Duration   // of the link, and when, after the key
	lateOf        []time.Duration // per life, if it differs
	awake         int             // number of Awake calls not yet released
	slept         bool            // the key was pressed while awake was 0
	linkFault     string
	restarted     lab.Time
	step          time.Duration // of the wall clock, at the second look
	looks         int
}

// silence is a time without pictures, after the birth or the key.
type silence struct {
	key      bool
	from, to time.Duration
}

// bounds are those of a silence that has begun.
func (w *world) bounds(s silence) (from, to lab.Time, ok bool) {
	since := w.born
	if s.key {
		since = w.pressed
	}
	return since.Add(s.from), since.Add(s.to), since != 0
}

func (w *world) runner() *Runner {
	r := &Runner{Network: w, Device: w, Screen: fakeScreen{w}, Control: w, Analyst: fakeAnalyst{w}, Link: fakeLink{w},
		Host: fakeHost{w}, Clock: now}
	if w.busyUntil > 0 {
		r.MainThreads = w.mainThreads
	}
	return r
}

// mainThreads are those of the page and of a process that waits, since the key.
func (w *world) mainThreads() map[int]time.Duration {
	since := now().Sub(w.pressed)
	return map[int]time.Duration{7: min(since, w.busyUntil) + max(0, since-w.busyUntil)/20, 8: since / 50}
}

func (w *world) Arm(context.Context) (Session, error) { return fakeSession{w}, nil }

type fakeSession struct{ w *world }

func (s fakeSession) Traffic() Traffic {
	if s.w.traffic != nil && s.w.pressed != 0 {
		return s.w.traffic(now().Sub(s.w.pressed))
	}
	return Traffic{LastActivity: s.w.pressed}
}
func (s fakeSession) AtRest(at lab.Time)            { s.w.rested = at.Sub(s.w.pressed) }
func (s fakeSession) Disarm() ([]lab.Served, error) { return s.w.requests, nil }

func (w *world) Birth(context.Context, string) (Life, error) {
	w.born, w.pressed, w.dead = now(), 0, make(chan struct{})
	if len(w.lostOf) > 0 {
		w.lost, w.lostOf = w.lostOf[0], w.lostOf[1:]
	}
	return fakeLife{w}, nil
}

type fakeLife struct{ w *world }

func (l fakeLife) Done() <-chan struct{} { return l.w.dead }
func (l fakeLife) Err() error            { return errors.New("the browser crashed") }
func (l fakeLife) Crashed() string       { return l.w.crash }
func (l fakeLife) Stop() error           { l.w.stopped++; return l.w.stopErr }

func (w *world) Key(context.Context, string) (lab.Event, error) {
	at := now()
	w.pressed, w.slept = at, w.awake == 0
	if w.diesAfter > 0 {
		dead := w.dead
		time.AfterFunc(w.diesAfter, func() { close(dead) })
	}
	return lab.Event{Name: "key", Earliest: at, Latest: at}, nil
}

type fakeScreen struct{ w *world }

func (s fakeScreen) Film(context.Context, string) (Film, error) {
	if s.w.filmErr != nil {
		return nil, s.w.filmErr
	}
	return fakeFilm(s), nil
}

type fakeFilm struct{ w *world }

const greenAfter = 300 * time.Millisecond

func (f fakeFilm) Status() FilmStatus {
	t := now()
	s := FilmStatus{Frames: 1 + int(t.Sub(f.w.born)/(time.Second/60)), Lost: f.w.lost, FirstFrame: f.w.born, LastFrame: t,
		LastChange: f.w.born}
	if t.Sub(f.w.born) >= greenAfter {
		s.LastChange = f.w.born.Add(greenAfter)
	}
	s.Full = f.w.full
	if f.w.pressed != 0 && f.w.silentAt > 0 && t.Sub(f.w.pressed) >= f.w.silentAt {
		s.Interruptions = 1
	}
	for _, silence := range f.w.silences {
		if from, to, begun := f.w.bounds(silence); begun && t >= from {
			s.Interruptions++
			s.Trouble = "it was silent"
			if t < to {
				s.LastFrame = from
			} else {
				s.Interruptions++ // that it is back is an event, too
			}
		}
	}
	if f.w.pressed != 0 {
		for _, c := range f.w.changes {
			if at := f.w.pressed.Add(c); at <= t {
				s.LastChange = at
			}
		}
	}
	return s
}

func (f fakeFilm) Shows(c color.RGBA) bool {
	t := now()
	switch {
	case f.w.pressed != 0 && len(f.w.changes) > 0 && t >= f.w.pressed.Add(f.w.changes[len(f.w.changes)-1]):
		return c == f.w.final
	case t.Sub(f.w.born) >= greenAfter+f.w.slowBy:
		return c == lab.SyncGreen()
	}
	return false
}

func (f fakeFilm) Latest(fn func(lab.Format, lab.Frame)) bool {
	fn(lab.Format{}, lab.Frame{FrameInfo: lab.FrameInfo{Time: now()}})
	return true
}
func (f fakeFilm) Done() <-chan struct{} {
	if f.w.full == nil || f.w.pressed == 0 {
		return nil
	}
	ended := make(chan struct{})
	close(ended)
	return ended
}
func (f fakeFilm) Stop() (FilmStatus, error) { return f.Status(), nil }

type fakeAnalyst struct{ w *world }

func (a fakeAnalyst) Analyse(_ context.Context, _ string, t *lab.Trial, start lab.Event) (func(context.Context) error, error) {
	a.w.analysed++
	t.Measurements, t.NoLoad = append(t.Measurements, metric.SpeedIndex.Measure(1, nil)), a.w.noLoad
	return func(context.Context) error { return a.w.evidenceErr }, nil
}

type fakeLink struct{ w *world }

func (l fakeLink) Restart() { l.w.restarted = now() }
func (l fakeLink) Report() LinkReport {
	late := l.w.late
	if len(l.w.lateOf) > 0 {
		late, l.w.lateOf = l.w.lateOf[0], l.w.lateOf[1:]
	}
	r := LinkReport{Kept: map[string]int{"packets": 1}, Invalid: l.w.linkFault}
	if late > 0 {
		r.Late = []lab.Late{{At: l.w.pressed.Add(l.w.lateAt), Sum: late}}
	}
	return r
}

type fakeHost struct{ w *world }

func (h fakeHost) Awake() func() {
	h.w.awake++
	return func() { h.w.awake-- }
}

func (h fakeHost) Watch() func() *lab.Machine {
	return func() *lab.Machine {
		if len(h.w.busyOf) == 0 {
			return h.w.machine
		}
		var busy float64
		busy, h.w.busyOf = h.w.busyOf[0], h.w.busyOf[1:]
		return &lab.Machine{Seconds: 1, Busy: busy}
	}
}
func (h fakeHost) Wall() time.Time {
	h.w.looks++
	if h.w.looks > 2 {
		return time.Now().Add(h.w.step)
	}
	return time.Now()
}
