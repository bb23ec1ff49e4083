package plan

import (
	"errors"
	"fmt"
	"image"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"eidetic/analysis/measure"
	"eidetic/internal/lab"
	"eidetic/internal/metric"
	"eidetic/netlab/link"
	"eidetic/netlab/replay"
)

// maxTrials bounds the trials of a run.
const maxTrials = 5_000

// maxLoading bounds the sum of all trials' load times. The per-frame series are kept in
// memory for the report until the run ends: at 60 frames a second, half a gigabyte.
const maxLoading = maxTrials * time.Minute

// Checked is a plan that can be carried out, with everything read that it says. It is made by [Check] alone.
type Checked struct {
	lab.Plan // with everything filled in that has a default
	// Cells are the pages, each for every user, with all that their arms leave out.
	Cells  []Cell
	Timing replay.Timing
	// SharedTimes: what both arms ask for takes the same time in both.
	SharedTimes bool
	Measure     measure.Request
	// Files are those that the plan names, if they were to be read.
	Files
}

// Cell is a page of the plan for one of its users, with its arms.
type Cell struct {
	lab.Cell
	Arms []Arm
}

// Arm is one side of a comparison with nothing left out but how requests are matched, which depends on the recording.
type Arm struct {
	lab.NamedArm
	Link   link.Profile
	Screen image.Point // that the browser fills; the zero point is the usual one
}

// Options say what a plan is checked with.
type Options struct {
	// Traces opens the trace files that links name; nil refuses them, as plans from the network must not name files.
	Traces func(name string) (io.ReadCloser, error)
	// From is where the files are that the plan names; nil leaves them for later.
	From *Folder
	// Scope is whose the plan is.
	Scope Scope
	// Browsers are those that the box's admin has configured, by the names that plans call them.
	Browsers Browsers
	// Apps are those of the configuration.
	Apps Apps
	// Elsewhere says that boxes carry the plan out, which know browsers of other names.
	Elsewhere bool
}

// Check reads a plan. Its error is a *lab.FieldError, and a *ScopeError if the scope may not say the field.
func Check(r Request, o Options) (Checked, error) {
	if problems := r.Problems(); len(problems) > 0 {
		return Checked{}, problems[0]
	}
	if err := r.Allowed(o.Scope); err != nil {
		return Checked{}, err
	}
	c, err := read(r, o)
	if all := parted(err); len(all) > 0 {
		return c, all[0]
	}
	if o.From == nil {
		return c, nil
	}
	c.Files, err = c.readFiles(*o.From)
	return c, err
}

// read reads a plan whose fields are within their bounds. Its error joins those of all fields.
func read(r Request, o Options) (Checked, error) {
	c := Checked{Plan: r.Plan.WithDefaults()}
	if err := checkMany(c.Plan); err != nil { // first, as it bounds what the rest goes through
		return c, err
	}
	c.fill()
	if c.Plan.Timing == "" { // which is no default of the field, since it is not always the same
		c.Plan.Timing = lab.TimingRecorded
		if c.recordsTwo() {
			c.Plan.Timing = lab.TimingShared
		}
	}
	var all []error
	for _, check := range []func() error{
		c.checkTimes, c.checkReplay, c.checkJudging, c.checkCovariates, c.checkTraces, c.checkSteps,
		func() error { return c.checkApps(o) }, c.checkArms(o),
		c.checkJourneys, c.readMeasure, c.checkWork, func() error { return CheckParts(c.Screen, c.Controls, c.Recipe) },
	} {
		all = append(all, check())
	}
	return c, errors.Join(all...)
}

// fill fills in the cells, with the arms of each.
func (c *Checked) fill() {
	c.Cells = nil
	for _, cell := range c.Plan.Cells() {
		one := Cell{Cell: cell}
		for _, a := range cell.Plan.Arms() {
			one.Arms = append(one.Arms, Arm{NamedArm: a})
		}
		c.Cells = append(c.Cells, one)
	}
}

// WithArchives is the plan with the name of each recording replaced. The function gets the field that names it, for its
// errors.
func (c Checked) WithArchives(to func(field, name string) (string, error)) (Checked, error) {
	read := c.Cells
	var err error
	if c.Plan, err = c.MapArchives(to); err != nil {
		return c, err
	}
	c.fill()
	for i, cell := range c.Cells {
		for k := range cell.Arms {
			was := read[i].Arms[k]
			cell.Arms[k].Link, cell.Arms[k].Screen, cell.Arms[k].Browser = was.Link, was.Screen, was.Browser
			cell.Arms[k].App = was.App
		}
	}
	return c, nil
}

