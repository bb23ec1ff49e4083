// Package execute carries out one plan from beginning to end: it records pages through the
// device's network, replays the recordings trial by trial on the device, films and measures
// them, and leaves a run folder that says how the run ended.
//
// Its input is a [plan.Checked], a [Rig] (a device with the box's network around it) and a store;
// its output is a run folder and progress reports. It is the one place where the instruments
// meet the procedure of package experiment, so the demo and the box's service measure in the
// same way.
package execute

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"eidetic/analysis/stats"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
	"eidetic/internal/plan"
	"eidetic/internal/run/device"
	"eidetic/internal/run/experiment"
	"eidetic/internal/run/inspect"
	"eidetic/internal/run/journey"
	"eidetic/internal/tell/report"
	"eidetic/internal/tell/verdict"
	"eidetic/netlab"
)

// Rig is a device with the box's network around it, ready to be measured.
type Rig struct {
	Network *netlab.Network
	Device  experiment.Device
	Screen  experiment.Screen
	Control experiment.Control
	// Prepare makes the device the one that an arm asks for, before each of its trials.
	Prepare func(context.Context, plan.Arm) error
	// Texts makes ready to give the device texts, and returns an error for one that cannot get to it; nil knows nothing
	// before.
	Texts func(context.Context, []string) error
	// States are those in which trials on the device can begin.
	States []string
	// Ways are those in which the device starts apps.
	Ways []string
	// Fingers is how many fingers the device's controls have for a touch screen.
	Fingers int
	// Locale makes the device tell pages that it is where a recording was made; nil where that cannot be changed.
	Locale func(lab.Locale)
	// Warm starts the arm's browser at its page, and keeps its profile for the arm's trials when
	// loaded returns; nil where every trial begins cold.
	Warm func(ctx context.Context, a plan.Arm, loaded func(experiment.Life) error) error
	// Seed has the arm's browser make visits, and keeps its profile for the trials of the arm's user; nil where the
	// browser is not ours.
	Seed func(ctx context.Context, a plan.Arm, v Visits) error
	// Hands give the input of steps; nil where the device cannot be given any.
	Hands *Hands
	// Parts says that the device is made of parts, which a plan may replace.
	Parts bool
	// Link reports on the emulated access network; nil is the network's own.
	Link experiment.Link
	// Usage returns the processor time so far by consumer; nil if it is unknown.
	Usage func() map[string]time.Duration
	// MainThreads is that of the experiment's runner; nil if it is unknown.
	MainThreads func() map[int]time.Duration
	// Memory is that of the experiment's runner; nil if it is unknown.
	Memory func(shares bool) []lab.ProcessMemory
	// Sample is that of the experiment's runner; nil if processes are not seen.
	Sample func(hz float64, threads bool) (end func() (lab.Sampled, []lab.ProcessSample))
	// Meter is that of the experiment's runner; nil where the device's processors are its own.
	Meter func(context.Context) (lab.MeterReading, error)
	// Conditions is that of the experiment's runner; nil for a device that tells none.
	Conditions func(context.Context) (lab.Conditions, error)
	// Describe fills in the device's part of a run's environment; it is called at the
	// beginning and at the end.
	Describe func(*lab.Environment)
	// Sealed is called when all recordings are made and no origin is needed any more; nil
	// does nothing.
	Sealed func()
	// Finish adds to a completed run what is known only at its end; nil adds nothing.
	Finish func(run *lab.Run) error
}

// News receives the progress of an execution. Its functions must not block; nil ones are not called.
type News struct {
	Say  func(text string) // a sentence for a person
	Step func(experiment.Step)
	Film func(FilmNews) // for a watchdog
}

// FilmNews is a sign of life of the screen's recorder.
type FilmNews string

// The signs of life that a watchdog receives.
const (
	FilmBegins FilmNews = "begins"
	FilmTurns  FilmNews = "turns" // frames arrived, or the source has reported why none do; sent about once a second
	FilmEnds   FilmNews = "ends"
)

// Waits tells that the device is waited for, which is used otherwise.
func (n News) Waits(why string) { n.say("waiting for the device: %s", why) }

func (n News) say(format string, args ...any) {
	if n.Say != nil {
		n.Say(fmt.Sprintf(format, args...))
	}
}

