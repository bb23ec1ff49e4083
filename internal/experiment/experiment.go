// Package experiment carries out plans: it arms the network, has a device
// born, films it while a scenario runs, finds the end, judges whether the trial
// is valid and has it measured. In go a [Plan] and the instruments, behind the
// small interfaces declared here; out come trials, their artifacts in folders
// that someone else provides, and a summary.
//
// A trial's steps are those of docs/design.md: arm, birth, film, synchronise,
// act, end, measure. Whatever goes wrong in one is an invalid trial with its
// reason, which is kept and shown and never enters a statistic; only what makes
// every further trial pointless is an error.
package experiment

import (
	"context"
	"image/color"
	"log/slog"
	"time"

	"eidetic/internal/lab"
)

// Network is the device's network.
type Network interface {
	// Arm readies it for one trial: fresh match state, or a new recording.
	Arm(ctx context.Context) (Session, error)
}

// Session is the network during one trial.
type Session interface {
	Traffic() Traffic
	// Disarm ends it and returns every request that was served, in the order of their arrival.
	Disarm() ([]lab.Served, error)
}

// Traffic is what the network did since it was armed.
type Traffic struct {
	Requests, Misses, InFlight int
	LastActivity               lab.Time
	// Recorded is how many exchanges the recording has of this page, and Asked how many of
	// them were asked for; both are 0 where that is not known.
	Recorded, Asked int
	// Done is the first call of lab.done() that arrived, with the name that the page
	// gave as its Detail; nil before.
	Done *lab.Event
}

// Link is the emulated access network.
type Link interface {
	// Restart begins its losses, its changes over time and its counters anew:
	// equal trials meet equal links.
	Restart()
	// Report returns what it did since.
	Report() LinkReport
}

// Device is what is tested.
type Device interface {
	// Birth makes the device fresh and opens a URL on it.
	Birth(ctx context.Context, url string) (Life, error)
}

// Life is a device between its birth and the end of a trial.
type Life interface {
	// Done is closed when the device ends before Stop; Err then says why.
	Done() <-chan struct{}
	Err() error
	Stop() error
}

// Screen films the device.
type Screen interface {
	// Film starts a recording into the file.
	Film(ctx context.Context, path string) (Film, error)
}

// Film is a recording that runs.
type Film interface {
	Status() FilmStatus
	// Shows says whether the newest picture is all of one colour.
	Shows(color.RGBA) bool
	// Latest shows the newest picture; it must not be kept. False when there is none.
	Latest(fn func(lab.Format, lab.Frame)) bool
	Done() <-chan struct{} // closed when the recording ended by itself
	Stop() (FilmStatus, error)
}

// FilmStatus is where a recording is.
type FilmStatus struct {
	Frames, Lost                      int
	FirstFrame, LastFrame, LastChange lab.Time
	// Interruptions is how often the source of the pictures reported that it
	// cannot deliver: a signal that is lost, a device that went away.
	Interruptions int
	// Period is the time between two looks at the screen, Normal how well this film
	// usually knows the time of a change: Period and the median of the frames' uncertainty.
	Period, Normal time.Duration
	// MissedProven counts the ticks at which nobody looked and nothing was drawn, so
	// that the picture is known; MissedDrawn those with something drawn meanwhile.
	// Neither is in Lost.
	MissedProven, MissedDrawn int
	// Unseen are the changes, in order, whose time is known worse than Normal by half
	// a Period or more. See lab.WorstUnseen.
	Unseen []lab.Unseen
	// Capture explains losses and names the measured rate and scheduling; nil while the film goes on.
	Capture *lab.CaptureState
}

// Control drives the device.
type Control interface {
	// Key presses and releases a key by its X name: "Return".
	Key(ctx context.Context, name string) (lab.Event, error)
}

// Analyst measures a finished trial: it fills in the fields of t that pixels
// tell. The function that it returns makes the evidence, pictures and film for
// people, and names its files in t.Files; no number rests on it.
type Analyst interface {
	Analyse(ctx context.Context, dir string, t *lab.Trial, start lab.Event) (evidence func(context.Context) error, err error)
}

// Host tells of the machine that runs the lab what can spoil a trial.
type Host interface {
	// Watch looks at the machine, and again when the returned function is called,
	// which says what happened meanwhile; nil where that is not known.
	Watch() func() *lab.Machine
	// Wall is the wall clock.
	Wall() time.Time
	// Awake keeps the processors from sleeping until release is called.
	Awake() (release func())
}

// Folder keeps artifacts.
type Folder interface {
	TrialDir(n int) (string, error)
}

// Plan says what is done in each trial and how often.
type Plan struct {
	Arm    string        // whose trial it is; the control's without it
	Page   string        // URL under test
	Sync   string        // URL of the synchronisation page that leads to Page on a press of Return
	Trials int           // how many, of each arm
	Still  time.Duration // how long screen and network must be still at the end
	Limit  time.Duration // after the start, the trial ends in any case
	Settle time.Duration // how long the synchronisation page must be still before the start
	Seed   uint64        // of everything that is drawn by lot
	// Tolerance is how much blur a valid trial may have. 0 is DefaultTolerance, which
	// is relaxed where the machine cannot keep it; another one never is.
	Tolerance time.Duration
}

// DefaultPlan fits a page load on a desktop link.
func DefaultPlan(page, sync string, trials int) Plan {
	return Plan{
		Page: page, Sync: sync, Trials: trials,
		Still: 1500 * time.Millisecond, Limit: 60 * time.Second, Settle: 700 * time.Millisecond,
		Seed: 1,
	}
}

// Runner has the instruments wired.
type Runner struct {
	Network Network
	Link    Link // nil when the network has none to report on
	Device  Device
	Screen  Screen
	Control Control
	Analyst Analyst
	Host    Host
	Clock   lab.Clock
	Log     *slog.Logger
	// Usage is the processor time so far by who took it; nil when it is not known.
	Usage func() map[string]time.Duration
	// MainThreads is that of Rest; nil when it is not known.
	MainThreads func() map[int]time.Duration
	// Progress hears of each step; it must not block.
	Progress func(Step)
}

// Step is news of a run.
type Step struct {
	Trial, Of int
	Doing     string     // "starting the browser", "filming", "analysing"
	Done      *lab.Trial // the trial that has just ended
	Note      string     // a sentence for a person
}

func (r *Runner) progress(s Step) {
	if r.Progress != nil {
		r.Progress(s)
	}
}