// Every lists the arms of all cells.
func (c Checked) Every() (all []Arm) {
	for _, cell := range c.Cells {
		all = append(all, cell.Arms...)
	}
	return all
}

// ofCells is what trials are of, in words.
func (c Checked) ofCells() string {
	if !c.IsMany() {
		return fmt.Sprintf("%d arms", len(c.Cells[0].Arms))
	}
	return fmt.Sprintf("%d arms, %d pages and %d users", len(c.Cells[0].Arms), max(len(c.Pages), 1), max(len(c.Users), 1))
}

// checkTimes returns an error for more trials, or longer ones, than a run can have.
func (c *Checked) checkTimes() error {
	still, limit, tolerance := c.StillTime(), c.LimitTime(), c.ToleranceTime()
	switch {
	case c.Total() > maxTrials:
		return fieldError("trials", "%d for each of %s; at most %d in all, with warm-ups", c.Trials, c.ofCells(), maxTrials)
	case limit > maxLoading/time.Duration(c.Total()):
		return fieldError("limit_s", "%d trials of at most %v each are more than %v in all; ask for fewer trials, or for a lower limit", c.Total(),
			limit, maxLoading)
	case limit < still:
		return fieldError("limit_s", "%v: still_s is %v, and the limit no shorter", limit, still)
	case c.Tolerance != 0 && tolerance == 0:
		return fieldError("tolerance_ms", "%v: leave it out for one frame that is relaxed where the machine cannot keep it", c.Tolerance)
	}
	return nil
}

// checkReplay reads how recordings are replayed.
func (c *Checked) checkReplay() (err error) {
	if c.Live && c.Miss == lab.MissFill {
		return fieldError("miss", "fill is for replays, and a live run replays nothing")
	}
	timing := c.Plan.Timing
	if err := c.checkRecordings(); err != nil {
		return err
	}
	if c.SharedTimes = timing == lab.TimingShared; c.SharedTimes {
		if c.Treatment == nil && len(c.Pages) == 0 {
			return fieldError("timing", "shared is for two arms: give the plan a treatment, or write recorded")
		}
		timing = ""
	}
	if c.Timing, err = replay.ParseTiming(timing); err != nil {
		return fieldError("timing", "%w; or shared, in a plan with a treatment", err)
	}
	return nil
}

const (
	// usualRecordings is how often each server is recorded if its times are what is compared: six of each give a 95 %
	// interval.
	usualRecordings = 6
	// leastRecordings can differ by more than chance does one time in twenty.
	leastRecordings = 4
)

// checkRecordings fills in how often each arm is recorded.
func (c *Checked) checkRecordings() error {
	recorded := c.Plan.Timing == lab.TimingRecorded
	switch {
	case c.Recordings == 0 && recorded && c.recordsTwo() && c.Miss != lab.MissFill && !c.Live:
		c.Recordings = usualRecordings
	case c.Recordings <= 1:
	case !c.recordsTwo():
		return fieldError("recordings", "%d: the run does not record a page for each arm; give the treatment another page, and neither arm an archive",
			c.Recordings)
	case c.Miss == lab.MissFill:
		return fieldError("recordings", "%d: with miss: fill each arm has one recording, which grows", c.Recordings)
	case recorded && c.Recordings < leastRecordings:
		return fieldError("recordings", "%d of each arm cannot differ by more than chance: at least %d, or 1 for a comparison of one occasion",
			c.Recordings, leastRecordings)
	}
	return nil
}

// recordsTwo says whether the run records a page, or an app, for one arm and another for the other.
func (c *Checked) recordsTwo() bool {
	return slices.ContainsFunc(c.Cells, func(one Cell) bool {
		if len(one.Arms) < 2 || one.Arms[0].Archive != "" || one.Arms[1].Archive != "" {
			return false
		}
		a, b := one.Arms[0], one.Arms[1]
		return a.Page != b.Page || a.App != nil && b.App != nil && *a.App != *b.App
	})
}

// pairsPerLook are the fewest pairs from one look to the next: with fewer, looks at the beginning
// can find nothing, and only cost the others.
const pairsPerLook = 5

