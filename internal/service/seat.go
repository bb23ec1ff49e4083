package service

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"eidetic/capture/source"
	"eidetic/control/connect"
	"eidetic/control/gesture"
	"eidetic/control/recipe"
	"eidetic/internal/drive"
	"eidetic/internal/execute"
	"eidetic/internal/lab"
	"eidetic/internal/panel"
)

// seat is where people sit before a device while no run uses it: they see its screen, and one of them
// gives it input. What it opens is closed again soon after nobody uses it, and before a run begins.
type seat struct {
	open func() (execute.PluggedConfig, error) // nil for a device that has parts only in a run
	live string                                // the folder in which a run shows the screen

	mu     sync.Mutex
	taken  bool // by a run
	driver panel.Driver
	until  time.Time       // the driver's turn
	idle   context.Context // ends when a run takes the device
	stop   context.CancelFunc

	eyes    sync.Mutex // held while the screen is looked at
	screen  *drive.Screen
	looked  time.Time // last
	last    panel.ScreenPicture
	changed lab.Time // of last

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

// errTaken is why a device has no other input during a run.
var errTaken = errors.New("a run uses the device: its input is locked until the run ends") // constant

// take closes the seat for a run, until the returned function is called.
func (s *seat) take() func() {
	s.mu.Lock()
	s.taken, s.driver = true, panel.Driver{}
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
	_ = os.Remove(filepath.Join(s.live, execute.LivePicture)) // of an earlier run
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.taken = false
	}
}

// shut closes the screen; eyes is held. Its errors are those of looking.
func (s *seat) shut() {
	if s.screen != nil {
		_ = s.screen.Close()
	}
	s.screen, s.last = nil, panel.ScreenPicture{}
}

// letGo closes the controls, which releases what is held; hands is held.
func (s *seat) letGo() {
	if s.controls != nil {
		_ = s.controls.Close()
	}
	s.controls = nil
}

// tidy closes what nobody has used for a while.
func (s *seat) tidy() {
	s.eyes.Lock()
	if time.Since(s.looked) >= lookTime {
		s.shut()
	}
	s.eyes.Unlock()
	s.hands.Lock()
	defer s.hands.Unlock()
	s.mu.Lock()
	over := s.driver == panel.Driver{} || time.Now().After(s.until)
	if over {
		s.driver = panel.Driver{}
	}
	s.mu.Unlock()
	if over {
		s.letGo()
	}
}

