// Package bisection carries out a bisect: it has revisions deployed, by a person's command or a function, has pairs of
// trials of two revisions made, and asks analysis/bisect what to do next, until the revision that
// changed a number is found. A list of revisions, a command and a lab flow in; a [Result] flows out.
//
// Everything that is learned is a line of a journal in the bisect's folder, written to the disk before the next
// step begins. A bisect that was killed goes on from it: with the trials of the run that was cut off, as far as
// they ended, and without deploying again what was deployed.
package bisection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"eidetic/analysis/bisect"
	"eidetic/analysis/stats"
	"eidetic/internal/lab"
	"eidetic/internal/plan"
)

// Lab makes recordings and trials: on this machine, or on a box.
type Lab interface {
	// Record records the page of the revision that is deployed, and returns a name by which Compare finds
	// the recording.
	Record(ctx context.Context, revision string) (archive string, err error)
	// Compare makes pairs of trials. begun is called with the run's ID before its first trial.
	Compare(ctx context.Context, c Comparison, begun func(id string) error) (*lab.Run, error)
	// Ended returns a run that was begun before this program was killed, once it has ended, with the trials
	// that it has; nil if there is none.
	Ended(ctx context.Context, id string) (*lab.Run, error)
}

// Comparison is what Compare is asked for.
type Comparison = plan.Comparison

// LabError says that the lab cannot work at present, whatever the revision: it ends the bisect, which may be gone on
// with, and leaves no revision out.
type LabError struct{ Err error }

