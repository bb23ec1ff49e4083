package experiment

import (
	"fmt"
	"math"
	"slices"

	"eidetic/internal/lab"
)

const (
	// companyShare of the machine's processors is how much more than usual others may take beside a trial: what they take
	// varies by less on a machine that does nothing else, and a whole core of two makes a load half as long again.
	companyShare = 0.15
	// companyFrom is the fewest trials of which a share is taken.
	companyFrom = 4
)

// company is how busy everything but the lab kept this machine beside the trials so far, and the most that a valid trial
// may have had beside it. The rule sees neither the values nor the arm of a trial, nor how long its own
// browser waited, which an arm can change. nil is a device with processors of its own.
func (d *docket) company() *lab.Company {
	var beside []float64
	for _, a := range d.attempts {
		if a.Machine != nil {
			beside = append(beside, a.Machine.Busy)
		}
	}
	if d.cores == 0 || len(beside) == 0 {
		return nil
	}
	slices.Sort(beside)
	c := &lab.Company{Usual: beside[(len(beside)-1)/4], N: len(beside), Cores: d.cores}
	c.Planned = c.Usual + companyShare*float64(d.cores)
	c.Limit = c.Planned
	for _, b := range beside {
		if b > c.Planned {
			c.Over++
		}
	}
	if c.N >= companyFrom && float64(c.Over) > relaxShare*float64(c.N) {
		// Other work that comes and goes all the time would leave no trial: the quieter half counts.
		c.Limit = max(c.Planned, math.Ceil(100*beside[c.N/2])/100)
	}
	return c
}

// accompanied says why a trial does not count that had other work beside it, or "".
func accompanied(t *lab.Trial, c *lab.Company) string {
	if c == nil || t.Machine == nil || t.Machine.Busy <= c.Limit {
		return ""
	}
	return fmt.Sprintf("the machine was busy with other work beside it: %.2f of its %d processors, usually %.2f (at most %.2f): %s",
		t.Machine.Busy, c.Cores, c.Usual, c.Limit, t.Machine.Causes())
}

// explainCompany says that this machine was never quiet, or "".
func explainCompany(t *lab.Tolerance, trials []*lab.Trial) string {
	if t == nil || !t.Company.Noisy() {
		return ""
	}
	c := t.Company
	text := fmt.Sprintf("This machine did other work beside the trials: %.2f of its %d processors in the quieter ones", c.Usual, c.Cores)
	if c.Limit > c.Planned {
		text += fmt.Sprintf(", and over %.2f beside %d of %d; those beside at most %.2f count", c.Planned, c.Over, c.N, c.Limit)
	}
	text += ". So times vary more, and small differences are not found."
	if causes := usual(trials); causes != "" {
		text += " What was seen: " + causes + "."
	}
	return text + " What would help: ending the other programs, or a machine of its own."
}
