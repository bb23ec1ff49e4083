package lab

import (
	"fmt"
	"sort"
	"strings"
	"time"
)

// Late is a step of the bound on the link's lateness: from At until the next step,
// an event may have come up to Sum too late.
type Late struct {
	At  Time          `json:"at_ns"`
	Sum time.Duration `json:"sum_ns"`
}

// LateAt is the bound that holds at an instant.
func LateAt(steps []Late, at Time) time.Duration {
	i := sort.Search(len(steps), func(i int) bool { return steps[i].At > at })
	if i == 0 {
		return 0
	}
	return steps[i-1].Sum
}

// Blur bounds by how much the machine may have moved the times of a trial, beyond what
// the screen's period does. In a valid trial neither source exceeds the run's tolerance.
// All fields are in ms.
type Blur struct {
	// Link comes from packets that left later than scheduled, Capture from frames that
	// were not taken in time.
	Link    float64 `json:"link_ms"`
	Capture float64 `json:"capture_ms"`
	// Stall is the link's longest single stall; StallAt is when it ended, from the start.
	Stall   float64 `json:"stall_ms"`
	StallAt float64 `json:"stall_at_ms"`
}

// Worst is the larger of Link and Capture; 0 without a blur.
func (b *Blur) Worst() float64 {
	if b == nil {
		return 0
	}
	return max(b.Link, b.Capture)
}

// Machine describes the load of the machine during a trial, from the start to the end.
type Machine struct {
	Seconds float64 `json:"seconds"`
	// Stolen is the share of processor time that the hypervisor gave to other guests.
	Stolen float64 `json:"stolen_share"`
	// Waiting is the share of the time in which a runnable process waited for a
	// processor (/proc/pressure/cpu); nil if the kernel does not report it.
	Waiting *float64 `json:"waiting_share,omitempty"`
	// Held is how long, in ms, the control group's quota stopped its processes, and
	// Holds how often it did.
	Held  float64 `json:"held_ms,omitempty"`
	Holds int64   `json:"holds,omitempty"`
	// Hot is how often a processor was throttled for its temperature.
	Hot int64 `json:"hot,omitempty"`
	// Own is the processor time of the lab's own processes, in cores. Others are the
	// other processes that used most.
	Own    float64    `json:"own_cores"`
	Others []Consumer `json:"others,omitempty"`
	// Service is the processor time, in cores, of the service that started the trial in a process of its own: of the
	// panel, and of strangers at its port. Connections are those that came to that process's network each second.
	Service     float64 `json:"service_cores,omitempty"`
	Connections float64 `json:"connections_per_second,omitempty"`
	// Busy is the processor time of everything else on the machine, in cores, also of processes that have ended
	// since, of the kernel, and what the hypervisor took.
	Busy float64 `json:"busy_cores"`
	// Born are the browser's processes that began between the start and the end, by their kind.
	Born []Consumer `json:"born,omitempty"`
}

// ClockStepped is how the reason begins that makes a trial invalid whose wall clock stepped.
const ClockStepped = "the wall clock stepped"

// Consumer is the processor use of all processes of one name. PID is the one that used
// most.
type Consumer struct {
	Name  string  `json:"name"`
	PID   int     `json:"pid"`
	Count int     `json:"count"`
	Cores float64 `json:"cores"`
}

// Tolerance is how much blur the trials of a run may have, and how it was found.
type Tolerance struct {
	// Planned is the plan's tolerance, Used the one that trials were judged by; both in ms.
	Planned float64 `json:"planned_ms"`
	Used    float64 `json:"used_ms"`
	// Fixed is set if a person gave the tolerance; a fixed tolerance is never relaxed.
	Fixed bool `json:"fixed,omitempty"`
	// Median and Worst are the blur of the N trials that have no other fault; Over is
	// how many of these exceed Planned.
	Median float64 `json:"median_blur_ms"`
	Worst  float64 `json:"worst_blur_ms"`
	N      int     `json:"n"`
	Over   int     `json:"over_planned"`
	// Company is what else this machine did; nil where the device has processors of its own.
	Company *Company `json:"company,omitempty"`
}

// CompanyOf is what else the machine did, as far as it is known.
func (t *Tolerance) CompanyOf() *Company {
	if t == nil {
		return nil
	}
	return t.Company
}

// Company is how busy everything but the lab kept the processors that the device's browser shares, in cores.
type Company struct {
	// Usual is that of a quiet trial of this run: a quarter of the trials had less. A trial beside more than Limit
	// does not count.
	Usual float64 `json:"usual_cores"`
	Limit float64 `json:"limit_cores"`
	// Planned is the limit unless too many trials exceed it; Over do, of N.
	Planned float64 `json:"planned_cores"`
	N       int     `json:"n"`
	Over    int     `json:"over_planned"`
	Kept    int     `json:"kept,omitempty"` // trials beside more that count, as nothing quieter came
	Cores   int     `json:"cores"`          // of the machine
}

// Noisy says whether the machine was never quiet: others had a quarter of it in the quiet trials, too, or so many
// trials were beside other work that some of them count.
func (c *Company) Noisy() bool {
	return c != nil && (c.Kept > 0 || c.Limit > c.Planned || c.Usual > float64(c.Cores)/4)
}

// Relaxed says whether trials were judged by a larger tolerance than planned.
func (t *Tolerance) Relaxed() bool { return t != nil && t.Used > t.Planned }

// busy is the share of a core above which Causes names a process.
const busy = 0.05

// Causes describes in words what else the machine did.
func (m *Machine) Causes() string {
	if m == nil {
		return "what the machine did besides is not known"
	}
	var all []string
	if m.Held > 0 {
		all = append(all, fmt.Sprintf("the quota of our control group stopped us %d %s, for %s in all", m.Holds,
			Plural(int(m.Holds), "time", "times"), Millis(m.Held)))
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
	if m.Service >= busy {
		all = append(all, m.Beside())
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

// Beside says what the service did that started the trial.
func (m *Machine) Beside() string {
	text := fmt.Sprintf("the service was busy beside the trial, with %.0f %% of a core", 100*m.Service)
	if m.Connections >= 1 {
		text += fmt.Sprintf(", while %.0f connections a second came to this machine", m.Connections)
	}
	return text
}

// Millis formats a time in milliseconds for people.
func Millis(v float64) string {
	if v < 100 {
		return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0") + " ms"
	}
	return fmt.Sprintf("%.0f ms", v)
}
