package experiment

import (
	"context"
	"errors"
	"fmt"

	"eidetic/internal/lab"
)

// errNothingValid ends a run in which no trial has been valid for too long.
var errNothingValid = errors.New("no trial was valid")

// Run carries out p.Trials trials into folder, adding each to run. save is
// called after each trial, so that what was whole stays whole.
func (r *Runner) Run(ctx context.Context, p Plan, run *lab.Run, folder Folder, save func() error) error {
	valid := 0
	for n := 1; n <= p.Trials; n++ {
		dir, err := folder.TrialDir(n)
		if err != nil {
			return fmt.Errorf("trial %d: %w", n, err)
		}
		t, err := r.Trial(ctx, p, n, dir)
		if err != nil {
			return fmt.Errorf("trial %d: %w", n, err)
		}
		if t.Valid {
			valid++
		}
		run.Trials = append(run.Trials, t)
		if err := save(); err != nil {
			return fmt.Errorf("trial %d: %w", n, err)
		}
		r.progress(Step{Trial: n, Of: p.Trials, Done: t})
	}
	if valid == 0 {
		return fmt.Errorf("%w: of %d, the first because %s", errNothingValid, p.Trials, run.Trials[0].Invalid[0])
	}
	return nil
}
