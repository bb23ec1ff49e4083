package experiment

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// Names of a trial's artifacts.
const (
	ReelFile   = "screen.reel"
	ReplayFile = "replay.jsonl"
	EventsFile = lab.EventsFile
	LinkFile   = "link.json"
	// AnnotationsFile holds what pages put onto the trial's timeline.
	AnnotationsFile = "annotations.jsonl"
	// TraceFile is the browser's own trace, whose role is TraceRole.
	TraceFile = "browser-trace.json.gz"
	TraceRole = "browser trace"
)

// poll is how often a running trial is checked. It does not limit precision: measured
// instants come from frames and logs.
const poll = 20 * time.Millisecond

// birthLimit is how long a fresh device may take to show the synchronisation page, if its plan does not give a load more.
const birthLimit = 45 * time.Second

// Trial carries out one trial into dir. A failed trial is returned as invalid with its
// reasons; an error means that further trials would fail too, or that ctx has ended.
func (r *Runner) Trial(ctx context.Context, p Plan, number int, dir string) (*lab.Trial, error) {
	p.Steps = lab.StepsOf(p.Steps, 0)
	t, err := r.trial(ctx, p, number, dir)
	if err == nil {
		d := r.newDocket(p)
		d.add(t, 0)
		d.giveUp(0)
		d.judge()
	}
	return t, err
}

// trial carries out one trial, but does not judge its blur.
func (r *Runner) trial(ctx context.Context, p Plan, number int, dir string) (*lab.Trial, error) {
	t, _, err := r.attempt(ctx, p, number, dir)
	return t, err
}

// attempt is trial; broken says what ended it early, if something did.
func (r *Runner) attempt(ctx context.Context, p Plan, number int, dir string) (t *lab.Trial, broken *brokenError, err error) {
	t = &lab.Trial{
		Number: number, Arm: cmp.Or(p.Arm, lab.Control), Page: p.Page, Wall: r.Host.Wall(),
		Measurements: []lab.Measurement{}, Events: []lab.Event{},
		Files: map[string]string{},
	}
	err = r.awaitConditions(ctx, p, t) // minutes, perhaps: not of the trial's time, nor of its clock's
	facts := facts{offsetBefore: r.clockOffset(), still: p.Still, expectBlank: p.ExpectBlank}
	spent := r.parts(t)
	t.Before = r.moment(ctx)
	var start *lab.Event
	if err == nil {
		start, err = r.perform(ctx, p, t, dir, &facts, spent)
	}
	if start == nil {
		spent.end(PartBirth) // the trial failed before its load
	} else {
		spent.end(PartStop)
	}
	if ctx.Err() != nil {
		return t, nil, ctx.Err()
	}
	if err != nil && !errors.As(err, &broken) {
		return t, nil, err
	}
	if broken != nil && facts.cut { // also what failed because nothing was seen
		broken.temporary = true
	}
	facts.offsetAfter = r.clockOffset()
	t.After = r.moment(ctx)
	t.Invalid = append(t.Invalid, r.endConditions(ctx, p, t)...)
	r.known(t, facts.served, start)
	if broken != nil {
		t.Invalid = append([]string{broken.Error()}, t.Invalid...)
	}
	if facts.filmed && start != nil && !(p.recording && broken.isTemporary()) { // nobody looks at what is recorded again
		r.progress(Step{Trial: number, Of: p.Trials, Doing: "measuring"})
		if err := r.measure(ctx, dir, t, *start, spent); err != nil {
			return t, nil, err
		}
	}
	if confidence, asked := lab.ReplayConfidence(facts.served); asked > 0 {
		t.Measurements = append(t.Measurements, metric.ReplayConfidence.Measure(confidence, nil))
	}
	if start != nil {
		t.Blur = blurOf(t, facts, start.Earliest)
	}
	t.Invalid = append(t.Invalid, judgeSteps(t, facts.served)...)
	t.Invalid = append(t.Invalid, judge(t, facts)...)
	t.Valid, t.Faults = len(t.Invalid) == 0, t.Invalid
	return t, broken, nil
}

