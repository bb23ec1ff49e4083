package experiment

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"eidetic/internal/lab"
)

// DefaultTolerance is the blur that a trial may have if the plan does not say: one frame
// at 60 Hz. It is relaxed if the machine cannot keep it.
const DefaultTolerance = time.Second / 60

const (
	// relaxFrom is the fewest trials before the tolerance is relaxed.
	relaxFrom = 2
	// relaxShare is the share of trials above the tolerance from which it is relaxed;
	// below, repeating some trials is enough.
	relaxShare = 0.25
	// relaxFactor times the usual blur is then allowed; a larger blur is unusual even for
	// this machine.
	relaxFactor = 3
)

// attempt is a trial with its validity apart from blur.
type attempt struct {
	*lab.Trial
	slot int // place in the plan's order; each needs one valid trial
}

// docket judges the trials of a run. Its rule uses only the blurs of all arms together, not
// the measured values or the arm of a trial.
type docket struct {
	planned  time.Duration
	fixed    bool // the tolerance was given by a person
	cores    int  // of the machine, if the device's browser runs on it
	attempts []*attempt
	given    map[int]bool // slots of which no more trials are made
}

func (r *Runner) newDocket(p Plan) *docket {
	d := &docket{planned: p.Tolerance, fixed: p.Tolerance > 0}
	if !d.fixed {
		d.planned = DefaultTolerance
	}
	if r.MainThreads != nil {
		d.cores = runtime.NumCPU()
	}
	return d
}

func (d *docket) add(t *lab.Trial, slot int) {
	d.attempts = append(d.attempts, &attempt{t, slot})
}

// filled says whether a slot has a valid trial.
func (d *docket) filled(slot int) bool {
	return slices.ContainsFunc(d.attempts, func(a *attempt) bool { return a.slot == slot && a.Valid })
}

// tolerance returns the tolerance by which all trials so far are judged.
func (d *docket) tolerance() *lab.Tolerance {
	t := &lab.Tolerance{Planned: millis(d.planned), Fixed: d.fixed}
	t.Used = t.Planned
	var blurs []float64
	for _, a := range d.attempts {
		if len(a.Faults) > 0 || a.Blur == nil {
			continue
		}
		blurs = append(blurs, a.Blur.Worst())
		if a.Blur.Worst() > t.Planned {
			t.Over++
		}
	}
	if t.N = len(blurs); t.N == 0 {
		return t
	}
	slices.Sort(blurs)
	t.Median, t.Worst = blurs[(t.N-1)/2], blurs[t.N-1] // of two the lower one, since one may be an outlier
	if !d.fixed && t.N >= relaxFrom && float64(t.Over) > relaxShare*float64(t.N) {
		t.Used = max(t.Planned, math.Ceil(relaxFactor*t.Median))
	}
	return t
}

// judge decides for every trial so far whether it is valid. If relaxing the tolerance
// leaves several valid trials for one slot, the one with the least blur counts: that
// choice, too, does not depend on the measured values.
func (d *docket) judge() *lab.Tolerance {
	t := d.tolerance()
	t.Company = d.company()
	best := map[int]*attempt{}
	for _, a := range d.attempts {
		a.Invalid = slices.Clone(a.Faults)
		late, beside := blurred(a.Trial, t.Used), accompanied(a.Trial, t.Company)
		if before, _, cut := strings.Cut(beside, causesAfter); cut && late != "" {
			beside = before + ")" // the causes are the same
		}
		for _, reason := range []string{late, beside} {
			if reason != "" {
				a.Invalid = append(a.Invalid, reason)
			}
		}
		if other := best[a.slot]; len(a.Invalid) == 0 && (other == nil || a.Blur.Worst() < other.Blur.Worst()) {
			best[a.slot] = a
		}
	}
	d.keepLeast(t, best)
	for _, a := range d.attempts {
		if counts := best[a.slot]; len(a.Invalid) == 0 && a != counts {
			a.Invalid = []string{fmt.Sprintf("%strial %d is of the same place in the order, and has less blur", lab.Superseded,
				counts.Number)}
		}
		a.Valid = len(a.Invalid) == 0
	}
	return t
}

