// Package seat is where people sit before a device while no run uses it: they see its screen, and one of
// them at a time gives it input. While a run has the device they see the run's film, and its input is
// locked.
//
// In go steps in the one-line form of package control/gesture; out come pictures, and the interval in
// which the device can have got each event. What is opened is closed again soon after nobody uses it.
package seat

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"eidetic/capture/source"
	"eidetic/capture/steady"
	"eidetic/control/connect"
	"eidetic/control/gesture"
	"eidetic/control/recipe"
	"eidetic/internal/lab"
	"eidetic/internal/run/drive"
	"eidetic/internal/run/execute"
)

// Parts are what a device is seen by, and what gives it input.
type Parts struct {
	Screen   source.Options
	Controls connect.Options
	Recipe   string // of its browser; "" if it is unknown
}

// Picture is what a device's screen shows now.
type Picture struct {
	PNG []byte
	Run bool // of the film of a run
}

// Driver is who gives input: a person may have several windows open.
type Driver struct{ Name, Window string }

// Seat is that of one device. Its zero value is that of a device without parts.
type Seat struct {
	// Open says what the device's parts are opened with; nil for a device that has parts in runs only.
	Open func() (Parts, error)
	// Live is the folder in which a run shows the screen.
	Live string
	// Runs counts the runs in progress on this box, which people who look take no time from; nil: this seat's only.
	Runs *atomic.Int32

	mu     sync.Mutex
	taken  bool          // by a run
	lent   string        // to an errand: what that does with the device, in words
	filmed bool          // the errand has the screen
	free   chan struct{} // closed when the errand is over
	driver Driver
	until  time.Time       // the driver's turn
	over   *time.Timer     // tidies after it
	idle   context.Context // ends when a run takes the device
	stop   context.CancelFunc
	views  []string // who looks, by each open one

	eyes    sync.Mutex // held while the screen is looked at
	screen  *drive.Screen
	looked  time.Time // last
	last    Picture
	changed lab.Time    // of last
	unseen  *time.Timer // tidies after the last look
	noise   steady.Memory
	newest  newest

	watching sync.Mutex // held while the film of a run is looked at
	film     film

	hands    sync.Mutex // held while input is given
	controls *connect.Controls
}

const (
	// lookTime is for how long the screen stays open after somebody has looked.
	lookTime = 10 * time.Second
	// turnTime is for how long a driver keeps the controls after the last input.
	turnTime = time.Minute
	// firstPicture is how long a screen may take to show something.
	firstPicture = 10 * time.Second
	// mostSteps and inputTime bound one request.
	mostSteps = 50
	inputTime = 30 * time.Second
)

// ErrTaken is why a device has no other input during a run.
var ErrTaken = errors.New("a run uses the device: its input is locked until the run ends") // constant

// Lend gives the device to an errand, until the returned function is called: a run waits meanwhile, and another errand
// is refused. An errand that needs the screen for itself shows its film in the folder Live, and input goes on.
func (s *Seat) Lend(what string, screen bool) (back func(), err error) {
	s.mu.Lock()
	switch {
	case s.taken:
		err = errors.New("a run uses the device: wait until it has ended, or cancel it")
	case s.lent != "":
		err = fmt.Errorf("%s: wait until that has ended, or stop it", s.lent)
	}
	if err != nil {
		s.mu.Unlock()
		return nil, err
	}
	s.lent, s.filmed, s.free = what, screen, make(chan struct{})
	s.mu.Unlock()
	if screen {
		s.eyes.Lock()
		s.shut()
		s.eyes.Unlock()
		s.forgetFilm()
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.lent, s.filmed = "", false
		close(s.free)
	}, nil
}

// Take closes the seat for a run, until the returned function is called. It waits until an errand is over, and tells
// what that does.
func (s *Seat) Take(ctx context.Context, waits func(what string)) (back func(), err error) {
	s.mu.Lock()
	for s.lent != "" {
		what, free := s.lent, s.free
		s.mu.Unlock()
		if waits != nil {
			waits(what)
		}
		select {
		case <-free:
		case <-ctx.Done():
			return nil, fmt.Errorf("%s: %w", what, context.Cause(ctx))
		}
		s.mu.Lock()
	}
	s.taken, s.driver = true, Driver{}
	if s.Runs != nil {
		s.Runs.Add(1)
	}
	if s.stop != nil {
		s.stop()
	}
	s.mu.Unlock()
	s.eyes.Lock()
	s.shut()
	s.eyes.Unlock()
	s.hands.Lock()
	s.letGo()
	s.hands.Unlock()
	s.forgetFilm()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.taken = false
		if s.Runs != nil {
			s.Runs.Add(-1)
		}
	}, nil
}

// shut closes the screen; eyes is held. Its errors are those of looking.
func (s *Seat) shut() {
	if s.screen != nil {
		_ = s.screen.Close()
	}
	s.screen, s.last = nil, Picture{}
	s.newest.forget()
}