// measure has a trial measured and its evidence made. It returns an error only if ctx ends.
func (r *Runner) measure(ctx context.Context, dir string, t *lab.Trial, start lab.Event, spent *parts) error {
	evidence, err := r.Analyst.Analyse(ctx, dir, t, start)
	spent.end(PartAnalysis)
	if ctx.Err() == nil && err != nil {
		t.Invalid = append(t.Invalid, fmt.Sprintf("the recording could not be measured: %v", err))
		return nil
	}
	if err == nil {
		err = evidence(ctx)
		spent.end(PartEvidence)
	}
	if ctx.Err() == nil && err != nil {
		// Measurements are valid without the evidence.
		t.NoEvidence = err.Error()
	}
	return ctx.Err()
}

// perform does steps 1 to 5 of a trial and writes the logs. It returns the event from which
// times count.
func (r *Runner) perform(ctx context.Context, p Plan, t *lab.Trial, dir string, f *facts, spent *parts) (start *lab.Event, err error) {
	session, err := r.Network.Arm(ctx)
	if err != nil {
		return nil, fmt.Errorf("arming the network: %w", err)
	}
	defer func() {
		served, disarmErr := session.Disarm()
		f.served = served
		t.Requests, t.Misses = count(served)
		traffic := session.Traffic()
		t.Recorded, t.Asked = traffic.Recorded, traffic.Asked
		if t.Filled = traffic.Filled; t.Filled > 0 {
			t.FilledRequests = fetched(served, f.offsetBefore)
		}
		t.Files["replay"], t.Files["events"] = ReplayFile, EventsFile
		var notes []lab.Annotation
		if told, ok := session.(Teller); ok {
			said := told.Told()
			t.PageMarks, t.Dialogues, notes = said.Marks, said.Dialogues, said.Annotations
		}
		if len(notes) > 0 {
			t.Files["annotations"] = AnnotationsFile
			err = errors.Join(err, writeLines(filepath.Join(dir, AnnotationsFile), notes))
		}
		err = errors.Join(err, disarmErr,
			writeLines(filepath.Join(dir, ReplayFile), served),
			writeLines(filepath.Join(dir, EventsFile), t.Events))
	}()

	r.progress(Step{Trial: t.Number, Of: p.Trials, Doing: "starting the browser"})
	life, err := r.birth(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("starting the device: %w", err)
	}
	endTrace := func() {}
	defer func() {
		endTrace()
		if stopErr := life.Stop(); stopErr != nil {
			err = errors.Join(err, fmt.Errorf("stopping the device: %w", stopErr))
		}
	}()

	film, err := r.Screen.Film(ctx, filepath.Join(dir, ReelFile))
	if err != nil {
		return nil, fmt.Errorf("filming the screen: %w", err)
	}
	t.Files["reel"] = ReelFile
	borne := newBreaks(p)
	defer func() {
		status, stopErr := film.Stop()
		f.cut = status.Interruptions > borne.most
		if status.Full != nil { // no other trial succeeds, and no device is at fault
			err = fmt.Errorf("the disk takes no more of the recording of the screen: make room, and run the plan again: %w", status.Full)
		} else if stopErr != nil {
			err = errors.Join(err, interrupted("the recording of the screen failed: %v", stopErr))
		}
		f.filmed = status.Frames > 0
		f.film = status
		t.Capture = status.Capture
		t.Frames, t.FramesLost, t.FirstFrame = status.Frames, status.Lost, status.FirstFrame
	}()

	defer r.Host.Awake()()
	if err := r.awaitSync(ctx, p, life, film, borne); err != nil {
		return nil, err
	}
	if err := r.awaitMeter(ctx, t, life, film, session, borne); err != nil {
		return nil, err
	}
	endTrace = r.trace(ctx, p, t, life, dir)
	endMemory := r.memory(ctx, p, t, dir)
	defer func() { err = errors.Join(err, endMemory()) }()
	endMachine := r.machine(p, t, dir)
	defer func() { err = errors.Join(err, endMachine()) }()
	var play Play
	if len(p.Steps) > 0 {
		if play, err = r.Journey.Begin(film); err != nil {
			return nil, fmt.Errorf("beginning the journey: %w", err)
		}
	}
	r.progress(Step{Trial: t.Number, Of: p.Trials, Doing: "loading the page"})
	spent.wall(PartBirth, film.Status().LastChange)
	seen := r.Host.Watch()
	defer func() {
		if t.Machine == nil { // the trial failed before its end
			t.Machine = seen()
		}
	}()
	if err := lab.Wait(ctx, phase(p.Seed, t.Number)); err != nil {
		return nil, err
	}
	spent.end(PartSettle)
	if r.Link != nil {
		r.Link.Restart()
		defer func() { err = errors.Join(err, r.reportLink(t, dir, f)) }()
	}
	event, err := r.navigate(ctx, p, life)
	if err != nil {
		return nil, err
	}
	t.Events = append(t.Events, event)
	ended, err := r.toEnd(ctx, p, scene{t, dir, play, life, film, session, borne}, event)
	t.Ended, t.Machine, f.crash = ended, seen(), Crash(life)
	spent.wall(PartLoad, film.Status().LastChange)
	spent.end(PartStill)
	if err != nil {
		return &event, err
	}
	t.Events = append(t.Events, marksOf(session.Traffic(), len(p.Steps) > 0)...)
	now := r.Clock()
	t.Events = append(t.Events, lab.Event{Name: "end", Detail: string(ended), Earliest: now, Latest: now})
	return &event, nil
}

