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
	Name string // lab.Control or lab.Treatment
	// Cell is that of lab.Trial. The arms of a cell follow one another, and each cell has the same.
	Cell string
	// Steps are those of Plan, where cells have different ones.
	Steps      []lab.Step
	Page, Sync string // as in Plan
	Network    Network
	// Recordings are the networks of all recordings of the arm, where it has several: each trial replays the one that
	// Lot draws.
	Recordings []Network
	Lot        uint64
	// Ready is called before each trial of the arm, to set the link; nil does nothing.
	Ready func() error
	// Traced traces every trial of the arm: what a trace costs is the difference to an arm without.
	Traced bool
}

// Run carries out p.Trials trials of each arm into folder, and repeats invalid ones a few
// times; it appends each trial to run. The arms take turns in an order that is random
// within blocks of a few trials, so that drift affects both alike. save is called after
// each trial, so that an interruption loses no completed trial. Each cell has as many trials, in
// blocks of its own that take turns with those of the other cells.
//
// If the plan leaves the tolerance open, it may be relaxed during the run (see docket), and
// every trial is judged again whenever it changes. run.Tolerance holds the final
// tolerance.
//
// Trials already in run are the first ones of the same, interrupted plan; Run continues
// after them.
func (r *Runner) Run(ctx context.Context, p Plan, arms []Arm, run *lab.Run, folder Folder, save func() error) error {
	each := armsOfCell(arms)
	if each == 1 {
		each = max(p.Together, 1)
	}
	plan := ScheduleCells(p.Seed, p.Trials, each, len(arms)/each)
	warmups := warmUps(p.Seed, p.Warmups, each, len(arms)/each)
	p.traced = p.TraceAll
	o := &outing{
		Runner: r, each: each, plan: p, arms: arms, run: run, folder: folder, save: save, docket: r.newDocket(p), done: run.Trials,
		total: len(warmups) + len(plan), spare: (len(plan) + 1) / 2, blocks: plan[len(plan)-1].Block,
		planned: len(plan),
	}
	run.Trials, run.Looks = nil, nil
	if err := o.warmUp(ctx, warmups); err != nil {
		return err
	}
	known := false
	for len(plan) > 0 && !known {
		for i, s := range plan {
			if err := o.fill(ctx, s); err != nil {
				return err
			}
			ends := i+1 == len(plan) || plan[i+1].Block != s.Block
			if ends && o.knows() {
				known = true
				break
			}
			if ends && o.isEnough(len(plan)-i-1) {
				break
			}
		}
		if !known {
			plan = o.missing()
		}
	}
	if !known {
		o.settle()
	}
	for i, arm := range arms {
		if came := o.came(i); came.valid == 0 {
			return fmt.Errorf("%w of the %s: of %d, the first because %s", errNothingValid, arm.title(), came.invalid+came.filling, came.reason)
		}
	}
	return o.traceExtra(ctx)
}

// title names the arm in errors.
func (a Arm) title() string {
	if a.Cell != "" {
		return a.Name + " of " + a.Cell
	}
	return a.Name
}

// armsOfCell is how many arms each cell has.
func armsOfCell(arms []Arm) (n int) {
	for n < len(arms) && arms[n].Cell == arms[0].Cell {
		n++
	}
	return n
}

// outing is the state of a run in progress.
type outing struct {
	*Runner
	plan   Plan
	arms   []Arm
	each   int // arms that take turns: those of a cell, or several cells of one arm
	run    *lab.Run
	folder Folder
	save   func() error

	done   []*lab.Trial // trials of the interrupted run that are not used yet
	docket *docket
	slots  []Slot // the slots tried so far
	total  int    // trials, as far as is known
	spare  int    // repetitions left
	blocks int

	warming bool // the trials are warm-ups
	planned int  // slots of the plan, without those that make up for invalid trials
	looked  int  // looks that are over
	enough  int  // pairs that are made, if the run has chosen
}

// knows looks at the comparison if it is time to, and says whether the run may end. It is asked
// at the ends of blocks, since only whole blocks are balanced.
func (o *outing) knows() bool {
	if o.plan.Look == nil || o.plan.Size != nil { // before the size is chosen nobody knows when the looks are
		return false
	}
	at, pairs := -1, len(o.slots)/len(o.arms)
	for o.looked < len(o.plan.Looks)-1 && pairs >= o.plan.Looks[o.looked] {
		at = o.looked
		o.looked++
	}
	if at < 0 || len(o.slots) >= o.planned || !o.plan.Look(o.run, at) {
		return false
	}
	o.progress(Step{Trial: len(o.run.Trials), Of: len(o.run.Trials), Note: fmt.Sprintf("The verdict is known after %d of %d pairs", pairs, o.plan.Trials)})
	return true
}

