// Package errand carries out what a person asks of a device between runs, without a plan: film its screen now, record
// what it asks for, qualify its grabber, watch the noise of its screen.
//
// A request flows in; out flow a state that can be asked for at any time and, at the end, a film or a qualification in
// the store of runs, or a recording among those that people uploaded. One errand at a time has a device: a run waits
// for it, and it is refused while a run has the device. What is not complete yet has no name that a list shows, so an
// errand whose process is killed leaves nothing behind.
package errand

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/run/seat"
	"eidetic/netlab"
)

// What there is to do.
const (
	Film    = "film"
	Record  = "record"
	Qualify = "qualify"
	Noise   = "noise"
)

// The states of an errand.
const (
	Waiting = "waiting" // for the trigger of a film with pre-roll
	Working = "working"
	Keeping = "keeping" // what was filmed or recorded is made ready to be looked at
	Done    = "done"
	Failed  = "failed"
	Stopped = "stopped" // nothing is kept
)

// The bounds of an errand: it keeps runs waiting, and fills the disk.
const (
	MostFilm    = 10 * time.Minute
	MostPreRoll = time.Minute
	MostWait    = 10 * time.Minute // for a trigger
	MostRecord  = time.Hour
	MostQualify = 5 * time.Minute

	mostBytes = 4 << 30 // of a film or a recording
)

// Request is what a person asks for. What is zero has a default.
type Request struct {
	Do string
	// Length of a film after its trigger, of a qualification; the most of a recording.
	Length  time.Duration
	PreRoll time.Duration // of a film: how much before the trigger is kept; without it the film begins at once
	Name    string        // of the result
}

// Status is how an errand goes, or how it ended.
type Status struct {
	Do       string
	Name     string
	State    string
	By       string // who asked for it
	Began    time.Time
	Ended    *time.Time
	Ends     *time.Time // when it ends by itself, while it works
	Doing    string     // in words
	Error    string
	Note     string // what is to be known of a result, such as that a film ended early
	Frames   int    // filmed so far
	Requests int    // recorded so far
	// The result: the ID of a run that is a film or a qualification, the name of a recording, what is known of the
	// noise.
	Run       string
	Recording string
	Noise     *NoiseReport
}

// Over says whether the errand has ended.
func (s Status) Over() bool { return s.State == Done || s.State == Failed || s.State == Stopped }

// Device is what an errand uses of a device.
type Device struct {
	Name string
	Seat *seat.Seat
	// Hold keeps the device's network as it is until the returned function is called; nil for a device without one of
	// its own.
	Hold func() (*netlab.Network, func(), error)
	// The pictures of a qualification are on a display of this machine that the grabber sees, if there is one (an X
	// display), or else in the device's own browser.
	Display  string
	Pictures *Pictures // nil for a device that opens no page of the box
}

// Recordings take a recording in.
type Recordings interface {
	// Begin makes a folder for a recording that is being made. The caller removes it.
	Begin() (dir string, err error)
	// Keep gives a complete file its name.
	Keep(ctx context.Context, file, name string) error
}

// Keeper carries out the errands of a box.
type Keeper struct {
	Store      *store.Store
	Recordings Recordings
	Room       func() error // says why nothing can be kept now; nil always allows it
	Software   string
	Log        *slog.Logger

	mu     sync.Mutex
	latest map[string]*errand // by device
	closed bool
	work   sync.WaitGroup
}

// errand is one in progress, or the last one of its device.
type errand struct {
	request Request
	finish  chan struct{} // closed to end it and keep what there is
	trigger chan struct{} // closed to begin a film that waits
	cancel  context.CancelFunc

	mu                  sync.Mutex
	status              Status
	finished, triggered bool
}

// RefusedError says that a request can be carried out on no device, whatever its state.
type RefusedError struct{ Err error }

