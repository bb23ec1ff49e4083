package experiment

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"eidetic/internal/lab"
)

// errNothingValid ends a run in which no trial has been valid.
var errNothingValid = errors.New("no trial was valid")

// Arm is one side of a comparison.
type Arm struct {
	Name       string // lab.Control or lab.Treatment
	Page, Sync string // as in Plan
	Network    Network
	// Ready is called before each of its trials, to set the link; nil does nothing.
	Ready func() error
}

// Run carries out p.Trials trials of each arm into folder, adding each to run,
// and in place of invalid ones some more. The arms take turns, in an order that
// is drawn by lot within blocks of a few trials, so that what drifts hits both
// alike. save is called after each trial, so that what was whole stays whole.
//
// Where the plan leaves the tolerance open it may be relaxed on the way (see
// docket), and every trial is judged anew whenever it changes; run.Tolerance
// says what they were judged by in the end.
//
// Trials that run holds already are the first ones of the same plan, which was
// broken off after them: Run goes on behind them.
func (r *Runner) Run(ctx context.Context, p Plan, arms []Arm, run *lab.Run, folder Folder, save func() error) error {
	plan := Schedule(p.Seed, p.Trials, len(arms))
	o := &outing{
		Runner: r, plan: p, arms: arms, run: run, folder: folder, save: save, docket: newDocket(p), done: run.Trials,
		total: len(plan), spare: (len(plan) + 1) / 2, blocks: plan[len(plan)-1].Block,
	}
	run.Trials = nil
	for len(plan) > 0 {
		for _, s := range plan {
			if err := o.fill(ctx, s); err != nil {
				return err
			}
		}
		plan = o.missing()
	}
	for i, arm := range arms {
		if came := o.came(i); came.valid == 0 {
			return fmt.Errorf("%w of the %s: of %d, the first because %s", errNothingValid, arm.Name, came.invalid, came.reason)
		}
	}
	return nil
}

// outing is a run while it goes on.
type outing struct {
	*Runner
	plan   Plan
	arms   []Arm
	run    *lab.Run
	folder Folder
	save   func() error

	done   []*lab.Trial // known from before, and not taken up yet
	docket *docket
	slots  []Slot // those that were begun
	total  int    // trials, as far as is known
	spare  int    // that may still be repeated
	blocks int
}

// fill carries out trials until one is valid for a place in the order.
func (o *outing) fill(ctx context.Context, s Slot) error {
	place := len(o.slots)
	o.slots = append(o.slots, s)
	for take := 1; ; take++ {
		n := len(o.run.Trials) + 1
		t, known, err := o.next(ctx, s, n)
		if err != nil {
			return fmt.Errorf("trial %d: %w", n, err)
		}
		o.run.Trials = append(o.run.Trials, t)
		o.docket.add(t, place)
		o.judge()
		came := o.came(s.Arm)
		again := !o.docket.filled(place) && o.spare > 0 && take < takes && came.hopeful()
		if again {
			o.spare--
			o.total++
		}
		if !known {
			if err := o.save(); err != nil {
				return fmt.Errorf("trial %d: %w", n, err)
			}
			o.progress(Step{Trial: n, Of: o.total, Done: t})
		}
		if !again {
			return nil
		}
	}
}

// next returns the next trial for a place in the order: one that is known from
// before the run was broken off, or a new one.
func (o *outing) next(ctx context.Context, s Slot, n int) (t *lab.Trial, known bool, err error) {
	if len(o.done) > 0 {
		t, o.done = o.done[0], o.done[1:]
		return t, true, nil
	}
	dir, err := o.folder.TrialDir(n)
	if err != nil {
		return nil, false, err
	}
	t, err = o.one(ctx, o.plan, o.arms[s.Arm], n, o.total, dir)
	if err != nil {
		return nil, false, err
	}
	t.Block = s.Block
	return t, false, nil
}