// leastToFind is the fewest trials of each arm by which a run chooses how many it makes.
const leastToFind = 10

// checkJudging returns an error for a way of judging that is not possible.
func (c *Checked) checkJudging() error {
	var alone []error
	for _, f := range []struct {
		name string
		set  bool
	}{{"looks", c.Looks != 0}, {"primary", c.Primary != ""}, {"find", c.Find != ""}} {
		if f.set && !c.Compares() {
			alone = append(alone, fieldError(f.name, "there is nothing to compare: the plan has no treatment"))
		}
	}
	alone = append(alone, c.checkBudgets(), c.checkMargins(), c.checkTags())
	if err := errors.Join(alone...); err != nil {
		return err
	}
	if _, _, err := lab.ParseFind(c.Find); err != nil {
		return &lab.FieldError{Path: "find", Err: err}
	}
	switch {
	case c.Find == "":
	case c.IsMany():
		return fieldError("find", "a run of many pages or users has many sizes: leave out pages and users, or say trials")
	case c.Recordings > 1 && c.Plan.Timing != lab.TimingShared:
		return fieldError("find", "with timing: recorded the recordings are what varies, and more trials find no smaller difference: say recordings")
	case c.Trials < leastToFind:
		return fieldError("find", "%d trials of each arm at most: by how much loads vary is known after %d", c.Trials, leastToFind)
	}
	if c.Looks*pairsPerLook > c.Trials {
		return fieldError("looks", "%d at %d pairs: at least %d pairs for each, so %d trials", c.Looks, c.Trials, pairsPerLook, c.Looks*pairsPerLook)
	}
	return nil
}

// checkTraces returns an error for traces that cannot be made.
func (c *Checked) checkTraces() error {
	if c.Traces == 0 && !c.TraceAll {
		return nil
	}
	switch {
	case c.Traces != 0 && c.TraceAll:
		return fieldError("traces", "with trace_all every trial is traced; leave traces out")
	case c.Total()+c.Traces*len(c.Every()) > maxTrials:
		return fieldError("traces", "%d for each of %s: with the other trials at most %d in all", c.Traces, c.ofCells(), maxTrials)
	case c.Live:
		return fieldError("traces", "a live run replays nothing, so that its trials have no common cause; leave traces out")
	}
	for _, a := range c.Cells[0].Arms {
		if a.IsStart() {
			return fieldError("traces", "a browser that the trial starts is not traced; use state: cold or warm")
		}
	}
	return nil
}

// Field leads to a field of the arm in the plan.
func (a Arm) Field(name string) string {
	if a.Name == lab.Treatment {
		return "treatment." + name
	}
	return name
}

// checkArms returns what reads the arms. No page has a link, a browser or a state of its own, and no user more than a
// browser and a viewport.
func (c *Checked) checkArms(o Options) func() error {
	return func() error {
		var wrong []error
		for i, cell := range c.Cells {
			for k := range cell.Arms {
				var err error
				a := &c.Cells[i].Arms[k]
				if i > 0 {
					a.Link = c.Cells[0].Arms[k].Link
				} else if a.Link, err = (link.Reader{Open: o.Traces}).Parse(a.NamedArm.Link); err != nil {
					wrong = append(wrong, &lab.FieldError{Path: a.Field("link"), Err: err})
				}
				field := a.Field("browser")
				if a.User != nil && a.User.Browser != nil {
					field = fmt.Sprintf("users[%d].browser", i%len(c.Users))
				}
				a.Screen, err = checkBrowser(field, a.Browser, o)
				if wrong = append(wrong, err); err != nil {
					a.Browser = nil // nothing is known of what it can do
				}
				a.Browser = o.Browsers.resolve(a.Browser, o.Elsewhere)
				if a.App != nil {
					a.App = o.Apps.resolve(a.App)
					a.Browser = a.App.Browser()
					a.Screen, _ = a.App.Size() // checkApps tells the error
				}
				if c.Live && a.Archive != "" {
					wrong = append(wrong, fieldError("live", "such a run replays nothing; leave out the archive"))
				}
			}
		}
		return errors.Join(wrong...)
	}
}

// checkSteps returns an error for steps that cannot be carried out.
func (c *Checked) checkSteps() error {
	return c.ofCell(func(cell Cell) error { return checkInput(cell.Plan.Steps) })
}