// Explain says that the tolerance was relaxed, why, and what would help; "" if it was not
// relaxed. The causes come from the machine's load during the trials.
func Explain(t *lab.Tolerance, trials []*lab.Trial) string {
	if !t.Relaxed() {
		return explainCompany(t, trials)
	}
	text := fmt.Sprintf("This machine could not keep the tolerance of %s: the blur of %d of %d trials was larger, %s in the middle "+
		"and %s at worst. "+
		"Trials were judged by %s instead, three times the usual, by the same rule for all. "+
		"So a single time may be too late by that much, and intervals are wider than on a quiet machine. "+
		"In a comparison, what slows both arms alike is in neither's favour.",
		lab.Millis(t.Planned), t.Over, t.N, lab.Millis(t.Median), lab.Millis(t.Worst), lab.Millis(t.Used))
	if causes := usual(trials); causes != "" {
		text += " What was seen: " + causes + "."
	}
	return text + " What would help: " + strings.Join(help(trials), "; ") + "."
}

// usual sums up the machine's other load during all trials.
func usual(trials []*lab.Trial) string {
	sum, waiting, others, n := lab.Machine{}, 0.0, map[string]lab.Consumer{}, 0.0
	for _, t := range trials {
		if m := t.Machine; m != nil {
			n++
			sum.Held, sum.Holds, sum.Hot = sum.Held+m.Held, sum.Holds+m.Holds, sum.Hot+m.Hot
			sum.Stolen, sum.Own = sum.Stolen+m.Stolen, sum.Own+m.Own
			if m.Waiting != nil {
				waiting += *m.Waiting
				sum.Waiting = &waiting
			}
			for _, c := range m.Others {
				have := others[c.Name]
				others[c.Name] = lab.Consumer{Name: c.Name, PID: c.PID, Cores: have.Cores + c.Cores}
			}
		}
	}
	if n == 0 {
		return ""
	}
	sum.Stolen, sum.Own, waiting = sum.Stolen/n, sum.Own/n, waiting/n
	for _, c := range others {
		c.Cores /= n
		sum.Others = append(sum.Others, c)
	}
	slices.SortFunc(sum.Others, func(a, b lab.Consumer) int { return int(1e6 * (b.Cores - a.Cores)) })
	sum.Others = sum.Others[:min(len(sum.Others), 3)]
	return sum.Causes()
}

// help lists what would make the machine more punctual, the most effective first.
func help(trials []*lab.Trial) (all []string) {
	var m lab.Machine
	realtime := true
	for _, t := range trials {
		if c := t.Capture; c != nil && c.Scheduling != "" && !strings.HasPrefix(c.Scheduling, "SCHED_FIFO") {
			realtime = false
		}
		if t.Machine != nil {
			m.Held += t.Machine.Held
			m.Stolen = max(m.Stolen, t.Machine.Stolen)
			for _, c := range t.Machine.Others {
				if c.Cores > 0.3 {
					m.Others = append(m.Others, c)
				}
			}
		}
	}
	if !realtime {
		all = append(all, "real-time priority for the link and the recorder: run as root, or allow it to your user with the line "+
			"'NAME - rtprio 20' in /etc/security/limits.conf and log in again (appliance doctor says whether it is there)")
	}
	if m.Held > 0 {
		all = append(all, "a larger quota of processor time for the control group that this runs in (cpu.max, docker --cpus)")
	}
	if len(m.Others) > 0 {
		all = append(all, "ending the other processes that take the processors")
	}
	if m.Stolen > 0.02 {
		all = append(all, "a machine of its own: a hypervisor gives this one's processors to others")
	}
	return append(all, "a quieter or faster machine, with more cores")
}