func (e *LabError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong.
func (e *LabError) Unwrap() error { return e.Err }

// interrupted is the state of a run that was stopped before its end; what it lacks says nothing about its revisions.
const interrupted = "interrupted"

// Config is a bisect.
type Config struct {
	Dir       string // for the journal and what the command printed
	Revisions []Revision
	Deploy    string // run by /bin/sh -c, with the revision as $1 and in REVISION
	Limit     time.Duration
	// Deployer deploys in place of the command; Deploy then is what a journal of the same bisect is known again by. It
	// returns why the revision cannot be tried, or "". An error ends the bisect, which may be gone on with.
	Deployer func(ctx context.Context, r Revision) (reason string, err error)
	Metric   string
	Records  bool   // the page of each revision is recorded after it was deployed
	Plan     string // a digest: a journal of another plan is refused
	Seed     uint64
	Problem  bisect.Problem // its Revisions are filled in
	// Spread is over how many runs, which go on at the same time, the pairs of an experiment are divided; 0 and 1 make
	// one run.
	Spread int
	Lab    Lab // which is used by so many goroutines
	Say    func(format string, args ...any)
	// Learned is told what is known whenever something was learned, as a Result without a kind and text; nil is told
	// nothing.
	Learned func(*Result)
	// Over says, before each experiment, why there is no time for another one, or ""; nil says nothing.
	Over func() string
	// Since returns the time since some instant; tests have a clock of their own.
	Since func() time.Duration
}

// MostSpread bounds Spread.
const MostSpread = 50

// hunt is a bisect under way.
type hunt struct {
	Config
	journal *journal
}

// Run carries the bisect out, or goes on with it.
func Run(ctx context.Context, c Config) (*Result, error) {
	j, err := openJournal(c.Dir, header{Version: 1, Revisions: names(c.Revisions), Deploy: c.Deploy, Metric: c.Metric, Plan: c.Plan,
		Seed: c.Seed, Records: c.Records})
	if err != nil {
		return nil, err
	}
	defer j.close()
	h := &hunt{Config: c, journal: j}
	h.Problem.Revisions = len(c.Revisions)
	if n := len(j.visits); n > 0 {
		h.Say("Going on with the bisect in %s: %d experiments are known", c.Dir, n)
	}
	if err := h.recover(ctx); err != nil {
		return nil, err
	}
	for {
		d, err := bisect.Decide(h.problem(), j.state())
		if err != nil {
			return nil, err
		}
		if d.Found != nil {
			return h.result(d), nil
		}
		if h.Learned != nil {
			h.Learned(h.known(d))
		}
		if h.Over != nil {
			if why := h.Over(); why != "" {
				return h.ended(d, why), nil
			}
		}
		if len(j.visits) > 0 {
			h.Say("%s", h.standing(d))
		}
		if err := h.step(ctx, *d.Next); err != nil {
			return nil, err
		}
	}
}

// problem is what is asked, with the price of deploying as it was so far.
func (h *hunt) problem() bisect.Problem {
	p := h.Problem
	deployed, pairs := mean(h.journal.deploySeconds()), h.journal.secondsPerPair()
	if pairs > 0 {
		p.Deploy = min(deployed/pairs, 100)
	}
	return p
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(max(len(values), 1))
}

// recover takes what the runs have that were cut off when this program was killed.
func (h *hunt) recover(ctx context.Context) error {
	for _, open := range slices.Clone(h.journal.open) {
		run, err := h.Lab.Ended(ctx, open.Run)
		if err != nil {
			return fmt.Errorf("what run %s found before this program was killed: %w", open.Run, err)
		}
		if _, err := h.keep(open, run, 0); err != nil {
			return err
		}
	}
	return nil
}

// step makes an experiment, after deploying what it needs.
func (h *hunt) step(ctx context.Context, n bisect.Next) error {
	for _, at := range []int{n.Control, n.Treatment} {
		ok, err := h.deploy(ctx, at)
		if err != nil || !ok { // without it the next step is another one
			return err
		}
	}
	runs := min(max(h.Spread, 1), n.Pairs)
	doing := "Comparing %s with %s: %d pairs of trials"
	if n.Confirms {
		doing = "Measuring again, to be sure: %s and %s, %d pairs of trials"
	}
	if runs > 1 {
		doing += fmt.Sprintf(" in %d runs", runs)
	}
	h.Say(doing, h.Revisions[n.Control].Name, h.Revisions[n.Treatment].Name, n.Pairs)
	first := h.journal.next
	got, errs := make([]made, runs), make([]error, runs)
	var all sync.WaitGroup
	for i := range runs {
		v := begun{Number: first + i, Control: n.Control, Treatment: n.Treatment, Confirms: n.Confirms}
		v.Pairs = n.Pairs*(i+1)/runs - n.Pairs*i/runs
		all.Go(func() { got[i], errs[i] = h.compare(ctx, v, runs) })
	}
	all.Wait()
	if err := cmp.Or(errs...); err != nil {
		return err
	}
	return h.judge(n, got)
}

// made is what came of a run.
type made struct {
	ended
	missing int // valid trials without the metric
}

// compare has one of the runs of an experiment made, and keeps its trials. Its number, which no other run of the bisect
// has, makes its seed another one.
func (h *hunt) compare(ctx context.Context, v begun, runs int) (made, error) {
	c := Comparison{Control: h.Revisions[v.Control].Name, Treatment: h.Revisions[v.Treatment].Name, Pairs: v.Pairs, Metric: h.Metric,
		Seed: h.Seed + uint64(v.Number), ControlArchive: h.journal.archives[v.Control], TreatmentArchive: h.journal.archives[v.Treatment]}
	start := h.Since()
	run, err := h.Lab.Compare(ctx, c, func(id string) error {
		v.Run = id
		return h.journal.add(line{Begun: &v})
	})
	if err != nil {
		return made{}, err
	}
	return h.keep(v, run, (h.Since()-start)/time.Duration(runs))
}

// keep puts the trials of a run into the journal, and its share of the time that the experiment took.
func (h *hunt) keep(v begun, run *lab.Run, took time.Duration) (made, error) {
	m := made{ended: ended{Of: v.Run, Seconds: took.Seconds()}}
	if run != nil {
		m.State = run.State
		m.Blocks, m.Trials, m.missing = blocksOf(run, h.Metric)
	}
	return m, h.journal.add(line{Ended: &m.ended})
}

// judge makes the revision untestable, which is neither good nor bad, if no run of an experiment has a valid pair. One
// that was cut off may have none.
func (h *hunt) judge(n bisect.Next, got []made) error {
	var reasons []string
	for _, m := range got {
		if m.State == interrupted || slices.ContainsFunc(m.Blocks, hasPair) {
			return nil
		}
		reason := fmt.Sprintf("run %s has no pair of valid trials with %s", m.Of, h.Metric)
		if m.missing > 0 {
			reason += fmt.Sprintf(": %d valid trials do not have it; choose another metric", m.missing)
		}
		reasons = append(reasons, reason)
	}
	reason := strings.Join(reasons, "; ")
	if n.Control == 0 && n.Treatment < len(h.Revisions)-1 {
		return h.skip(n.Treatment, reason)
	}
	return &UntestableError{h.Revisions[n.Control].Name + " and " + h.Revisions[n.Treatment].Name, reason}
}

func hasPair(b stats.Block) bool { return len(b.Control) > 0 && len(b.Treatment) > 0 }

// skip says and notes that a revision cannot be tried.
func (h *hunt) skip(at int, reason string) error {
	h.Say("%s cannot be tried and is left out: %s", h.Revisions[at].Name, reason)
	return h.journal.add(line{Untestable: &untestable{at, reason}})
}

// UntestableError says that good or bad cannot be tried, without which there is nothing to compare.
type UntestableError struct{ Revision, Reason string }

func (e *UntestableError) Error() string { return e.Revision + " cannot be tried: " + e.Reason }

// blocksOf are the metric's values in the blocks of a run, the number of its trials, and of the valid ones
// that lack the metric.
func blocksOf(run *lab.Run, metric string) (blocks []stats.Block, trials, missing int) {
	order := slices.Clone(run.Trials)
	slices.SortStableFunc(order, func(a, b *lab.Trial) int { return a.Number - b.Number })
	at := map[int]int{}
	for _, t := range order {
		if !t.Valid {
			continue
		}
		i := slices.IndexFunc(t.Measurements, func(m lab.Measurement) bool { return m.Name == metric })
		if i < 0 {
			missing++
			continue
		}
		k, ok := at[t.Block]
		if !ok {
			k, blocks = len(blocks), append(blocks, stats.Block{})
			at[t.Block] = k
		}
		into := &blocks[k].Control
		if t.Arm == lab.Treatment {
			into = &blocks[k].Treatment
		}
		*into = append(*into, t.Measurements[i].Value)
	}
	return blocks, len(run.Trials), missing
}

func names(revisions []Revision) (out []string) {
	for _, r := range revisions {
		out = append(out, r.Name)
	}
	return out
}

// standing says what is known so far.
func (h *hunt) standing(d bisect.Decision) string {
	if d.None > 1-0.99 {
		return fmt.Sprintf("%d pairs so far: that good and bad do not differ has a probability of %.2g", d.Pairs, d.None)
	}
	best := 0
	for r, p := range d.Culprits {
		if p > d.Culprits[best] {
			best = r
		}
	}
	return fmt.Sprintf("%d pairs so far: most probable is %s with %.0f %%; a pair scatters by %.0f", d.Pairs, h.Revisions[best].Name,
		100*d.Culprits[best], d.Noise)
}

// errOther is returned for a folder with the journal of another bisect.
var errOther = errors.New("belongs to another bisect: other revisions, plan, command, metric or seed") // constant