// letGo closes the controls, which releases what is held; hands is held.
func (s *Seat) letGo() {
	if s.controls != nil {
		_ = s.controls.Close()
	}
	s.controls = nil
}

// tidy closes what nobody has used for a while.
func (s *Seat) tidy() {
	s.eyes.Lock()
	s.mu.Lock()
	watched := len(s.views) > 0
	s.mu.Unlock()
	if !watched && time.Since(s.looked) >= lookTime {
		s.shut()
	}
	s.eyes.Unlock()
	s.hands.Lock()
	defer s.hands.Unlock()
	s.mu.Lock()
	over := s.driver == Driver{} || time.Now().After(s.until)
	if over {
		s.driver = Driver{}
	}
	s.mu.Unlock()
	if over {
		s.letGo()
	}
}

// after has a timer call f in a while, and not before then.
func after(t **time.Timer, d time.Duration, f func()) {
	if *t == nil {
		*t = time.AfterFunc(d, f)
	} else {
		(*t).Reset(d)
	}
}

// begin returns a context for what is done while no run uses the device, and what ends it.
func (s *Seat) begin(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken {
		return nil, nil, ErrTaken
	}
	if s.idle == nil || s.idle.Err() != nil {
		s.idle, s.stop = context.WithCancel(context.Background())
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	forget := context.AfterFunc(s.idle, cancel)
	return ctx, func() { forget(); cancel() }, nil
}

// filmedError says that a run or an errand has the screen, and films it.
type filmedError struct {
	run  bool
	none string // what is said while there is no picture of the film
}

func (e *filmedError) Error() string { return e.none }

// open returns the device's screen, opened if it is not.
func (s *Seat) open(ctx context.Context) (*drive.Screen, error) {
	if s.Open == nil && !s.isTaken() {
		return nil, ErrNoScreen
	}
	s.eyes.Lock() // whoever takes the screen closes ours first
	defer s.eyes.Unlock()
	s.mu.Lock()
	taken, filmed := s.taken, s.filmed
	s.mu.Unlock()
	switch {
	case taken:
		return nil, &filmedError{true, "a run uses the device, and shows nothing yet: it shows its trials"}
	case filmed:
		return nil, &filmedError{false, "the device is being filmed, and nothing is shown of that yet"}
	}
	s.looked = time.Now()
	after(&s.unseen, lookTime, s.tidy)
	if s.screen != nil {
		return s.screen, nil
	}
	ctx, cancel, err := s.begin(ctx, firstPicture)
	if err != nil {
		return nil, err
	}
	defer cancel()
	c, err := s.Open()
	if err != nil {
		return nil, err
	}
	if c.Screen.Format.Pixels != lab.MJPEG { // those are shown as they come
		c.Screen.Noise = &s.noise
	}
	src, err := source.Open(ctx, c.Screen)
	if err != nil {
		return nil, fmt.Errorf("the screen: %w", err)
	}
	s.screen = drive.Watch(context.WithoutCancel(ctx), src)
	return s.screen, nil
}

// Look returns the newest picture.
func (s *Seat) Look(ctx context.Context) (p Picture, err error) {
	for range 2 {
		var taken bool
		if p, taken, err = s.look(ctx); !taken {
			break
		}
	}
	return p, err
}

// look is Look. With taken, a run or an errand has taken the screen meanwhile, and shows it.
func (s *Seat) look(ctx context.Context) (p Picture, taken bool, err error) {
	screen, err := s.open(ctx)
	var shown *filmedError
	if errors.As(err, &shown) {
		film, err := s.lookAtFilm(shown)
		return film.Picture, false, err
	}
	if err != nil {
		return p, false, err
	}
	ctx, cancel := context.WithTimeout(ctx, firstPicture)
	defer cancel()
	pic, changed, err := screen.Picture(ctx)
	if err != nil {
		return p, !s.lost(screen) && ctx.Err() == nil, err
	}
	s.eyes.Lock()
	defer s.eyes.Unlock()
	if s.last.PNG != nil && s.changed == changed {
		return s.last, false, nil
	}
	var b bytes.Buffer
	if err := execute.EncodeLive(&b, pic.Image()); err != nil {
		return p, false, err
	}
	s.last, s.changed = Picture{PNG: b.Bytes()}, changed
	return s.last, false, nil
}

// ErrNoScreen is for a device that has a screen only in a run.
var ErrNoScreen = errors.New("the device has a screen while a run uses it: start one, and look again") // constant

func (s *Seat) isTaken() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken
}

// isMeasured says whether a run is in progress on this box.
func (s *Seat) isMeasured() bool { return s.isTaken() || s.Runs != nil && s.Runs.Load() > 0 }

// film is the newest picture of a film that a run or an errand shows. All who look share it.
type film struct {
	Picture
	size  image.Point
	made  time.Time
	asked time.Time // last for more
}

