package execute

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"eidetic/analysis/measure"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/netlab/link"
	"eidetic/netlab/replay"
	"eidetic/netlab/replay/match"
)

// MinStill is the shortest stillness after which a page counts as loaded.
const MinStill = 200 * time.Millisecond

// MaxTolerance is the largest blur that a plan may allow.
const MaxTolerance = time.Minute

// maxWarmups bounds the warm-ups of each arm.
const maxWarmups = 100

// maxLoading bounds the sum of all trials' load times. The per-frame series are kept in
// memory for the report until the run ends: at 60 frames a second, half a gigabyte.
const maxLoading = store.MaxTrials * time.Minute

// TraceOpener opens the trace files that links name; nil refuses them, as plans from the
// network must not name files.
type TraceOpener func(name string) (io.ReadCloser, error)

// Check returns an error for a plan that cannot be carried out.
func Check(p lab.Plan, traces TraceOpener) error {
	if err := p.CheckMany(); err != nil { // first, as it bounds what the rest goes through
		return err
	}
	if p.Warmups < 0 || p.Warmups > maxWarmups {
		return fmt.Errorf("warmups: %d: from 1 to %d, or none", p.Warmups, maxWarmups)
	}
	if p.Trials < 1 || p.Trials > store.MaxTrials || p.Total() > store.MaxTrials {
		return fmt.Errorf("trials: %d for each of %d arms%s; at least 1, and at most %d in all, with warm-ups", p.Trials, len(p.Cells()[0].Plan.Arms()),
			ofCells(p), store.MaxTrials)
	}
	still, limit, tolerance := p.StillTime(), p.LimitTime(), p.ToleranceTime()
	if limit > maxLoading/time.Duration(p.Total()) {
		return fmt.Errorf("limit_s: %d trials of at most %v each are more than %v in all; ask for fewer trials, or for a lower limit",
			p.Total(), limit, maxLoading)
	}
	if still < MinStill || limit < still {
		return fmt.Errorf("still_s %v and limit_s %v: still is at least %v, and the limit no shorter", still, limit, MinStill)
	}
	if tolerance < 0 || tolerance > MaxTolerance || p.Tolerance != 0 && tolerance == 0 {
		return fmt.Errorf("tolerance_ms: %v: above 0 and at most %v, or 0 for one frame that is relaxed where the machine cannot keep it",
			tolerance, MaxTolerance)
	}
	if _, err := replay.ParseTiming(p.Timing); err != nil {
		return fmt.Errorf("timing: %w", err)
	}
	switch p.Miss {
	case "", lab.Miss404:
	case lab.MissFill:
		if p.Live {
			return errors.New("miss: fill is for replays, and a live run replays nothing")
		}
	default:
		return fmt.Errorf("miss: %q is neither %s nor %s", p.Miss, lab.Miss404, lab.MissFill)
	}
	if err := checkJudging(p); err != nil {
		return err
	}
	if err := checkTraces(p); err != nil {
		return err
	}
	if err := CheckParts(p.Screen, p.Controls, p.Recipe); err != nil {
		return err
	}
	if err := checkCells(p, traces); err != nil {
		return err
	}
	return checkMeasure(p)
}

// checkCell returns an error for a plan of one page that cannot be carried out.
func checkCell(p lab.Plan, traces TraceOpener) error {
	if err := CheckSteps(p.Steps); err != nil {
		return err
	}
	for _, a := range p.Arms() {
		if _, err := match.ParsePolicy(a.Match); err != nil {
			return fmt.Errorf("match of the %s: %w", a.Name, err)
		}
		if err := CheckPage(a.Page); err != nil {
			return fmt.Errorf("page of the %s: %w", a.Name, err)
		}
		if err := a.Browser.Check(); err != nil {
			return fmt.Errorf("browser of the %s: %w", a.Name, err)
		}
		if err := checkNeeds(p.Steps, "steps", a.Browser); err != nil {
			return err
		}
		if err := checkState(p, a); err != nil {
			return fmt.Errorf("state of the %s: %w", a.Name, err)
		}
		if p.Live && a.Archive != "" {
			return errors.New("live: such a run replays nothing; leave out the archive")
		}
	}
	_, err := links(p, traces)
	return err
}

// pairsPerLook are the fewest pairs from one look to the next: with fewer, looks at the beginning
// can find nothing, and only cost the others.
const pairsPerLook = 5