func (e *RefusedError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong.
func (e *RefusedError) Unwrap() error { return e.Err }

func refuse(format string, args ...any) error { return &RefusedError{fmt.Errorf(format, args...)} }

// withDefaults fills in what was left out, and checks the rest.
func (r Request) withDefaults() (Request, error) {
	usual, most := map[string]time.Duration{Film: 10 * time.Second, Record: 10 * time.Minute, Qualify: 30 * time.Second}[r.Do],
		map[string]time.Duration{Film: MostFilm, Record: MostRecord, Qualify: MostQualify}[r.Do]
	switch {
	case usual == 0 && r.Do != Noise:
		return r, refuse("do: there is no %.40q: write film, record, qualify or noise", r.Do)
	case r.PreRoll != 0 && r.Do != Film:
		return r, refuse("pre_roll_s: only a film has one")
	case r.PreRoll < 0 || r.PreRoll > MostPreRoll:
		return r, refuse("pre_roll_s: %v is outside 0 … %v", r.PreRoll, MostPreRoll)
	case r.Length == 0:
		r.Length = usual
	case r.Do == Noise:
		return r, refuse("seconds: the noise is watched for about a second")
	case r.Length < time.Second || r.Length > most:
		return r, refuse("seconds: %v is outside 1 s … %v", r.Length, most)
	}
	return r, nil
}

// says is what a device does in an errand, for who must wait for it.
func (r Request) says(by string) string {
	return map[string]string{
		Film: "the device is being filmed", Record: "what the device asks for is being recorded", Qualify: "its grabber is being qualified",
		Noise: "the noise of its screen is being watched",
	}[r.Do] + " for " + by
}

var (
	errNoScreen  = errors.New("the device has a screen while a run uses it: start a run, which films it") // constant
	errNoNetwork = errors.New("the device has a network in runs only: a run records its page")            // constant
	errClosed    = errors.New("the appliance is stopping; ask again")                                     // constant
	// ErrStopped ends an errand of which nothing is to be kept.
	errStopped = errors.New("it was stopped, and nothing is kept") // constant
)

// ErrNone is for a device of which nothing was asked since the start.
var ErrNone = errors.New("nothing was asked of the device since the appliance started") // constant

// Start begins an errand. An error is a RefusedError, or says why the device cannot be had now.
func (k *Keeper) Start(d Device, r Request, by string) (Status, error) {
	r, err := r.withDefaults()
	if err != nil {
		return Status{}, err
	}
	switch {
	case d.Seat.Open == nil && r.Do != Record:
		return Status{}, errNoScreen
	case d.Hold == nil && r.Do == Record:
		return Status{}, errNoNetwork
	case d.Display == "" && d.Pictures == nil && r.Do == Qualify:
		return Status{}, fmt.Errorf("no screen of this machine is known that the grabber of %s sees: connect one, and name its X display in the "+
			"configuration (display: \":0\" of the device)", d.Name)
	}
	if k.Room != nil && r.Do != Noise {
		if err := k.Room(); err != nil {
			return Status{}, err
		}
	}
	back, err := d.Seat.Lend(r.says(by), r.Do != Record)
	if err != nil {
		return Status{}, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		back()
		return Status{}, errClosed
	}
	ctx, cancel := context.WithCancel(context.Background())
	e := &errand{request: r, finish: make(chan struct{}), trigger: make(chan struct{}), cancel: cancel, status: Status{
		Do: r.Do, Name: r.Name, State: Working, By: by, Began: time.Now().UTC(), Doing: "beginning",
	}}
	if k.latest == nil {
		k.latest = map[string]*errand{}
	}
	k.latest[d.Name] = e
	k.work.Add(1)
	go func() {
		defer k.work.Done()
		defer cancel()
		err := k.do(ctx, e, d)
		back() // before the end is told: who reads it may ask for the next
		e.end(ctx, err)
		if err != nil && ctx.Err() == nil {
			k.Log.Warn("an errand failed", "device", d.Name, "do", r.Do, "error", err)
		}
	}()
	return e.state(), nil
}

func (k *Keeper) do(ctx context.Context, e *errand, d Device) error {
	switch e.request.Do {
	case Film:
		return k.film(ctx, e, d)
	case Record:
		return k.record(ctx, e, d)
	case Qualify:
		return k.qualify(ctx, e, d)
	}
	return k.noise(ctx, e, d)
}

func (k *Keeper) of(device string) (*errand, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.latest[device]; e != nil {
		return e, nil
	}
	return nil, ErrNone
}

// Of is the errand of a device, or the last one that it had; ErrNone if it had none.
func (k *Keeper) Of(device string) (Status, error) {
	e, err := k.of(device)
	if err != nil {
		return Status{}, err
	}
	return e.state(), nil
}

// Trigger begins a film that waits.
func (k *Keeper) Trigger(device string) (Status, error) {
	e, err := k.of(device)
	if err != nil {
		return Status{}, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.status.State != Waiting || e.request.Do != Film {
		return Status{}, fmt.Errorf("no film of the device waits for its trigger: the last errand is %s", e.status.State)
	}
	if !e.triggered {
		e.triggered = true
		close(e.trigger)
	}
	return e.status, nil
}

// End ends the errand of a device; keep keeps what was filmed or recorded until now. One that is over already stays as
// it is.
func (k *Keeper) End(device string, keep bool) (Status, error) {
	e, err := k.of(device)
	if err != nil {
		return Status{}, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.status.Over():
	case !keep:
		e.cancel()
	case e.request.Do != Film && e.request.Do != Record:
		return Status{}, fmt.Errorf("half of it tells nothing: stop it without keep, or wait until it has ended")
	case !e.finished:
		e.finished = true
		close(e.finish)
	}
	return e.status, nil
}

// Close stops all errands, and returns when they have ended.
func (k *Keeper) Close() error {
	k.mu.Lock()
	k.closed = true
	for _, e := range k.latest {
		e.cancel()
	}
	k.mu.Unlock()
	k.work.Wait()
	return nil
}

func (e *errand) state() Status {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.status
}

// tell changes the status.
func (e *errand) tell(change func(*Status)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change(&e.status)
}

// begins says that it is at work now, and when that ends by itself.
func (e *errand) begins(state, doing string, limit time.Duration) {
	ends := time.Now().Add(limit).UTC()
	e.tell(func(s *Status) { s.State, s.Doing, s.Ends = state, doing, &ends })
}

func (e *errand) end(ctx context.Context, err error) {
	ended := time.Now().UTC()
	e.tell(func(s *Status) {
		s.Doing, s.Ended, s.Ends = "", &ended, nil
		switch {
		case err == nil:
			s.State = Done
		case ctx.Err() != nil:
			s.State, s.Error, s.Run, s.Recording = Stopped, errStopped.Error(), "", ""
		default:
			s.State, s.Error, s.Run, s.Recording = Failed, err.Error(), "", ""
		}
	})
}

// put keeps a result as a run that is complete when it appears.
func (k *Keeper) put(e *errand, run *lab.Run, fill func(dir string) error) error {
	var cause error
	err := store.Put(k.Store.Root(), run, func(dir string) error {
		cause = fill(dir)
		return cause
	})
	if cause != nil {
		return cause // without that it was to be kept
	}
	if err == nil {
		e.tell(func(s *Status) { s.Run = run.ID })
	}
	return err
}
