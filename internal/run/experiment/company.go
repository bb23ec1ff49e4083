package experiment

import (
	"fmt"
	"math"
	"slices"

	"eidetic/internal/lab"
)

const (
	// companyShare of the machine's processors is how much more than usual others may take beside a trial: what they
	// take varies by less on a machine that does nothing else, and a whole core of two makes a load half as long again.
	companyShare = 0.15
	// companyFrom is the fewest trials of which a share is taken.
	companyFrom = 4
)

// company is how busy everything but the lab kept this machine beside the trials so far, and the most that a valid
// trial may have had beside it. The rule sees neither the values nor the arm of a trial, nor how long its own browser
// waited, which an arm can change. nil is a device with processors of its own.
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

// giveUp says that no more trials are made for a slot.
func (d *docket) giveUp(slot int) {
	if d.given == nil {
		d.given = map[int]bool{}
	}
	d.given[slot] = true
}

// keepLeast lets the trial count that had the least company, for slots that got none without: a run on a busy machine
// ends with numbers and a word, not without numbers. Other faults are no matter of degree.
func (d *docket) keepLeast(t *lab.Tolerance, best map[int]*attempt) {
	for _, a := range d.attempts {
		if len(a.Invalid) != 1 || a.Invalid[0] != accompanied(a.Trial, t.Company) || !d.given[a.slot] {
			continue
		}
		if other := best[a.slot]; other == nil || len(other.Invalid) > 0 && a.Machine.Busy < other.Machine.Busy {
			best[a.slot] = a
		}
	}
	for _, a := range best {
		if len(a.Invalid) > 0 {
			a.Invalid = nil
			t.Company.Kept++
		}
	}
}

// accompanied says why a trial does not count that had other work beside it, or "".
func accompanied(t *lab.Trial, c *lab.Company) string {
	if c == nil || t.Machine == nil || t.Machine.Busy <= c.Limit {
		return ""
	}
	return fmt.Sprintf("the machine was busy with other work beside it: %.2f of its %d processors, usually %.2f (at most %.2f"+causesAfter+"%s",
		t.Machine.Busy, c.Cores, c.Usual, c.Limit, t.Machine.Causes())
}

// causesAfter stands between a reason and what the machine did.
const causesAfter = "): "

// explainCompany says that this machine was never quiet, or "".
func explainCompany(t *lab.Tolerance, trials []*lab.Trial) string {
	if t == nil || !t.Company.Noisy() {
		return ""
	}
	text := describeCompany(t.Company) + ". The numbers hold, but times vary more, and small differences are not found."
	if causes := usual(trials); causes != "" {
		text += " What was seen: " + causes + "."
	}
	return text + " What would help: ending the other programs, or a machine of its own."
}

// describeCompany says how much other work a machine did that was never quiet.
func describeCompany(c *lab.Company) string {
	text := fmt.Sprintf("This machine did other work beside the trials: %.2f of its %d processors in the quieter ones", c.Usual, c.Cores)
	if c.Limit > c.Planned {
		text += fmt.Sprintf(", and over %.2f beside %d of %d; those beside at most %.2f count", c.Planned, c.Over, c.N, c.Limit)
	}
	if c.Kept > 0 {
		text += fmt.Sprintf("; %d %s beside more because nothing quieter came", c.Kept, lab.Plural(c.Kept, "counts", "count"))
	}
	return text
}
