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

// Run carries out p.Trials trials of each arm into folder, adding each to run.
// The arms take turns, in an order that is drawn anew for each pair, so that
// what drifts hits both alike. save is called after each trial, so that what
// was whole stays whole.
func (r *Runner) Run(ctx context.Context, p Plan, arms []Arm, run *lab.Run, folder Folder, save func() error) error {
	total := p.Trials * len(arms)
	valid := map[string]int{}
	reason := map[string]string{}
	for n := 1; n <= total; n++ {
		arm := arms[turn(p.Seed, n, len(arms))]
		dir, err := folder.TrialDir(n)
		if err != nil {
			return fmt.Errorf("trial %d: %w", n, err)
		}
		t, err := r.one(ctx, p, arm, n, total, dir)
		if err != nil {
			return fmt.Errorf("trial %d: %w", n, err)
		}
		if t.Valid {
			valid[arm.Name]++
		} else if reason[arm.Name] == "" {
			reason[arm.Name] = t.Invalid[0]
		}
		run.Trials = append(run.Trials, t)
		if err := save(); err != nil {
			return fmt.Errorf("trial %d: %w", n, err)
		}
		r.progress(Step{Trial: n, Of: total, Done: t})
	}
	for _, arm := range arms {
		if valid[arm.Name] == 0 {
			return fmt.Errorf("%w of the %s: of %d, the first because %s", errNothingValid, arm.Name, p.Trials, reason[arm.Name])
		}
	}
	return nil
}

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

// turn says whose trial n, from 1, is: each group of arms trials holds every
// arm once, in an order of its own.
func turn(seed uint64, n, arms int) int {
	group, place := (n-1)/arms, (n-1)%arms
	return rand.New(rand.NewPCG(seed^0x7075726e, uint64(group))).Perm(arms)[place]
}
