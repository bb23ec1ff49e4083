package execute

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"eidetic/internal/lab"
	"eidetic/internal/plan"
	"eidetic/internal/run/device"
	"eidetic/internal/run/experiment"
	"eidetic/netlab"
	"eidetic/netlab/archive"
	"eidetic/netlab/link"
	"eidetic/netlab/replay"
	"eidetic/netlab/replay/match"
)

// ArchiveFile is the name of the control's recording in a run's folder.
const ArchiveFile = "archive.wacz"

// treatmentFile is the name of the treatment's recording, if it has one of its own.
const treatmentFile = "archive-treatment.wacz"

// recordings makes the missing recordings, opens all of them, and returns the arms ready for
// replay. No origin is needed afterwards.
func (x *Execution) recordings(ctx context.Context, runner *experiment.Runner) ([]experiment.Arm, error) {
	all, missing := armsOf(x.Plan)
	for _, t := range inTurns(missing, x.Plan.Seed) {
		if err := x.provide(ctx, runner, t); err != nil {
			return nil, of(t.of, err)
		}
	}
	if x.Plan.Miss == lab.MissFill {
		if err := x.beginFill(); err != nil {
			return nil, err
		}
	} else if x.Rig.Sealed != nil {
		x.Rig.Sealed()
	}
	if err := x.openAll(ctx, all); err != nil {
		return nil, err
	}
	x.run.Servers, x.run.Assets = servers(all), assetsOf(all)
	if x.Plan.SharedTimes {
		x.share(all)
	}
	var arms []experiment.Arm
	for _, one := range all {
		a := one.arm
		var networks []experiment.Network
		for _, recorded := range one.takes() {
			networks = append(networks, &replaying{
				network: x.Rig.Network, page: a.Page, archive: recorded, timing: x.Plan.Timing, match: match.Policy(a.Match), view: x.fill.view,
				keeps: x.keepsLoads(a), inject: injected(x.Plan.Plan, x.Plan.Scripts[a.Inject]), local: !x.Rig.Parts,
				others: x.Rig.Parts && a.App == nil,
			})
		}
		made := x.arm(ctx, one.of, a, networks[0])
		if made.Recordings, made.Lot = networks, x.Plan.Seed^lotOfRecordings; !x.Plan.SharedTimes && a.Name != lab.Control {
			made.Lot++ // those that share their times make pairs
		}
		arms = append(arms, made)
		x.noteLocale(one.recorded)
		x.noteLate(one)
	}
	if !x.Plan.IsMany() {
		x.run.Plan = withMatch(x.run.Plan, all)
	}
	x.sayReplaying()
	return arms, nil
}

// withMatch is the plan of a run of one page with how its recordings are matched. All else is as the plan says it: a
// browser of the configuration by its name.
func withMatch(p lab.Plan, arms []*cellArm) lab.Plan {
	said := p.Arms()
	for i, one := range arms {
		said[i].Match = one.arm.Match
	}
	return p.WithArms(said)
}

// of says whose an error is, in a run of many.
func of(c plan.Cell, err error) error {
	if c.Name == "" || err == nil {
		return err
	}
	return fmt.Errorf("%s: %w", c.Name, err)
}

// openAll opens the recordings of arms, each once, and fills in how far requests may differ from them.
func (x *Execution) openAll(ctx context.Context, all []*cellArm) (err error) {
	opened := map[string]*archive.Archive{}
	for _, one := range all {
		if one.recorded = opened[one.file]; one.recorded == nil {
			if one.recorded, err = x.open(ctx, one.file, one.arm.Archive == ""); err != nil {
				return of(one.of, err)
			}
			opened[one.file] = one.recorded
		}
		for _, t := range one.more {
			if t.recorded = opened[t.file]; t.recorded == nil {
				if t.recorded, err = x.open(ctx, t.file, true); err != nil {
					return of(one.of, err)
				}
				opened[t.file] = t.recorded
			}
		}
		if one.arm.Name == lab.Control && one.cell < len(x.run.Cells) {
			info := one.recorded.Info()
			info.File = one.file
			x.run.Cells[one.cell].Archive = &info
		}
		if one.arm.Match != "" {
			continue
		}
		one.arm.Match = string(replay.PolicyOf(one.recorded))
		if one.arm.Match == lab.LooseMatch {
			x.note("The recording was imported: its page drew other numbers by lot than the page of a replay does, so a request that differs gets " +
				"the most similar recorded answer (match: loose); with match: normal it is a miss.")
		}
	}
	return nil
}