// isEnough chooses how many pairs are made, once that is known, and says whether all of them are, although so many
// slots are left. It is asked at the ends of blocks, and the choice does not depend on which arm a trial had.
func (o *outing) isEnough(left int) bool {
	if o.plan.Size != nil {
		pairs, looks, known := o.plan.Size(o.run)
		if !known {
			return false
		}
		if o.plan.Size = nil; pairs > 0 {
			o.enough = pairs
			o.plan.Looks = looks
		}
	}
	pairs := len(o.slots) / len(o.arms)
	if o.enough == 0 || pairs < o.enough || left == 0 {
		return false
	}
	o.plan.Trials, o.planned, o.enough = pairs, len(o.slots), 0
	o.total -= left
	return true
}

// fill carries out trials until one is valid for the slot, or repetitions are used up.
func (o *outing) fill(ctx context.Context, s Slot) error {
	place := len(o.slots)
	o.slots = append(o.slots, s)
	if o.each < len(o.arms) && !o.hopeful(s.Arm-s.Arm%o.each) {
		return nil // the other cells need not wait for one that cannot be measured
	}
	for take := 1; ; {
		n := len(o.run.Trials) + 1
		t, known, err := o.next(ctx, s, n, o.nth(s.Arm))
		if err != nil {
			return fmt.Errorf("trial %d: %w", n, err)
		}
		o.run.Trials = append(o.run.Trials, t)
		o.docket.add(t, place)
		o.judge()
		came := o.came(s.Arm)
		again, planned := !o.docket.filled(place) && came.hopeful(), o.total
		switch {
		case !again:
		case t.Filled > 0: // this was what the repetition needed, and no fault
			o.total++
		case o.spare > 0 && take < Takes:
			o.spare--
			o.total++
			take++
		default:
			again = false
		}
		if !again && !o.docket.filled(place) {
			o.docket.giveUp(place)
			o.judge()
		}
		if !known {
			if err := o.save(); err != nil {
				return fmt.Errorf("trial %d: %w", n, err)
			}
			o.progress(Step{Trial: n, Of: planned, Done: t})
		}
		if !again {
			return nil
		}
		if !known {
			o.progress(Step{Trial: n, Of: o.total, Note: fmt.Sprintf("Trial %d is made again: %d in all", n, o.total)})
		}
	}
}

// next returns the next trial for a slot, the nth of its arm: one of the interrupted run, or a new one.
func (o *outing) next(ctx context.Context, s Slot, n, nth int) (t *lab.Trial, known bool, err error) {
	if len(o.done) > 0 && o.done[0].Traced == (o.plan.traced && !o.plan.TraceAll) && o.done[0].Warmup == o.warming {
		t, o.done = o.done[0], o.done[1:]
		return t, true, nil
	}
	if len(o.done) > 0 {
		return nil, false, errors.New("the run's trials are not in the order of its plan: it cannot go on")
	}
	dir, err := o.folder.TrialDir(n)
	if err != nil {
		return nil, false, err
	}
	plan, arm := o.plan, o.arms[s.Arm]
	if arm.Cell != "" {
		plan.Steps = arm.Steps
	}
	plan.Steps = lab.StepsOf(plan.Steps, nth)
	recording := arm.draw(nth)
	t, err = o.one(ctx, plan, arm, n, o.total, dir)
	if err != nil {
		return nil, false, err
	}
	t.Block, t.Cell, t.Recording = s.Block, arm.Cell, recording
	return t, false, nil
}

// draw makes the arm's network that of one of its recordings, and returns its number; 0 if it has one. Of so many slots
// as there are recordings each gets another one, in an order that is drawn by lot.
func (a *Arm) draw(nth int) (number int) {
	n := len(a.Recordings)
	if n < 2 {
		return 0
	}
	i := rand.New(rand.NewPCG(a.Lot, uint64(nth/n))).Perm(n)[nth%n]
	a.Network = a.Recordings[i]
	return i + 1
}

// nth counts the slots of an arm before the newest one: the arms go through the same steps equally often.
func (o *outing) nth(arm int) (n int) {
	for _, s := range o.slots[:len(o.slots)-1] {
		if s.Arm == arm {
			n++
		}
	}
	return n
}

// judge judges all trials so far, and reports a changed tolerance.
func (o *outing) judge() {
	relaxed, noisy := o.run.Tolerance.Relaxed(), o.run.Tolerance.CompanyOf().Noisy()
	earlier := o.docket.attempts[:len(o.docket.attempts)-1] // without the newest, which is reported separately
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
	if t.Company.Noisy() && !noisy {
		o.progress(Step{Trial: len(o.run.Trials), Of: o.total, Note: describeCompany(t.Company) + ": small differences will not be found"})
	}
	if relaxed == t.Relaxed() && len(changed) == 0 {
		return
	}
	note := "What other work this machine does beside trials is known better now"
	if relaxed != t.Relaxed() {
		note = fmt.Sprintf("The tolerance is %s now, since this machine's usual blur is %s", lab.Millis(t.Used), lab.Millis(t.Median))
	}
	if len(changed) > 0 {
		note += ": " + strings.Join(changed, ", ")
	}
	o.progress(Step{Trial: len(o.run.Trials), Of: o.total, Note: note})
}

// settle ends the slots that lack a trial once no more are made: one that counted when it was made may count no more,
// because later ones had less company.
func (o *outing) settle() {
	for place, s := range o.slots {
		if !o.docket.filled(place) && o.came(s.Arm).valid < o.plan.Trials {
			o.docket.giveUp(place)
			o.judge()
		}
	}
}

