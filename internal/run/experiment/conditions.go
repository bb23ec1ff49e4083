package experiment

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"eidetic/internal/lab"
)

const (
	// conditionsWait is how long a trial waits for the conditions that its plan asks for, without wait_s.
	conditionsWait = 10 * time.Minute
	// conditionsPoll is how often the device is asked meanwhile. Batteries cool and charge in minutes.
	conditionsPoll = 5 * time.Second
)

// await waits until the device keeps the plan's limits. Nothing of an arm is running meanwhile.
func (r *Runner) awaitConditions(ctx context.Context, p Plan, t *lab.Trial) error {
	if r.Conditions == nil {
		if p.Limits != (lab.Limits{}) {
			return errors.New("conditions: this device tells none; leave conditions out of the plan")
		}
		return nil
	}
	limit := conditionsWait
	if p.Limits.Wait > 0 {
		limit = time.Duration(p.Limits.Wait * float64(time.Second))
	}
	for deadline, said := r.Clock().Add(limit), ""; ; {
		c, err := r.Conditions(ctx)
		if err != nil {
			return Broken(fmt.Errorf("asking the device for its conditions: %w", err))
		}
		t.Conditions = &c
		if names := p.Limits.Missing(c); len(names) > 0 {
			return fmt.Errorf("conditions: this device does not tell what %s needs: leave it out of the plan", strings.Join(names, " and "))
		}
		reasons := strings.Join(p.Limits.Broken(c), "; ")
		switch {
		case reasons == "":
			return nil
		case r.Clock() > deadline:
			return broken("the device did not get ready within %v: %s", limit, reasons)
		case reasons != said:
			r.progress(Step{Trial: t.Number, Of: p.Trials, Doing: "waiting for the device: " + reasons})
			said = reasons
		}
		if err := lab.Wait(ctx, conditionsPoll); err != nil {
			return err
		}
	}
}

// endConditions reads the device's conditions after a trial, and says how they have left the plan's limits within it.
func (r *Runner) endConditions(ctx context.Context, p Plan, t *lab.Trial) (reasons []string) {
	if r.Conditions == nil || t.Conditions == nil {
		return nil
	}
	c, err := r.Conditions(ctx)
	if err != nil { // the trial has failed already if the device is gone
		if p.Limits != (lab.Limits{}) {
			return []string{fmt.Sprintf("the device did not tell its conditions at the trial's end: %v", err)}
		}
		return nil
	}
	t.ConditionsAfter = &c
	reasons = p.Limits.Broken(c)
	if slowed := lab.Slowed(t.Conditions, &c); len(reasons) == 0 && p.Limits.Thermal == lab.ThermalStates[0] && slowed != "" {
		reasons = append(reasons, "the device slowed itself down because of its heat ("+slowed+")")
	}
	for i := range reasons {
		reasons[i] = "at the trial's end " + reasons[i]
	}
	return append(reasons, p.Limits.BrokenBetween(t.Conditions, &c)...)
}