// begin returns a context for what is done while no run uses the device, and what ends it.
func (s *seat) begin(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken {
		return nil, nil, errTaken
	}
	if s.idle == nil || s.idle.Err() != nil {
		s.idle, s.stop = context.WithCancel(context.Background())
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	forget := context.AfterFunc(s.idle, cancel)
	return ctx, func() { forget(); cancel() }, nil
}

// look returns the newest picture.
func (s *seat) look(ctx context.Context) (panel.ScreenPicture, error) {
	s.mu.Lock()
	taken := s.taken
	s.mu.Unlock()
	if taken {
		return s.lookAtRun()
	}
	if s.open == nil {
		return panel.ScreenPicture{}, errNoScreen
	}
	s.eyes.Lock()
	defer s.eyes.Unlock()
	ctx, cancel, err := s.begin(ctx, firstPicture)
	if err != nil {
		return panel.ScreenPicture{}, err
	}
	defer cancel()
	if s.screen == nil {
		c, err := s.open()
		if err != nil {
			return panel.ScreenPicture{}, err
		}
		src, err := source.Open(ctx, c.Source())
		if err != nil {
			return panel.ScreenPicture{}, fmt.Errorf("the screen: %w", err)
		}
		s.screen = drive.Watch(context.WithoutCancel(ctx), src)
	}
	s.looked = time.Now()
	time.AfterFunc(lookTime, s.tidy)
	pic, changed, err := s.screen.Picture(ctx)
	if err != nil {
		s.shut()
		return panel.ScreenPicture{}, err
	}
	if s.last.PNG != nil && s.changed == changed {
		return s.last, nil
	}
	var b bytes.Buffer
	if err := execute.EncodeLive(&b, pic.Image()); err != nil {
		return panel.ScreenPicture{}, err
	}
	s.last, s.changed = panel.ScreenPicture{PNG: b.Bytes()}, changed
	return s.last, nil
}

// errNoScreen is for a device that has a screen only in a run.
var errNoScreen = errors.New("the device has a screen while a run uses it: start one, and look again") // constant

// lookAtRun returns what the run has shown last, and asks it for more.
func (s *seat) lookAtRun() (panel.ScreenPicture, error) {
	if err := os.MkdirAll(s.live, 0o700); err != nil {
		return panel.ScreenPicture{}, err
	}
	if err := os.WriteFile(filepath.Join(s.live, execute.LiveWanted), nil, 0o600); err != nil {
		return panel.ScreenPicture{}, err
	}
	b, err := os.ReadFile(filepath.Join(s.live, execute.LivePicture))
	if err != nil {
		return panel.ScreenPicture{}, errors.New("a run uses the device, and shows nothing yet: it shows its trials")
	}
	return panel.ScreenPicture{PNG: b, Run: true}, nil
}

// drive takes or keeps the turn of giving input.
func (s *seat) drive(who panel.Driver) (panel.Turn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.mayDrive(who); err != nil {
		return panel.Turn{}, err
	}
	return s.turn(who), nil
}

func (s *seat) mayDrive(who panel.Driver) error {
	switch {
	case s.open == nil:
		return errors.New("the virtual device has no input but that of its runs")
	case s.taken:
		return errTaken
	case s.driver != panel.Driver{} && s.driver != who && time.Now().Before(s.until):
		return fmt.Errorf("%s drives the device, for %.0f s more without another input", s.driver.Name, time.Until(s.until).Seconds())
	}
	return nil
}

func (s *seat) turn(who panel.Driver) panel.Turn {
	s.driver, s.until = who, time.Now().Add(turnTime)
	time.AfterFunc(turnTime+time.Second, s.tidy)
	return panel.Turn{Driver: who.Name, Seconds: turnTime.Seconds()}
}

// release gives the turn up.
func (s *seat) release(who panel.Driver) {
	s.mu.Lock()
	if s.driver == who {
		s.driver = panel.Driver{}
	}
	s.mu.Unlock()
	s.tidy()
}

// input carries out steps for who has the turn.
func (s *seat) input(ctx context.Context, who panel.Driver, text string) (events []lab.Event, err error) {
	steps, err := gesture.Parse(text)
	switch {
	case err != nil:
		return nil, wrongSteps(err)
	case len(lab.StepsOf(steps, 0)) > mostSteps:
		return nil, wrongSteps(fmt.Errorf("more than %d steps: send them in several requests", mostSteps))
	case drive.NeedsScreen(steps):
		return nil, wrongSteps(errors.New("a picture is not looked for here: appliance control does, or a run"))
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
	c, err := s.open()
	if err != nil {
		return nil, err
	}
	if s.controls == nil {
		if s.controls, err = connect.Open(ctx, c.Connect()); err != nil {
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

func wrongSteps(err error) error {
	return &panel.Refusal{Status: http.StatusUnprocessableEntity, Err: fmt.Errorf("steps: %w", err)}
}

// seats is [panel.Seats] for a list of devices.
type seats struct{ devices *deviceList }

func (s seats) at(device string) (*seat, error) {
	d := s.devices.get(device)
	if d == nil {
		return nil, &panel.Refusal{Status: http.StatusNotFound, Err: fmt.Errorf("there is no device %q", device)}
	}
	return d.place(), nil
}

// busy makes an error of a device that cannot be used now one of the request.
func busy(err error) error {
	var refused *panel.Refusal
	if err == nil || errors.As(err, &refused) {
		return err
	}
	return &panel.Refusal{Status: http.StatusConflict, Err: err}
}

// Screen implements [panel.Seats].
func (s seats) Screen(ctx context.Context, device string) (panel.ScreenPicture, error) {
	at, err := s.at(device)
	if err != nil {
		return panel.ScreenPicture{}, err
	}
	p, err := at.look(ctx)
	return p, busy(err)
}

// Drive implements [panel.Seats].
func (s seats) Drive(device string, who panel.Driver) (panel.Turn, error) {
	at, err := s.at(device)
	if err != nil {
		return panel.Turn{}, err
	}
	t, err := at.drive(who)
	return t, busy(err)
}

// Release implements [panel.Seats].
func (s seats) Release(device string, who panel.Driver) error {
	at, err := s.at(device)
	if err == nil {
		at.release(who)
	}
	return err
}

// Input implements [panel.Seats].
func (s seats) Input(ctx context.Context, device string, who panel.Driver, steps string) ([]lab.Event, error) {
	at, err := s.at(device)
	if err != nil {
		return nil, err
	}
	events, err := at.input(ctx, who, steps)
	return events, busy(err)
}

// liveFolder is where a run of a device shows its screen.
func liveFolder(data, device string) string {
	sum := sha256.Sum256([]byte(device))
	return filepath.Join(data, "live", hex.EncodeToString(sum[:8]))
}

// seatConfig is what the parts of a device at a port are opened with.
func (d *portDevice) seatConfig() (execute.PluggedConfig, error) {
	c := execute.PluggedConfig{Screen: *d.config.Screen, Controls: *d.config.Controls, Password: d.config.Password, Recipe: d.config.Recipe}
	now := d.describeNetwork()
	c.Address, _ = netip.ParseAddr(now.Address)
	if !c.Address.IsValid() && c.NeedsAddress() {
		return c, fmt.Errorf("device %s: %s", d.config.Name, now.Problem)
	}
	return c, nil
}
