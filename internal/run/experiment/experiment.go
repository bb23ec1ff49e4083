// Package experiment carries out plans: it arms the network, creates a device, films it
// while a scenario runs, detects the end, decides whether the trial is valid and has it
// measured. Its input is a [Plan] and the instruments, behind the small interfaces declared
// here; its output is trials, their artifacts in the caller's folders, and a summary.
//
// A trial's steps are those of docs/design.md: arm, birth, film, synchronise, act, end,
// measure. A failure in one of them makes the trial invalid with a reason, which is kept
// and shown; the trial never enters a statistic. An error is returned only if every further
// trial would fail too.
package experiment

import (
	"context"
	"errors"
	"image/color"
	"log/slog"
	"time"

	"eidetic/internal/lab"
)

// Network is the device's network.
type Network interface {
	// Arm prepares the network for one trial: fresh match state, or a new recording.
	Arm(ctx context.Context) (Session, error)
}

// Session is the network during one trial.
type Session interface {
	Traffic() Traffic
	// Disarm ends the session and returns all served requests, in the order of their arrival.
	Disarm() ([]lab.Served, error)
}

// Traffic is what the network did since it was armed.
type Traffic struct {
	Requests, Misses, InFlight int
	LastActivity               lab.Time
	// Recorded is how many exchanges of this page the recording has, and Asked how many of
	// them were requested; both are 0 if unknown.
	Recorded, Asked int
	// Waits are the requests, without sockets and event streams, that wait for their origins while a
	// page is recorded.
	Waits []Wait
	// Workers is how many scripts of service workers were asked for.
	Workers int
	// Unseen says that the latest navigation got what no browser shows, while a page is recorded.
	Unseen bool
	// Filled is how many requests that the recording lacks were fetched from their origins.
	Filled int
	// Done is the first call of lab.done(), with the page's name for it as Detail; nil
	// before the call.
	Done *lab.Event
	// Marks are all calls of lab.done(), as far as they were kept.
	Marks []lab.Event
}

// Teller is a Session that keeps what pages report of themselves, and what they put onto the timeline, with
// times on the box's clock.
type Teller interface{ Told() Told }

// Told is what the pages of a session said.
type Told struct {
	Marks       []lab.PageMark
	Annotations []lab.Annotation
	Dialogues   []lab.Dialogue
}

// Metered is a Session that knows how long the browser took for the fixed layout of the synchronisation page, in ms;
// false if it has not told.
type Metered interface{ PageMeter() (float64, bool) }

// RestNoter is a Session that notes when the page came to rest: one that records it.
type RestNoter interface{ AtRest(lab.Time) }

// Link is the emulated access network.
type Link interface {
	// Restart resets the link's losses, scheduled changes and counters, so that every trial
	// meets the same link.
	Restart()
	// Report returns what the link did since Restart.
	Report() LinkReport
}

// Device is the device under test.
type Device interface {
	// Birth resets the device and opens a URL on it.
	Birth(ctx context.Context, url string) (Life, error)
}

// Life is a device from its birth to the end of a trial.
type Life interface {
	// Done is closed if the device ends before Stop; Err then says why.
	Done() <-chan struct{}
	Err() error
	Stop() error
}

// Crasher is a Life whose browser goes on when one of its processes crashes, and shows a picture of its own in place of
// what that process drew.
type Crasher interface {
	// Crashed says why; "" if none has.
	Crashed() string
}

// Crash is why a load counts for nothing whose picture is the browser's own; nil where no process is known to have crashed.
func Crash(life Life) error {
	if c, ok := life.(Crasher); ok {
		if why := c.Crashed(); why != "" {
			return errors.New("the page crashed, and the browser showed a picture of its own in its place: " + why)
		}
	}
	return nil
}

// TracedDevice is a Device whose browsers can trace themselves.
type TracedDevice interface {
	Device
	// BirthTraced is Birth, of a browser that can; the Life is a Tracer.
	BirthTraced(ctx context.Context, url string) (Life, error)
}

// Tracer is a Life that traces itself: from Trace until end, which writes the trace to a file as gzip, and after which
// the browser may have ended.
type Tracer interface {
	Trace(ctx context.Context) (end func(ctx context.Context, path string) (lab.BrowserTrace, error), err error)
}

// Starter is a Life that nothing runs in yet, with the synchronisation colour on its screen: its
// trial begins with the start of the browser, instead of a key on the synchronisation page.
type Starter interface {
	Start(ctx context.Context, url string) (lab.Event, error)
}

// Screen films the device.
type Screen interface {
	// Film starts a recording into the file.
	Film(ctx context.Context, path string) (Film, error)
}

// Film is a recording in progress.
type Film interface {
	Status() FilmStatus
	// Shows says whether the newest picture has a single colour, the given one.
	Shows(color.RGBA) bool
	// Latest passes the newest picture to a function, which must not keep it. It returns
	// false if there is none.
	Latest(fn func(lab.Format, lab.Frame)) bool
	Done() <-chan struct{} // closed if the recording ends by itself
	Stop() (FilmStatus, error)
}