// ofCell goes through the cells; an error of one has its place in the plan.
func (c *Checked) ofCell(check func(Cell) error) error {
	var all []error
	for i, cell := range c.Cells {
		for _, err := range parted(check(cell)) {
			var wrong *lab.FieldError
			if len(c.Pages) > 0 && errors.As(err, &wrong) {
				err = &lab.FieldError{Path: c.pageOf(i) + wrong.Path, Err: wrong.Err}
			}
			all = append(all, err)
		}
		if len(all) > mostFaults {
			break
		}
	}
	return errors.Join(all...)
}

// checkJourneys returns an error for pages that cannot be loaded, and steps that their arms cannot carry out.
func (c *Checked) checkJourneys() error { return c.ofCell(c.checkJourney) }

// pageOf leads to the fields of a cell's page: "pages[2].".
func (c *Checked) pageOf(cell int) string {
	if len(c.Pages) == 0 {
		return ""
	}
	return fmt.Sprintf("pages[%d].", cell/max(len(c.Users), 1))
}

func (c *Checked) checkJourney(cell Cell) error {
	steps := cell.Plan.Steps
	var wrong []error
	for _, a := range cell.Arms {
		if err := CheckPage(a.Page); err != nil && (a.App == nil || !lab.IsAppPage(a.Page)) {
			wrong = append(wrong, &lab.FieldError{Path: a.Field("page"), Err: err})
		}
		if err := checkNeeds(steps, "steps", a.Browser); err != nil && !isForeign(a.Browser) {
			wrong = append(wrong, err)
		}
		if err := checkState(steps, a.Arm); err != nil {
			wrong = append(wrong, &lab.FieldError{Path: a.Field("state"), Err: err})
		}
	}
	return errors.Join(wrong...)
}

// checkState returns an error for a state that an arm's trials cannot begin in.
func checkState(steps []lab.Step, a lab.Arm) error {
	launches := len(steps) > 0 && steps[0].Launch != ""
	switch {
	case a.App != nil: // checkApps
	case a.IsStart() && !launches:
		return fmt.Errorf("%s: nothing would start the browser: begin the steps with launch: %s", a.State, a.Page)
	case launches && !a.IsStart():
		return fmt.Errorf("the first step is launch, which starts the browser: write state: %s or %s, or begin with open: %s",
			lab.StateAppCold, lab.StateAppWarm, a.Page)
	}
	return nil
}

// readMeasure reads what is measured besides.
func (c *Checked) readMeasure() (err error) {
	asked := c.Plan.Measure
	if c.Measure, err = measure.NewRequest(asked); err != nil || asked == nil {
		return err
	}
	var paths []string
	for _, steps := range c.journeys() {
		paths = append(paths, lab.StepPaths(steps)...)
	}
	for i, path := range asked.Steps {
		if !slices.Contains(paths, path) {
			return fieldError(fmt.Sprintf("measure.steps[%d]", i), "the plan has no step %q; it has: %s", path, strings.Join(paths, ", "))
		}
	}
	return nil
}

// checkWork returns an error for what a plan asks for that only traced trials have.
func (c *Checked) checkWork() error {
	type named struct{ field, name string }
	list := []named{{"primary", c.Primary}}
	for _, name := range slices.Sorted(maps.Keys(c.Budgets)) {
		list = append(list, named{"budgets." + name, name})
	}
	if m := c.Plan.Measure; m != nil {
		for i, name := range m.Metrics {
			list = append(list, named{fmt.Sprintf("measure.metrics[%d]", i), name})
		}
		for i, name := range m.Guards {
			list = append(list, named{fmt.Sprintf("measure.guards[%d]", i), name})
		}
	}
	for _, one := range list {
		asks := one.name == metric.Work || slices.Contains(metric.Parse(one.name).ID.Entry().Groups, metric.Work)
		if asks && !c.TraceAll {
			return fieldError(one.field, "%s is told by the browser's own trace: say trace_all: true, so that every trial has one", one.name)
		}
	}
	return nil
}

// journeys lists the steps of each of the plan's pages.
func (c *Checked) journeys() (all [][]lab.Step) {
	for i := 0; i < len(c.Cells); i += max(len(c.Users), 1) {
		all = append(all, c.Cells[i].Plan.Steps)
	}
	return all
}

func hasControl(s string) bool { return strings.ContainsFunc(s, unicode.IsControl) }