// sayReplaying tells a person what the trials replay.
func (x *Execution) sayReplaying() {
	i := x.run.Archive
	if x.Plan.IsMany() {
		i = lab.ArchiveInfo{}
		for _, c := range x.run.Cells {
			i.Exchanges, i.BodyBytes = i.Exchanges+c.Archive.Exchanges, i.BodyBytes+c.Archive.BodyBytes
			for _, host := range c.Archive.Hosts {
				if !slices.Contains(i.Hosts, host) {
					i.Hosts = append(i.Hosts, host)
				}
			}
		}
	}
	origins := "no origin can be reached"
	if x.fill.view != nil {
		origins = "what is missing is fetched from its origin, once"
	}
	x.News.say("Replaying %d exchanges, %.1f MB, of %d hosts; %s", i.Exchanges, float64(i.BodyBytes)/1e6, len(i.Hosts), origins)
}

// setLocale makes the device that of a recording, and without one its own again.
func (x *Execution) setLocale(l lab.Locale) {
	if x.Rig.Locale != nil {
		x.Rig.Locale(l)
	}
}

// noteLocale tells what of a recording's locale this device does not take over.
func (x *Execution) noteLocale(a *archive.Archive) {
	switch l := a.Locale(); {
	case l.Zone == "":
	case x.Rig.Locale == nil:
		x.note(fmt.Sprintf("The recording was made %s from UTC; this device keeps its own time zone, which local times on the page show.", l.Zone))
	case !device.KnowsZone(l.Zone):
		x.note(fmt.Sprintf("The recording was made %s from UTC, for which there is no zone: local times on the page are in UTC.", l.Zone))
	}
}

// noteLate tells what no trial asks for, as a page's load ends when it has been still for long enough.
func (x *Execution) noteLate(one *cellArm) {
	if len(one.of.Plan.Steps) > 0 || one.arm.App != nil {
		return
	}
	n, pause := cameLate(one.recorded, one.arm.Page)
	if still := one.of.Plan.StillTime(); n > 0 && pause >= still {
		files := lab.Plural(n, "one more file", fmt.Sprintf("%d more files", n))
		x.note(fmt.Sprintf("The recorded page asked for %s after it had come to rest, %.1f s after the request before. Trials end before that, as "+
			"still_s is %v; if it belongs to the load, record with a larger still_s.", files, pause.Seconds(), still.Seconds()))
	}
}

// note adds a warning to the run, unless it has it, and tells a person.
func (x *Execution) note(text string) {
	if !slices.Contains(x.run.Warnings, text) {
		x.run.Warnings = append(x.run.Warnings, text)
		x.News.say("Note: %s", text)
	}
}

// SyncURL is the address of the green page that an arm's loads begin on.
func SyncURL(a lab.Arm) string {
	if lab.IsAppPage(a.Page) { // the green page leads nowhere: the app comes in front of it
		return boxURL + "/sync"
	}
	if a.Process == "new" {
		return netlab.ForeignSyncURL(a.Page)
	}
	return netlab.SyncURL(a.Page)
}

// arm converts an arm for package experiment.
func (x *Execution) arm(ctx context.Context, c plan.Cell, a plan.Arm, network experiment.Network) experiment.Arm {
	return experiment.Arm{
		Name: a.Name, Cell: c.Name, Steps: maskCodes(c.Plan), Page: a.Page, Sync: SyncURL(a.Arm), Network: network,
		Ready: func() error {
			if r, ok := network.(*replaying); ok {
				x.setLocale(r.archive.Locale())
			}
			if err := x.warmUp(ctx, c.Name, a, network); err != nil {
				return err
			}
			if err := x.prepare(ctx, a); err != nil {
				return err
			}
			return x.Rig.Network.SetLink(a.Link)
		},
	}
}

// live returns the arms of a live run, which loads pages from their origins.
func (x *Execution) live(ctx context.Context) (arms []experiment.Arm) {
	x.run.Warnings = append(x.run.Warnings, "These loads are live: each came from the origins, nothing was replayed or seeded.")
	for _, a := range x.Plan.Cells[0].Arms {
		arms = append(arms, x.arm(ctx, x.Plan.Cells[0], a, &recording{
			network: x.Rig.Network, path: filepath.Join(os.TempDir(), x.ID+".live.wacz"), page: a.Page, wall: x.begun, by: x.Software, plain: true,
		}))
	}
	return arms
}