// Execution is a run: a plan with everything needed to carry it out.
type Execution struct {
	ID   string       // of the run
	Plan plan.Checked // with its files
	Rig  Rig
	Root string // of the store
	// Live is the folder in which the screen is shown to people who look at it; "" shows it to nobody.
	Live string
	// Processes is device.Host's.
	Processes string
	News      News
	Log       *slog.Logger
	// Software names the appliance and its version.
	Software string
	// Check judges the recordings before they are read into this process; its Memory is what they may
	// take here too.
	Check inspect.Checker
	// Warnings are what the run must say besides its own.
	Warnings []string

	analyst *analyst
	fill    fill
	journey *journey.Player // nil without steps
	resumed bool            // trials of an earlier process are kept, and the recordings that they replayed
	before  float64         // seconds that earlier processes took
	warmed  map[string]bool // the arms whose page was loaded before their trials
	seeded  map[string]bool // the users whose browsers are prepared
	begun   time.Time
	run     *lab.Run
	folder  *store.Folder
}

// clock is the clock of all times of a run.
func clock() lab.Time { return lab.Monotonic() }

// Run makes the run's folder and fills it. If the run is not done, the error says why, and so
// does the folder if it exists.
func (x *Execution) Run(ctx context.Context) (err error) {
	if !store.ValidID(x.ID) {
		return fmt.Errorf("%q is no identifier of a run", x.ID)
	}
	if err := x.refuses(); err != nil {
		return err
	}
	x.begun, x.analyst = time.Now(), &analyst{ask: x.Plan.Measure}
	if x.journey, err = x.player(); err != nil {
		return err
	}
	if x.journey != nil {
		x.analyst.templates = x.journey.Templates
	}
	control := x.Plan.Cells[0].Arms[0]
	x.run = &lab.Run{
		ID: x.ID, Name: x.Plan.Name, Wall: x.begun, State: store.StateRunning,
		Page: control.Page, Plan: keptPlan(x.Plan), Link: control.Link.Describe(),
		Trials: []*lab.Trial{}, Summary: []lab.Summary{}, Environment: x.environment(), Warnings: slices.Clone(x.Warnings),
		Cells: newCells(x.Plan),
	}
	if x.Plan.NeedsProtocol() {
		x.run.Warnings = append(x.run.Warnings, askedWarning)
	}
	if err := x.begin(); err != nil {
		return err
	}
	defer x.folder.Close()
	defer func() { err = x.finish(ctx, err) }()
	x.sizeOfLast(ctx)
	x.warmed = map[string]bool{}
	for _, a := range x.Plan.Every() { // a browser that is missing is told before anything is recorded
		a.User = nil
		if err := x.prepare(ctx, a); err != nil {
			return err
		}
	}
	if err := x.prepareTexts(ctx); err != nil {
		return err
	}
	return x.perform(ctx)
}

// refuses returns an error for a plan that the rig's device cannot carry out.
func (x *Execution) refuses() error {
	others := checkOwnParts(x.Plan)
	if x.Rig.Parts {
		others = cmp.Or(checkOwnBrowser(x.Plan), checkUnseen(x.Plan, x.Rig.Sample != nil))
	}
	return cmp.Or(others, CheckFingers(x.Plan, x.Rig.Fingers), CheckChosen(x.Plan, !x.Rig.Parts),
		CheckStates(x.Plan, x.Rig.States), CheckApps(x.Plan, x.Rig.Ways))
}

// askedWarning stands in runs whose steps need more of the browser than input.
const askedWarning = "The browser was asked by its debugging protocol where elements are (css), or told a URL (open): between the inputs, and " +
	"with nothing attached to the page while it is measured. All input is the operating system's."

// keptPlan is the plan as the run keeps it: its files are in the run's folder.
func keptPlan(asked plan.Checked) lab.Plan {
	p := asked.Plan
	if !p.IsMany() {
		p = p.WithArms(p.Arms())
	}
	p.Files = nil
	return p
}

// perform records missing archives and carries out the trials.
func (x *Execution) perform(ctx context.Context) error {
	// Set only with a profile: without one, connections pass unchanged.
	defer func() { x.run.Link.BackEnd = x.Rig.Network.LinkReport().Backend }()
	var shaped experiment.Link = emulated{x.Rig.Network}
	if x.Rig.Link != nil {
		shaped = x.Rig.Link
	}
	screen := x.Rig.Screen
	if x.analyst.ask.FrameCodes() {
		screen = codedScreen{screen}
	}
	runner := &experiment.Runner{
		Link: shaped, Device: x.Rig.Device, Screen: watched{liveScreen{screen, x.Live}, x.News.Film}, Control: x.Rig.Control, Analyst: x.analyst,
		Usage: x.usage(), MainThreads: x.Rig.MainThreads, Memory: x.Rig.Memory, Sample: x.Rig.Sample, Meter: x.Rig.Meter,
		Journey: x.journey, Conditions: x.Rig.Conditions,
		Host: device.Host{Processes: x.Processes}, Clock: clock, Log: x.Log, Progress: x.News.Step,
	}
	if x.Plan.Live {
		return runner.Run(ctx, x.plan(), x.live(ctx), x.run, x.folder, x.save)
	}
	arms, err := x.recordings(ctx, runner)
	if err != nil {
		return err
	}
	if err := errors.Join(runner.Run(ctx, x.plan(), arms, x.run, x.folder, x.save), x.endFill()); err != nil {
		return err
	}
	x.Rig.Describe(&x.run.Environment)
	if x.Rig.Finish != nil {
		return x.Rig.Finish(x.run)
	}
	return nil
}