// askPeriod is how often a run is asked for more; it shows some for longer.
const askPeriod = time.Second

// lookAtFilm returns what a run or an errand has shown last, and asks it for more.
func (s *Seat) lookAtFilm(shown *filmedError) (film, error) {
	s.watching.Lock()
	defer s.watching.Unlock()
	f := &s.film
	if time.Since(f.asked) >= askPeriod {
		if err := os.MkdirAll(s.Live, 0o700); err != nil {
			return film{}, err
		}
		if err := os.WriteFile(filepath.Join(s.Live, execute.LiveWanted), nil, 0o600); err != nil {
			return film{}, err
		}
		f.asked = time.Now()
	}
	name := filepath.Join(s.Live, execute.LivePicture)
	info, err := os.Stat(name)
	if err != nil {
		return film{}, errors.New(shown.none)
	}
	if f.PNG == nil || !info.ModTime().Equal(f.made) {
		text, err := os.ReadFile(name)
		if err != nil {
			return film{}, errors.New(shown.none)
		}
		head, err := png.DecodeConfig(bytes.NewReader(text))
		if err != nil {
			return film{}, fmt.Errorf("the film's picture: %w", err)
		}
		f.PNG, f.size, f.made = text, image.Pt(head.Width, head.Height), info.ModTime()
	}
	f.Run = shown.run
	return *f, nil
}

// forgetFilm removes the picture of an earlier run or errand.
func (s *Seat) forgetFilm() {
	s.watching.Lock()
	defer s.watching.Unlock()
	s.film = film{}
	_ = os.Remove(filepath.Join(s.Live, execute.LivePicture))
}

// Drive takes or keeps the turn of giving input, and says how long it lasts without any.
func (s *Seat) Drive(who Driver) (time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.mayDrive(who); err != nil {
		return 0, err
	}
	return s.turn(who), nil
}

func (s *Seat) mayDrive(who Driver) error {
	switch {
	case s.Open == nil:
		return errors.New("the virtual device has no input but that of its runs")
	case s.taken:
		return ErrTaken
	case s.driver != Driver{} && s.driver != who && time.Now().Before(s.until):
		return fmt.Errorf("%s drives the device, for %.0f s more without another input", s.driver.Name, time.Until(s.until).Seconds())
	}
	return nil
}

func (s *Seat) turn(who Driver) time.Duration {
	s.driver, s.until = who, time.Now().Add(turnTime)
	after(&s.over, turnTime+time.Second, s.tidy)
	return turnTime
}

// Release gives the turn up.
func (s *Seat) Release(who Driver) {
	s.mu.Lock()
	if s.driver == who {
		s.driver = Driver{}
	}
	s.mu.Unlock()
	s.tidy()
}

// Input carries out steps for who has the turn.
func (s *Seat) Input(ctx context.Context, who Driver, text string) (events []lab.Event, err error) {
	steps, err := gesture.Parse(text)
	switch {
	case err != nil:
		return nil, &StepsError{err}
	case len(lab.StepsOf(steps, 0)) > mostSteps:
		return nil, &StepsError{fmt.Errorf("more than %d steps: send them in several requests", mostSteps)}
	case drive.NeedsScreen(steps):
		return nil, &StepsError{errors.New("a picture is not looked for here: appliance control does, or a run")}
	}
	s.hands.Lock()
	defer s.hands.Unlock()
	s.mu.Lock()
	err = s.mayDrive(who)
	if err == nil && s.driver != who { // nobody's turn
		err = errors.New("take the controls first")
	}
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	ctx, cancel, err := s.begin(ctx, inputTime)
	if err != nil {
		return nil, err
	}
	defer cancel()
	c, err := s.Open()
	if err != nil {
		return nil, err
	}
	if s.controls == nil {
		if s.controls, err = connect.Open(ctx, c.Controls); err != nil {
			s.controls = nil
			return nil, fmt.Errorf("the controls: %w", err)
		}
	}
	o := drive.Options{Controller: s.controls.Controller, Size: s.controls.Screen, Clock: lab.Monotonic, Limit: inputTime}
	if c.Recipe != "" {
		r, err := recipe.Find(c.Recipe)
		if err != nil {
			return nil, err
		}
		o.Opening = r.Opening
	}
	err = drive.Run(ctx, o, steps, func(_ int, e gesture.Sent) { events = append(events, e.Event) })
	if err != nil { // what is held is released, and a connection that broke is made again
		s.letGo()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.driver == who {
		s.turn(who)
	}
	return events, err
}

// StepsError says that the steps are wrong, whatever the device's state.
type StepsError struct{ Err error }

func (e *StepsError) Error() string { return "steps: " + e.Err.Error() }

// Unwrap returns what is wrong.
func (e *StepsError) Unwrap() error { return e.Err }