// lotOfRecordings keeps the order of recordings from being that of the trials.
const lotOfRecordings = 0x7265636f7264 // "record"

// turn is one recording that is to be made.
type turn struct {
	*cellArm
	file      string
	nth, many int // the nth, from 1, of so many
}

// inTurns lists the recordings that are missing: several of each arm of a cell in an order that is drawn by lot, as the
// trials' is, so that a server that is slow for a while is slow for both.
func inTurns(missing []*cellArm, seed uint64) (all []turn) {
	for from := 0; from < len(missing); {
		to := from + 1
		for to < len(missing) && missing[to].cell == missing[from].cell {
			to++
		}
		var cell []turn
		for _, one := range missing[from:to] {
			files := one.files()
			for i, file := range files {
				cell = append(cell, turn{one, file, i + 1, len(files)})
			}
		}
		if len(cell) > to-from { // one recording each is made in the order of the plan
			rand.New(rand.NewPCG(seed^lotOfRecordings, uint64(from))).Shuffle(len(cell), func(i, k int) { cell[i], cell[k] = cell[k], cell[i] })
		}
		all, from = append(all, cell...), to
	}
	return all
}

// recordingFolder begins the names of the folders of the trials that make recordings.
const recordingFolder = "recording"

// provide copies the arm's archive into the run's folder, or records its page.
func (x *Execution) provide(ctx context.Context, runner *experiment.Runner, one turn) error {
	a := one.arm
	path := filepath.Join(x.folder.Path(), one.file)
	if x.resumed { // further trials replay what the first ones did
		return nil
	}
	if a.Archive != "" {
		return copyFile(a.Archive, path)
	}
	dir := filepath.Join(x.folder.Path(), recordingFolder)
	if one.of.Name != "" {
		dir += fmt.Sprintf("-%02d", one.cell+1)
	}
	if a.Name != lab.Control {
		dir += "-" + a.Name
	}
	told := ""
	if one.many > 1 {
		dir += fmt.Sprintf("-take-%d", one.nth)
		told = fmt.Sprintf(", recording %d of %d", one.nth, one.many)
	}
	if a.User != nil {
		told = fmt.Sprintf(", for %s", a.User.Name) + told
	}
	for try := 1; ; try++ {
		if lab.IsAppPage(a.Page) {
			x.News.say("Recording what %s asks of the network", a.App)
		} else {
			x.News.say("Recording %s from its origins%s", a.Page, told)
		}
		err := x.record(ctx, runner, one, dir, path)
		if err != nil {
			err = fmt.Errorf("recording: %w", err)
		}
		var spoilt *experiment.SpoiltError
		switch {
		case err == nil || ctx.Err() != nil || !errors.As(err, &spoilt):
			return err
		case try == experiment.Takes:
			return fmt.Errorf("%w; it was spoilt %d times in a row: look after the device and its screen, and run the plan again", err, try)
		}
		x.note(fmt.Sprintf("The recording of %s%s was spoilt and is made again (%d of at most %d): %v",
			cmp.Or(one.of.Name, "the "+a.Name), told, try+1, experiment.Takes, spoilt))
		err = errors.Join(removeIfThere(path), removeIfThere(path+archive.WorkingSuffix), os.Rename(dir, fmt.Sprintf("%s-spoilt-%d", dir, try)))
		if err != nil {
			return err
		}
	}
}

// record records an arm's page into path, and its trial into dir.
func (x *Execution) record(ctx context.Context, runner *experiment.Runner, one turn, dir, path string) error {
	a := one.arm
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	// The network of a port outlives its runs, and keeps the link of the last one.
	if err := x.Rig.Network.SetLink(link.Profile{Name: "native"}); err != nil {
		return err
	}
	x.setLocale(lab.Locale{})
	cold := a
	cold.State = lab.StateCold // a warm browser would not ask for what it has
	if a.App != nil {
		cold.State = lab.StateAppCold
	}
	if err := x.prepare(ctx, cold); err != nil {
		return err
	}
	filming := *runner
	filming.Analyst = ofFailures{x.analyst}
	network := &recording{
		network: x.Rig.Network, path: path, page: a.Page, seed: x.Plan.Seed, wall: x.run.Wall, by: x.Software, script: x.Plan.Scripts[a.Inject],
		dialog: x.Plan.OnDialog, traced: x.Plan.Plan.Measure.Traces(),
	}
	filming.Network = network
	p := x.plan()
	p.Steps = maskCodes(one.of.Plan)
	p.Arm, p.Page, p.Sync, p.Trials = a.Name, a.Page, SyncURL(a.Arm), 1
	trial, err := filming.Record(ctx, p, dir)
	if err != nil {
		return err
	}
	others, err := network.problems.Take(a.Page)
	if err != nil {
		return err
	}
	x.run.Warnings = append(x.run.Warnings, others...)
	if !lab.IsAppPage(a.Page) {
		if err := x.checkDocument(path, a.Page, one.of.Plan.Steps); err != nil {
			return err
		}
	}
	if !loaded(trial) {
		what, why := "the page did not load", ""
		if len(one.of.Plan.Steps) > 0 {
			what = "the journey did not come to its end"
		}
		if len(trial.Invalid) > 0 { // the others are about the film, which nobody looks at
			why = trial.Invalid[0]
		}
		return errors.New(bracketed(what, why))
	}
	return nil
}

