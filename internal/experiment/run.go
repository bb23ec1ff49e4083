package experiment

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

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
// Trials that run holds already are the first ones of the same plan, which was
// broken off after them: Run goes on behind them.
func (r *Runner) Run(ctx context.Context, p Plan, arms []Arm, run *lab.Run, folder Folder, save func() error) error {
	plan, done := Schedule(p.Seed, p.Trials, len(arms)), run.Trials
	run.Trials = nil
	total, spare := len(plan), (len(plan)+1)/2
	tallies := make([]tally, len(arms))
	for _, slot := range plan {
		arm, came := arms[slot.Arm], &tallies[slot.Arm]
		for take := 1; ; take++ {
			n := len(run.Trials) + 1
			known := n <= len(done)
			var t *lab.Trial
			if known {
				t = done[n-1]
			} else {
				dir, err := folder.TrialDir(n)
				if err != nil {
					return fmt.Errorf("trial %d: %w", n, err)
				}
				if t, err = r.one(ctx, p, arm, n, total, dir); err != nil {
					return fmt.Errorf("trial %d: %w", n, err)
				}
				t.Block = slot.Block
			}
			came.add(t)
			again := !t.Valid && spare > 0 && take < takes && came.hopeful()
			if again {
				spare--
				total++
			}
			run.Trials = append(run.Trials, t)
			if !known {
				if err := save(); err != nil {
					return fmt.Errorf("trial %d: %w", n, err)
				}
				r.progress(Step{Trial: n, Of: total, Done: t})
			}
			if !again {
				break
			}
		}
	}
	for i, arm := range arms {
		if came := tallies[i]; came.valid == 0 {
			return fmt.Errorf("%w of the %s: of %d, the first because %s", errNothingValid, arm.Name, came.invalid, came.reason)
		}
	}
	return nil
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

func (a *tally) add(t *lab.Trial) {
	if t.Valid {
		a.valid++
		return
	}
	if a.invalid++; a.reason == "" {
		a.reason = t.Invalid[0]
	}
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
	return armed.Trial(ctx, p, n, dir)
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