// navigate gives the input from which the trial's times count.
func (r *Runner) navigate(ctx context.Context, p Plan, life Life) (lab.Event, error) {
	if sleeping, ok := life.(Starter); ok {
		event, err := sleeping.Start(ctx, p.Page)
		if err != nil {
			return event, fmt.Errorf("starting the program: %w", err)
		}
		event.Name, event.Detail = "navigate", "start of the browser's program with "+p.Page
		if lab.IsAppPage(p.Page) {
			event.Detail = "start of the program, " + p.Page
		}
		return event, nil
	}
	event, err := r.Control.Key(ctx, "Return")
	if err != nil {
		return event, fmt.Errorf("pressing a key on the device: %w", err)
	}
	event.Name, event.Detail = "navigate", "Return on the synchronisation page, which leads to "+p.Page
	return event, nil
}

// reportLink stores what the link did between the start and the end.
func (r *Runner) reportLink(t *lab.Trial, dir string, f *facts) error {
	f.link = r.Link.Report()
	content, err := json.MarshalIndent(f.link.Kept, "", "  ")
	if err != nil {
		return fmt.Errorf("the link's report: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, LinkFile), append(content, '\n'), 0o644); err != nil {
		return err
	}
	t.Files["link"] = LinkFile
	return nil
}

// phase varies the start within the screen's period, so that rounding to frames is an
// error of mean zero instead of a bias.
func phase(seed uint64, trial int) time.Duration {
	const period = time.Second / 60
	random := rand.New(rand.NewPCG(seed, uint64(trial)))
	return time.Duration(random.Int64N(int64(period)))
}

// awaitSync waits until the whole screen has had the synchronisation colour, unchanged, for
// the plan's time, in whose second half the browser had no new process: a fresh browser's start-up work is then over.
func (r *Runner) awaitSync(ctx context.Context, p Plan, life Life, film Film, borne *breaks) error {
	limit := max(birthLimit, p.Limit)
	deadline := r.Clock().Add(limit)
	n := nursery{processes: r.MainThreads}
	for {
		if err := r.look(ctx, life, film, borne); err != nil {
			return err
		}
		status, now := film.Status(), r.Clock()
		if still := borne.stillFor(film, status, now); status.Frames > 0 && still >= p.Settle/2 && film.Shows(lab.SyncGreen()) {
			if quiet := n.quietFor(now); still >= p.Settle && quiet >= p.Settle/2 {
				borne.begin()
				return nil
			}
		}
		if status.Noise.Pixel > lab.MostNoise {
			return fmt.Errorf("this screen is too noisy to be measured (%s; at most %d of 255): look at the cable, at the grabber's sharpness and gain, "+
				"or ask it for another format; appliance capture qualify shows what it does", status.Noise.Floor(), lab.MostNoise)
		}
		if now > deadline {
			return &brokenError{fmt.Errorf("the device did not show the green synchronisation page within %v%s; a slower device gets more by limit_s", limit, because(status)),
				status.Interruptions > 0}
		}
	}
}

// nursery tells for how long a browser has had no new process.
type nursery struct {
	processes func() map[int]time.Duration // nil if they are unknown
	known     map[int]time.Duration
	since     lab.Time // of the last new one
	looked    lab.Time
	begun     lab.Time
}

const (
	// patientFor is how long a browser may go on bearing processes on the still page.
	patientFor = 5 * time.Second
	// nurseryPoll is how often it is looked at: each look takes a millisecond of a processor.
	nurseryPoll = 100 * time.Millisecond
)

func (n *nursery) quietFor(now lab.Time) time.Duration {
	if n.begun == 0 {
		n.begun = now
	}
	if n.processes == nil || now.Sub(n.begun) >= patientFor {
		return birthLimit
	}
	if now.Sub(n.looked) >= nurseryPoll {
		all := n.processes()
		for pid := range all {
			if _, ok := n.known[pid]; !ok {
				n.since = now
				break
			}
		}
		n.known, n.looked = all, now
	}
	return now.Sub(n.since)
}

// awaitEnd waits for the end of the page load and returns how it was detected.
func (r *Runner) awaitEnd(ctx context.Context, p Plan, s scene, start lab.Event) (lab.End, error) {
	deadline := start.Latest.Add(p.Limit)
	var seen lab.Time // the latest change that was compared with the red page
	film, session := s.film, s.session
	atRest, polled := Rest{MainThreads: r.MainThreads}, polls{atRest: Rest{MainThreads: r.MainThreads}}
	for {
		if err := r.look(ctx, s.life, film, s.borne); err != nil {
			return "", err
		}
		status, traffic := film.Status(), session.Traffic()
		if traffic.Done != nil {
			noteRest(session, r.Clock())
			return lab.EndDone, nil
		}
		if status.LastChange > start.Latest || traffic.Unseen { // no picture changes after what no browser shows
			if status.LastChange != seen {
				seen = status.LastChange
				if film.Shows(lab.SyncRed()) {
					noteRest(session, r.Clock())
					return lab.EndRed, nil
				}
			}
			now := r.Clock()
			silent := now.Sub(traffic.LastActivity)
			still := min(stillFor(film, status), silent)
			polled.look(now, still, p.Still, traffic.Waits)
			if traffic.InFlight > 0 {
				still = 0
			}
			switch {
			case still < p.Still/2:
				atRest.Moved()
			case still < p.Still:
				atRest.Begin(now)
			case atRest.IsBusy(now):
			case silent < patience(p.Still, traffic):
				atRest.Again(now)
			default:
				noteRest(session, cmp.Or(polled.since, now))
				return lab.EndStable, nil
			}
		}
		if r.Clock() > deadline {
			return lab.EndLimit, nil
		}
	}
}

// noteRest tells a session that records when the page came to rest.
func noteRest(session Session, at lab.Time) {
	if n, ok := session.(RestNoter); ok {
		n.AtRest(at)
	}
}

// look waits one poll and returns an error if the device or the recording has ended.
func (r *Runner) look(ctx context.Context, life Life, film Film, borne *breaks) error {
	timer := time.NewTimer(poll)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-life.Done():
		return &brokenError{life.Err(), true}
	case <-film.Done():
		return interrupted("the recording of the screen ended by itself%s", because(film.Status()))
	case <-timer.C:
		// No waiting for the source: the trial is invalid anyway, and the interruption may last.
		if status := film.Status(); status.Interruptions > borne.most {
			return interrupted("the source of the pictures was interrupted%s (appliance reel info says when)", because(status))
		}
		return nil
	}
}

// because is what a recording's source said of its trouble, as the end of a sentence.
func because(s FilmStatus) string {
	if s.Trouble == "" {
		return ""
	}
	return ": " + s.Trouble
}

// count counts the device's requests, without those that the box answers itself
// (synchronisation page, annotations).
func count(served []lab.Served) (requests, misses int) {
	for _, s := range served {
		switch s.Stage {
		case lab.StageBox:
		case lab.StageMiss:
			misses++
			requests++
		default:
			requests++
		}
	}
	return requests, misses
}

// writeLines writes one JSON object a line.
func writeLines[T any](path string, lines []T) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(f)
	for _, line := range lines {
		if err := encoder.Encode(line); err != nil {
			f.Close()
			return fmt.Errorf("writing %s: %w", path, err)
		}
	}
	return f.Close()
}