// judge judges every trial so far, and tells when the tolerance is another one.
func (o *outing) judge() {
	relaxed := o.run.Tolerance.Relaxed()
	earlier := o.docket.attempts[:len(o.docket.attempts)-1] // the newest is told of by itself
	counted := map[int]bool{}
	for _, a := range earlier {
		counted[a.Number] = a.Valid
	}
	t := o.docket.judge()
	o.run.Tolerance = t
	var changed []string
	for _, a := range earlier {
		if a.Valid != counted[a.Number] {
			changed = append(changed, fmt.Sprintf("trial %d %s", a.Number,
				map[bool]string{true: "counts again", false: "does not count any more"}[a.Valid]))
		}
	}
	if relaxed == t.Relaxed() && len(changed) == 0 {
		return
	}
	note := fmt.Sprintf("The tolerance is %s now, since this machine's usual blur is %s", lab.Millis(t.Used), lab.Millis(t.Median))
	if len(changed) > 0 {
		note += ": " + strings.Join(changed, ", ")
	}
	o.progress(Step{Trial: len(o.run.Trials), Of: o.total, Note: note})
}

// missing is a further block, with as many trials of each arm as the one that
// lacks most needs: what was judged valid at first and is not any more, or was not
// valid however often it was repeated. None is left to make up for what no
// repetition mends.
func (o *outing) missing() (plan []Slot) {
	most := 0
	for i := range o.arms {
		came := o.came(i)
		if !came.hopeful() || came.valid == 0 {
			return nil
		}
		most = max(most, o.plan.Trials-came.valid)
	}
	if most = min(most, o.spare/len(o.arms)); most <= 0 {
		return nil
	}
	o.blocks++
	plan = Schedule(o.plan.Seed+uint64(o.blocks), most, len(o.arms))
	for i := range plan {
		plan[i].Block = o.blocks
	}
	o.spare -= len(plan)
	o.total += len(plan)
	return plan
}

// takes is how often one trial of the plan is tried at most. What is repeated
// is repeated at once and for the same arm, blind to what was measured: that is
// an order which could have been drawn as well.
const takes = 3

// tally is what came of an arm's trials.
type tally struct {
	valid, invalid int
	reason         string // of the first that was invalid
}

func (o *outing) came(arm int) (a tally) {
	for _, t := range o.docket.attempts {
		if o.slots[t.slot].Arm != arm {
			continue
		}
		if t.Valid {
			a.valid++
			continue
		}
		if a.invalid++; a.reason == "" {
			a.reason = t.Invalid[0]
		}
	}
	return a
}

// hopeful says whether another trial may be valid: where the first two of an arm
// were not and none was, the fault is hardly one that passes.
func (a *tally) hopeful() bool { return a.valid > 0 || a.invalid < 2 }

// one carries out a trial of an arm.
func (r *Runner) one(ctx context.Context, p Plan, arm Arm, n, total int, dir string) (*lab.Trial, error) {
	if arm.Ready != nil {
		if err := arm.Ready(); err != nil {
			return nil, err
		}
	}
	armed := *r
	armed.Network = arm.Network
	p.Arm, p.Page, p.Sync, p.Trials = arm.Name, arm.Page, arm.Sync, total
	return armed.trial(ctx, p, n, dir)
}

// Slot is a trial of the plan.
type Slot struct {
	Arm   int // from 0
	Block int // from 1
}

// Schedule says whose turn it is: each block holds as many trials of each arm, in
// an order that is drawn from all orders, which is what analysis/stats takes for
// granted.
func Schedule(seed uint64, trials, arms int) (plan []Slot) {
	for i, size := range blockSizes(trials) {
		random := rand.New(rand.NewPCG(seed^0x7075726e, uint64(i)))
		for _, place := range random.Perm(size * arms) {
			plan = append(plan, Slot{Arm: place / size, Block: i + 1})
		}
	}
	return plan
}

// usualBlock is how many trials of each arm a block has: enough to rank them,
// few enough that what drifts hardly does within one.
const usualBlock = 5

// blockSizes divides n trials of each arm into blocks of nearly equal size.
func blockSizes(n int) []int {
	count := max((n+usualBlock/2)/usualBlock, 1)
	sizes := make([]int, count)
	for b := range sizes {
		sizes[b] = (b+1)*n/count - b*n/count
	}
	return sizes
}
