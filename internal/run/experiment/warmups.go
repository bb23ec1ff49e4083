package experiment

import (
	"context"
	"fmt"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// isWarmup is the reason for which a warm-up enters no statistic.
const isWarmup = "a warm-up, made before the trials that count: it is in no statistic"

// warmupSeed sets the order of the warm-ups apart from that of the others.
const warmupSeed = 0x7761726d // "warm"

// warmUps makes the order of the warm-ups: the arms take turns, so that all are equally warm.
func warmUps(seed uint64, warmups, arms, cells int) (plan []Slot) {
	for i := range warmups {
		for _, s := range ScheduleCells(seed^warmupSeed+uint64(i), 1, arms, cells) {
			plan = append(plan, Slot{Arm: s.Arm})
		}
	}
	return plan
}

// warmUp makes the warm-ups. None is repeated, whatever its faults: what it was made for is done.
func (o *outing) warmUp(ctx context.Context, plan []Slot) error {
	o.warming = true
	defer func() { o.warming = false }()
	for i, s := range plan {
		n := len(o.run.Trials) + 1
		t, known, err := o.next(ctx, s, n, i/len(o.arms))
		if err != nil {
			return fmt.Errorf("trial %d: %w", n, err)
		}
		t.Warmup, t.Valid, t.Invalid = true, false, append([]string{isWarmup}, t.Faults...)
		o.run.Trials = append(o.run.Trials, t)
		if known {
			continue
		}
		if err := o.save(); err != nil {
			return fmt.Errorf("trial %d: %w", n, err)
		}
		o.progress(Step{Trial: n, Of: o.total, Done: t, Note: warmupNote(t)})
	}
	return nil
}

// warmupNote says how a warm-up went.
func warmupNote(t *lab.Trial) string {
	if len(t.Faults) > 0 {
		return fmt.Sprintf("Trial %d, a warm-up: %s", t.Number, t.Faults[0])
	}
	return fmt.Sprintf("Trial %d, a warm-up: last change %.0f ms", t.Number, metric.LastChange.In(t))
}