// usage is the rig's usage plus the time of the encoders, which may end before the rig reads
// their time.
func (x *Execution) usage() func() map[string]time.Duration {
	if x.Rig.Usage == nil {
		return nil
	}
	return func() map[string]time.Duration {
		all := maps.Clone(x.Rig.Usage())
		all["encoder"] += time.Duration(x.analyst.encoding.Load())
		return all
	}
}

// plan converts the plan for package experiment.
func (x *Execution) plan() experiment.Plan {
	p := experiment.DefaultPlan("", "", x.Plan.Trials)
	p.Still, p.Limit, p.Seed = x.Plan.StillTime(), x.Plan.LimitTime(), x.Plan.Seed
	p.Warmups, p.Traces, p.TraceAll = x.Plan.Warmups, x.Plan.Traces, x.Plan.TraceAll
	p.Tolerance, p.Steps, p.ExpectBlank = x.Plan.ToleranceTime(), maskCodes(x.Plan.Plan), x.Plan.ExpectBlank
	p.Together = x.Plan.TakingTurns()
	p.Size = x.size()
	p.MachineHz, p.Threads = x.analyst.ask.MachineHz(), x.analyst.ask.Threads()
	if x.Plan.Conditions != nil {
		p.Limits = *x.Plan.Conditions
	}
	if x.Plan.Looks > 0 {
		p.Looks = x.Plan.LooksAfter()
		p.Look = func(run *lab.Run, at int) bool { return verdict.Look(run, at, x.Plan.Seed) }
	}
	return p
}

// save writes the run in its current state.
func (x *Execution) save() error {
	x.run.Elapsed = x.before + time.Since(x.begun).Seconds()
	return x.folder.Save(x.run)
}

// finish writes the run's final state with its results and its report.
func (x *Execution) finish(ctx context.Context, cause error) error {
	run := x.run
	run.State = store.StateDone
	switch {
	case ctx.Err() != nil:
		run.State, run.Error = store.StateInterrupted, "it was stopped before it was done"
	case cause != nil:
		run.State, run.Error = store.StateFailed, cause.Error()
	}
	conclude(run)
	concludeCauses(x.folder.Path(), run)
	err := cause
	run.Elapsed = x.before + time.Since(x.begun).Seconds()
	// A failed run has a report too: people look there for the reason.
	if reportErr := report.Write(x.folder.Path(), run); reportErr != nil {
		err = errors.Join(err, reportErr)
		if cause == nil {
			run.State, run.Error = store.StateFailed, reportErr.Error()
		}
	}
	// Saved last, so that a run whose state is final is complete.
	return errors.Join(err, x.save())
}

// environment collects what could explain a difference to another run.
func (x *Execution) environment() lab.Environment {
	e := lab.Environment{Appliance: x.Software, Host: device.Host{}.Facts()}
	x.Rig.Describe(&e)
	return e
}

func valid(trials []*lab.Trial) (n int) {
	for _, t := range trials {
		if t.Valid {
			n++
		}
	}
	return n
}

// summarise describes each metric over the valid trials of each arm.
func summarise(trials []*lab.Trial) []lab.Summary {
	type key struct{ arm, metric string }
	values := map[key][]float64{}
	units := map[string]string{}
	var order []key
	// The control comes first, whichever arm had the first trial.
	byArm := slices.Clone(trials)
	slices.SortStableFunc(byArm, func(a, b *lab.Trial) int { return cmp.Compare(lab.ArmOrder(a.Arm), lab.ArmOrder(b.Arm)) })
	for _, t := range byArm {
		if !t.Valid {
			continue
		}
		for _, m := range t.Measurements {
			k := key{t.Arm, m.Name}
			if values[k] == nil {
				order = append(order, k)
			}
			values[k] = append(values[k], m.Value)
			units[m.Name] = m.Unit
		}
	}
	out := make([]lab.Summary, 0, len(order))
	for _, k := range order {
		s := stats.Summarise(values[k])
		s.Arm, s.Metric, s.Unit = k.arm, k.metric, units[k.metric]
		if k.metric == metric.ReplayConfidence.String() && s.Min == 1 {
			s.Warnings = nil // equal values are expected here
		}
		out = append(out, s)
	}
	return out
}