// FilmStatus is the state of a recording.
type FilmStatus struct {
	Frames, Lost                      int
	FirstFrame, LastFrame, LastChange lab.Time
	// Interruptions is how often the source reported that it cannot deliver pictures: a
	// lost signal, a removed device.
	Interruptions int
	// Trouble is what the source reported first, or why the recording has ended by itself; "" for nothing.
	Trouble string
	// Full is why the disk took no more of the recording; nil if it took all.
	Full error
	// Noise is what is known so far of how the pictures of a still screen move.
	Noise lab.ScreenNoise
	// Period is the time between two looks at the screen. Normal is the usual uncertainty
	// of the time of a change: Period plus the median uncertainty of the frames.
	Period, Normal time.Duration
	// MissedProven counts missed ticks during which nothing was drawn, so the picture is
	// known; MissedDrawn counts those during which something was drawn. Lost includes
	// neither.
	MissedProven, MissedDrawn int
	// Unseen lists, in order, the changes whose time is less certain than Normal by half a
	// Period or more. See lab.WorstUnseen.
	Unseen []lab.Unseen
	// Capture explains losses and holds the measured rate and the scheduling; nil while the film goes on.
	Capture *lab.CaptureState
}

// Control drives the device.
type Control interface {
	// Key presses and releases a key by its X name: "Return".
	Key(ctx context.Context, name string) (lab.Event, error)
}

// Analyst measures a finished trial: it fills in the fields of t that come from pixels.
// The function that it returns makes the evidence for people, pictures and a video, and
// names the files in t.Files. No number depends on that evidence.
type Analyst interface {
	Analyse(ctx context.Context, dir string, t *lab.Trial, start lab.Event) (evidence func(context.Context) error, err error)
}

// Host reports what on the machine can spoil a trial.
type Host interface {
	// Watch takes a sample of the machine's load. The returned function takes another and
	// returns the difference; nil if it is unknown.
	Watch() func() *lab.Machine
	// Wall is the wall clock.
	Wall() time.Time
	// Awake keeps the processors from entering sleep states until release is called.
	Awake() (release func())
}

// Folder keeps artifacts.
type Folder interface {
	TrialDir(n int) (string, error)
}

// Plan says what happens in each trial, and how many trials there are.
type Plan struct {
	Arm    string        // arm of the trial; "" is the control
	Page   string        // URL under test
	Sync   string        // URL of the synchronisation page that leads to Page on a press of Return
	Trials int           // how many, of each arm
	Still  time.Duration // how long screen and network must be still at the end
	Limit  time.Duration // after the start, the trial ends in any case
	Settle time.Duration // how long the synchronisation page must be still before the start
	Seed   uint64        // of every random choice
	// Tolerance is how much blur a valid trial may have. 0 is DefaultTolerance, which is
	// relaxed if the machine cannot keep it; any other value is never relaxed.
	Tolerance time.Duration
	// Limits are what the device's conditions must keep beside a trial.
	Limits lab.Limits
	// ExpectBlank says that a trial is valid although its recording shows no page load.
	ExpectBlank bool
	// Together is how many cells of one arm, which follow one another, take turns as the arms of a comparison do; 0 is 1.
	Together int
	// Warmups is how many trials of each arm are made before the others; they enter no statistic.
	Warmups int
	// Traces is how many trials of each arm are made after the others for their browser's trace; they enter no
	// statistic. With TraceAll every trial is traced.
	Traces   int
	TraceAll bool
	traced   bool // of this trial
	// recording says that it is Record's: of its pictures only those of the load are needed.
	recording bool
	// MachineHz is how often a second the processes are read; 0 for never.
	MachineHz float64
	Threads   bool // of the browser are read, too
	// Looks lists after how many pairs Look is asked whether the run knows enough to end; the last
	// one is that of all pairs, at which it is not asked.
	Looks []int
	Look  func(run *lab.Run, at int) (known bool)
	// Size is asked after blocks how many pairs are made, until it knows: 0 then stands for all trials. Choosing looks
	// again after each of Looks for that many. nil makes all.
	Size func(run *lab.Run) (pairs int, looks []int, known bool)
	// Steps make a journey, of which the first step is the load of Page. Where a step has several recorded
	// gestures, the trials of an arm take turns, by [lab.StepsOf].
	Steps []lab.Step
}

// DefaultPlan fits a page load on a desktop link.
func DefaultPlan(page, sync string, trials int) Plan {
	return Plan{
		Page: page, Sync: sync, Trials: trials,
		Still: 1500 * time.Millisecond, Limit: 60 * time.Second, Settle: 700 * time.Millisecond,
		Seed: 1,
	}
}

// Runner holds the instruments.
type Runner struct {
	Network Network
	Link    Link // nil if no link is emulated
	Device  Device
	Screen  Screen
	Control Control
	Analyst Analyst
	// Journey carries out the steps of plans that have some.
	Journey Journey
	Host    Host
	Clock   lab.Clock
	Log     *slog.Logger
	// Usage returns the processor time so far by consumer; nil if it is unknown.
	Usage func() map[string]time.Duration
	// MainThreads is that of Rest; nil if it is unknown.
	MainThreads func() map[int]time.Duration
	// Memory reads the memory of the browser's processes, also what of it is their share if asked to; nil if it is
	// unknown.
	Memory func(shares bool) []lab.ProcessMemory
	// Sample reads what the processes beside it do; nil if they are not seen.
	Sample func(hz float64, threads bool) (end func() (lab.Sampled, []lab.ProcessSample))
	// Meter measures how fast this machine is; nil where the device's processors are its own.
	Meter func(context.Context) (lab.MeterReading, error)
	// Conditions asks the device how it is; nil for one that does not tell.
	Conditions func(context.Context) (lab.Conditions, error)
	// Progress is called for each step; it must not block.
	Progress func(Step)
}

// Step is a progress report of a run.
type Step struct {
	Trial, Of int
	Arm       string     // of the trial, where there are two
	Doing     string     // "starting the browser", "filming", "analysing"
	Done      *lab.Trial // the trial that has just ended
	Note      string     // a sentence for a person
}

func (r *Runner) progress(s Step) {
	if r.Progress != nil {
		r.Progress(s)
	}
}