// missing returns a further block for the cells that lack valid trials, with as many trials of each of
// a cell's arms as the one needs that lacks most: trials that are no longer valid, or slots whose repetitions all
// failed. It returns none if more trials would hardly be valid.
func (o *outing) missing() (plan []Slot) {
	block := o.blocks + 1
	for first := 0; first < len(o.arms); first += o.each {
		most := min(o.lacking(first), o.spare/o.each)
		if most <= 0 {
			continue
		}
		more := Schedule(o.plan.Seed+uint64(block), most, o.each)
		for i := range more {
			more[i].Arm, more[i].Block = more[i].Arm+first, block
		}
		plan = append(plan, more...)
		o.spare -= len(more)
		o.total += len(more)
	}
	if len(plan) > 0 {
		o.blocks = block
		o.progress(Step{Trial: len(o.run.Trials), Of: o.total,
			Note: fmt.Sprintf("%d more %s in the place of what does not count: %d in all", len(plan),
				lab.Plural(len(plan), "trial", "trials"), o.total)})
	}
	return plan
}

// hopeful says whether more trials of the cell whose arms begin at first may be valid.
func (o *outing) hopeful(first int) bool {
	for i := first; i < first+o.each; i++ {
		if came := o.came(i); !came.hopeful() {
			return false
		}
	}
	return true
}

// lacking is how many valid trials the arm lacks that lacks most, of the cell whose arms begin at
// first; 0 if one of them would hardly get more.
func (o *outing) lacking(first int) (most int) {
	if !o.hopeful(first) {
		return 0
	}
	for i := first; i < first+o.each; i++ {
		came := o.came(i)
		if came.valid == 0 {
			return 0
		}
		most = max(most, o.plan.Trials-came.valid)
	}
	return most
}

// tally counts an arm's trials.
type tally struct {
	valid, invalid int
	filling        int    // invalid ones that fetched what the recording lacks; they are not among invalid
	reason         string // of the first invalid trial
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
		if a.reason == "" {
			a.reason = t.Invalid[0]
		}
		if t.Filled > 0 {
			a.filling++
		} else {
			a.invalid++
		}
	}
	return a
}

// maxFilling bounds an arm's trials that fetch what the recording lacks. A page that asks for
// something new in each of so many loads will do so in the next.
const maxFilling = 4

// hopeful says whether another trial may be valid. If the first two of an arm are invalid
// and none is valid, the fault is hardly temporary.
func (a *tally) hopeful() bool {
	return a.valid > 0 && a.filling <= maxFilling+a.valid || a.valid == 0 && a.invalid < 2 && a.filling < maxFilling
}

// one carries out one trial of an arm.
func (o *outing) one(ctx context.Context, p Plan, arm Arm, n, total int, dir string) (*lab.Trial, error) {
	if arm.Ready != nil {
		if err := arm.Ready(); err != nil {
			return nil, err
		}
	}
	armed := *o.Runner
	armed.Network = arm.Network
	armed.Progress = func(s Step) {
		if armsOfCell(o.arms) > 1 {
			s.Arm = arm.Name
		}
		o.progress(s)
	}
	p.Arm, p.Page, p.Sync, p.Trials = arm.Name, arm.Page, arm.Sync, total
	p.traced = p.traced || arm.Traced
	return armed.trial(ctx, p, n, dir)
}

// Slot is the place of a trial in the order of the plan.
type Slot struct {
	Arm   int // from 0
	Block int // from 1
}

// Schedule makes the order of the arms: each block has equally many trials of each arm, in
// an order drawn uniformly from all orders, as analysis/stats assumes.
func Schedule(seed uint64, trials, arms int) (plan []Slot) {
	for i, size := range blockSizes(trials) {
		random := rand.New(rand.NewPCG(seed^0x7075726e, uint64(i)))
		for _, place := range random.Perm(size * arms) {
			plan = append(plan, Slot{Arm: place / size, Block: i + 1})
		}
	}
	return plan
}

// ScheduleCells makes the order of several cells, each with so many arms: blocks as those of Schedule, in which
// each cell has its trials of a block one after the other, in an order of the arms and of the cells that is drawn
// by lot. So each cell is compared within blocks that last no longer than in a run of its own, and is measured at the
// beginning, in the middle and at the end of the run. The slots of one cell are those of Schedule.
func ScheduleCells(seed uint64, trials, arms, cells int) (plan []Slot) {
	if cells == 1 {
		return Schedule(seed, trials, arms)
	}
	for i, size := range blockSizes(trials) {
		random := rand.New(rand.NewPCG(seed^0x63656c6c73, uint64(i))) // "cells"
		for _, cell := range random.Perm(cells) {
			for _, place := range random.Perm(size * arms) {
				plan = append(plan, Slot{Arm: cell*arms + place/size, Block: i + 1})
			}
		}
	}
	return plan
}

// usualBlock is the number of trials of each arm in a block: enough to rank them, few
// enough that drift within a block is small.
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