// checkDocument returns an error if what was recorded is not the page.
func (x *Execution) checkDocument(path, page string, steps []lab.Step) error {
	a, err := archive.Open(path)
	if err != nil {
		return fmt.Errorf("reading it: %w", err)
	}
	note, problem := Document(a, page)
	if note != "" && !types(steps) { // a plan that types may well type the password
		x.run.Warnings = append(x.run.Warnings, note)
		x.News.say("Note: %s", note)
	}
	return problem
}

// types says whether a step types a text.
func types(steps []lab.Step) bool {
	return slices.ContainsFunc(steps, func(s lab.Step) bool { return s.Type != "" || types(s.Steps) })
}

// loaded says whether a recorded page came to an end of its own: it was still, called
// lab.done(), showed the red page, or came to the ends of all steps, but did not reach the time
// limit.
func loaded(t *lab.Trial) bool {
	return t.Ended == lab.EndStable || t.Ended == lab.EndDone || t.Ended == lab.EndRed || t.Ended == lab.EndSteps
}

// ofFailures makes measurements and evidence only of recordings that failed: nobody looks at
// the others, whose reel is kept.
type ofFailures struct{ *analyst }

func (f ofFailures) Analyse(ctx context.Context, dir string, t *lab.Trial, start lab.Event) (func(context.Context) error, error) {
	if loaded(t) {
		return func(context.Context) error { return nil }, nil
	}
	return f.analyst.Analyse(ctx, dir, t, start)
}

// open reads an archive into RAM and describes it, with its flaws, in the run. With
// requireGood, for a recording just made, grave flaws are an error; a person's own archive
// is replayed as it is.
//
// A hostile page fills what a run records, so it is read first by a process with a memory limit.
func (x *Execution) open(ctx context.Context, name string, requireGood bool) (*archive.Archive, error) {
	path := filepath.Join(x.folder.Path(), name)
	if len(x.Check.Command) > 0 {
		report, err := x.Check.Check(ctx, path)
		if err == nil && report.Refused != "" {
			err = errors.New(report.Refused)
		}
		if err != nil {
			return nil, fmt.Errorf("checking the recording: %w", err)
		}
	}
	a, err := archive.OpenWithin(path, archive.Limits{Memory: x.Check.Memory})
	if err != nil {
		return nil, fmt.Errorf("reading the recording: %w", err)
	}
	if name == ArchiveFile {
		x.run.Archive = a.Info()
		x.run.Archive.File = name
	}
	x.run.Warnings = append(x.run.Warnings, a.Warnings()...)
	problems := archive.Assess(a).Problems
	if x.Plan.App != nil && len(a.Exchanges()) == 0 { // it asked nobody
		problems = nil
	}
	for _, p := range problems {
		if p.Grave && requireGood {
			return nil, fmt.Errorf("the recording is unfit for a measurement: %s; try again", bracketed(p.What, p.URL))
		}
		if !p.IsBackground() {
			x.run.Warnings = append(x.run.Warnings, "The recording has a flaw: "+bracketed(p.What, p.URL))
		}
	}
	return a, nil
}

// bracketed adds a detail in brackets, if there is one.
func bracketed(text, detail string) string {
	if detail == "" {
		return text
	}
	return text + " (" + detail + ")"
}

// copyFile copies an archive, so that the run's folder needs no other files.
func copyFile(from, to string) error {
	content, err := os.Open(from)
	if err != nil {
		return err
	}
	defer content.Close()
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("copying the archive into the run's folder: %w", err)
	}
	return nil
}