// checkJudging returns an error for a way of judging that is not possible.
func checkJudging(p lab.Plan) error {
	for _, f := range []struct {
		name string
		set  bool
	}{{"looks", p.Looks != 0}, {"margin_percent", p.Margin != 0}, {"primary", p.Primary != ""}} {
		if f.set && !p.Compares() {
			return fmt.Errorf("%s: there is nothing to compare: the plan has no treatment", f.name)
		}
	}
	switch {
	case p.Looks != 0 && (p.Looks < 2 || p.Looks > 10):
		return fmt.Errorf("looks: %d: from 2 to 10, or none", p.Looks)
	case p.Looks*pairsPerLook > p.Trials:
		return fmt.Errorf("looks: %d at %d pairs: at least %d pairs for each, so %d trials", p.Looks, p.Trials, pairsPerLook, p.Looks*pairsPerLook)
	case !(p.Margin >= 0 && p.Margin <= 100):
		return fmt.Errorf("margin_percent: %v: from 0 to 100", p.Margin)
	case len(p.Primary) > 300:
		return errors.New("primary: a name of at most 300 characters")
	}
	return nil
}

// checkTraces returns an error for traces that cannot be made.
func checkTraces(p lab.Plan) error {
	if p.Traces == 0 && !p.TraceAll {
		return nil
	}
	cells := p.Cells()
	arms := len(cells[0].Plan.Arms()) * len(cells)
	switch {
	case p.Traces != 0 && p.TraceAll:
		return errors.New("traces and trace_all: with trace_all every trial is traced; leave traces out")
	case p.Traces < 0 || p.Traces > store.MaxTrials || p.Total()+p.Traces*arms > store.MaxTrials:
		return fmt.Errorf("traces: %d for each of %d arms%s: at least 1, and with the other trials at most %d in all", p.Traces,
			len(cells[0].Plan.Arms()), ofCells(p), store.MaxTrials)
	case p.Live:
		return errors.New("traces: a live run replays nothing, so that its trials have no common cause; leave traces out")
	}
	for _, a := range cells[0].Plan.Arms() {
		if a.IsStart() {
			return fmt.Errorf("traces: state of the %s: a browser that the trial starts is not traced; use state: cold or warm", a.Name)
		}
	}
	return nil
}

// checkState returns an error for a state that an arm's trials cannot begin in.
func checkState(p lab.Plan, a lab.NamedArm) error {
	launches := len(p.Steps) > 0 && p.Steps[0].Launch != ""
	switch {
	case a.State != "" && !slices.Contains(lab.States(), a.State):
		return fmt.Errorf("%q is none of %s", a.State, strings.Join(lab.States(), ", "))
	case a.IsStart() && !launches:
		return fmt.Errorf("%s: nothing would start the browser: begin the steps with launch: %s", a.State, a.Page)
	case launches && !a.IsStart():
		return fmt.Errorf("the first step is launch, which starts the browser: write state: %s or %s, or begin with open: %s",
			lab.StateAppCold, lab.StateAppWarm, a.Page)
	}
	return nil
}

// checkMeasure returns an error, a *lab.StepError, for what cannot be measured.
func checkMeasure(p lab.Plan) error {
	if _, err := measure.NewRequest(p.Measure); err != nil || p.Measure == nil {
		return err
	}
	var paths []string
	for _, steps := range journeys(p) {
		paths = append(paths, lab.StepPaths(steps)...)
	}
	for i, path := range p.Measure.Steps {
		if !slices.Contains(paths, path) {
			return &lab.StepError{Path: fmt.Sprintf("measure.steps[%d]", i), Err: fmt.Errorf("the plan has no step %q; it has: %s", path,
				strings.Join(paths, ", "))}
		}
	}
	return nil
}

// CheckPage returns an error for a page whose URL cannot be loaded.
func CheckPage(page string) error {
	u, err := url.Parse(page)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return fmt.Errorf("%q: it must be an absolute http or https URL", page)
	}
	return nil
}

// links parses the link profiles of a plan's arms, by name.
func links(p lab.Plan, traces TraceOpener) (map[string]link.Profile, error) {
	all := map[string]link.Profile{}
	for _, a := range p.Cells()[0].Plan.Arms() { // no page or user has one of its own
		profile, err := link.Reader{Open: traces}.Parse(a.Link)
		if err != nil {
			return nil, fmt.Errorf("link of the %s: %w", a.Name, err)
		}
		all[a.Name] = profile
	}
	return all, nil
}

// SyncURL is the URL of the box's green page that leads to a page under test.
func SyncURL(page string) string { return "http://box.test/sync?next=" + url.QueryEscape(page) }
