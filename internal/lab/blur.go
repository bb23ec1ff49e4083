package lab

import (
	"fmt"
	"sort"
	"strings"
	"time"
)

// Late is a step of what late instruments can have moved: until the next step,
// what happened after At may have come Sum too late.
type Late struct {
	At  Time          `json:"at_ns"`
	Sum time.Duration `json:"sum_ns"`
}

// LateAt is the sum at an instant.
func LateAt(steps []Late, at Time) time.Duration {
	i := sort.Search(len(steps), func(i int) bool { return steps[i].At > at })
	if i == 0 {
		return 0
	}
	return steps[i-1].Sum
}

// Blur is by how much the machine may have moved the times of a trial, at most,
// besides what its screen's period does. Neither of its sources may exceed the
// run's tolerance in a valid trial. All are in ms.
type Blur struct {
	// Link is from packets that left later than their schedule, Capture from
	// frames that were not taken in time.
	Link    float64 `json:"link_ms"`
	Capture float64 `json:"capture_ms"`
	// Stall is the longest single one of the link, and StallAt when it ended, since the start.
	Stall   float64 `json:"stall_ms"`
	StallAt float64 `json:"stall_at_ms"`
}

// Worst is the larger of its sources.
func (b *Blur) Worst() float64 {
	if b == nil {
		return 0
	}
	return max(b.Link, b.Capture)
}

// Machine is what else the machine did while a trial ran, from the start to the end.
type Machine struct {
	Seconds float64 `json:"seconds"`
	// Stolen is the share of the processors' time that a hypervisor gave to others.
	Stolen float64 `json:"stolen_share"`
	// Waiting is the share of the time in which something could run and no
	// processor was free (/proc/pressure/cpu); nil where the kernel does not say.
	Waiting *float64 `json:"waiting_share,omitempty"`
	// Held is how long a control group's quota stopped its processes, in ms, and
	// Holds how often.
	Held  float64 `json:"held_ms,omitempty"`
	Holds int64   `json:"holds,omitempty"`
	// Hot is how often a processor was slowed down by its heat.
	Hot int64 `json:"hot,omitempty"`
	// Own is what the lab's processes used, in cores, and Others are those
	// besides that used most.
	Own    float64    `json:"own_cores"`
	Others []Consumer `json:"others,omitempty"`
}

// Consumer is the processes of one name and what they used. PID is the one that
// used most of it.
type Consumer struct {
	Name  string  `json:"name"`
	PID   int     `json:"pid"`
	Count int     `json:"count"`
	Cores float64 `json:"cores"`
}

// Tolerance is how much blur the trials of a run may have.
type Tolerance struct {
	// Planned is what the plan says, Used what the trials were judged by; ms.
	Planned float64 `json:"planned_ms"`
	Used    float64 `json:"used_ms"`
	// Fixed is set where a person gave it: it is then never relaxed.
	Fixed bool `json:"fixed,omitempty"`
	// Median and Worst are of the blur of the trials whose only fault, if any,
	// was their blur; Over is how many of these N exceed what is planned.
	Median float64 `json:"median_blur_ms"`
	Worst  float64 `json:"worst_blur_ms"`
	N      int     `json:"n"`
	Over   int     `json:"over_planned"`
}

// Relaxed tells whether more is allowed than was planned.
func (t *Tolerance) Relaxed() bool { return t != nil && t.Used > t.Planned }

// busy is the share of a core from which on a process is named.
const busy = 0.05

// Causes says in words what the machine did besides.
func (m *Machine) Causes() string {
	if m == nil {
		return "what the machine did besides is not known"
	}
	var all []string
	if m.Held > 0 {
		all = append(all, fmt.Sprintf("the quota of our control group stopped us %d %s, for %s in all", m.Holds, Plural(int(m.Holds), "time", "times"), Millis(m.Held)))
	}
	for _, c := range m.Others {
		if c.Cores >= busy {
			more := ""
			if c.Count > 1 {
				more = fmt.Sprintf(" and %d more of this name", c.Count-1)
			}
			all = append(all, fmt.Sprintf("process %s (pid %d%s) took %.0f %% of a core", c.Name, c.PID, more, 100*c.Cores))
		}
	}
	if m.Stolen >= 0.001 {
		all = append(all, fmt.Sprintf("%.1f %% of the time was stolen by the hypervisor", 100*m.Stolen))
	}
	if m.Hot > 0 {
		all = append(all, "a processor was slowed down by its heat")
	}
	own := fmt.Sprintf("our own processes took %.1f cores", m.Own)
	if m.Waiting != nil && *m.Waiting >= 0.01 {
		own += fmt.Sprintf(", and something waited for a processor %.0f %% of the time", 100**m.Waiting)
	}
	return strings.Join(append(all, own), "; ")
}

// Millis writes a time of so many milliseconds for people.
func Millis(v float64) string {
	if v < 100 {
		return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0") + " ms"
	}
	return fmt.Sprintf("%.0f ms", v)
}
