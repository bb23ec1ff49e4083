// Package retention decides whose evidence is deleted when runs are old or take too much
// room. In go a policy, the runs with their sizes and what each is needed for, and the room on
// the disk; out comes a list of runs, the oldest first, with why, and of those that are kept.
//
// Only evidence is deleted: films, pictures, recordings, logs. A run's numbers and its report
// stay, so no history and no comparison loses a run.
package retention

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Policy says what is kept. A field that is 0 bounds nothing.
type Policy struct {
	KeepDays   int     `json:"keep_days,omitempty" yaml:"keep_days" doc:"Evidence that is older is deleted" example:"90"`
	KeepGB     float64 `json:"keep_gb,omitempty" yaml:"keep_gb" doc:"The oldest evidence is deleted while all runs together take more" example:"200"`
	KeepFreeGB float64 `json:"keep_free_gb,omitempty" yaml:"keep_free_gb" doc:"The oldest evidence is deleted while less is free on the disk" example:"10"`
}

// Set says whether the policy bounds anything.
func (p Policy) Set() bool { return p != Policy{} }

// Check returns the field that is wrong, and why, or nil.
func (p Policy) Check() (field string, err error) {
	if p.KeepDays < 0 || p.KeepDays > 36_500 {
		return "keep_days", fmt.Errorf("%d is outside 1 … 36500; leave it out to keep evidence of any age", p.KeepDays)
	}
	for name, gb := range map[string]float64{"keep_gb": p.KeepGB, "keep_free_gb": p.KeepFreeGB} {
		if !(gb >= 0 && gb <= 1e6) { // also what is no number
			return name, fmt.Errorf("%g is outside 0 … 1000000; leave it out for no such bound", gb)
		}
	}
	return "", nil
}

// Run is a run that there is.
type Run struct {
	ID       string
	Wall     time.Time // when it started
	Bytes    int64     // of all its files
	Evidence int64     // of those that can be deleted
	Needed   string    // what its evidence is needed for; empty if for nothing
}

// Deletion is a run whose evidence is to be deleted.
type Deletion struct {
	Run   string    `json:"run" doc:"Identifier of the run"`
	Wall  time.Time `json:"wall" doc:"When it started"`
	Bytes int64     `json:"bytes" doc:"Of its evidence"`
	Why   string    `json:"why" example:"older than 90 days"`
}

// Kept is a run whose evidence would be deleted if it were not needed.
type Kept struct {
	Run    string `json:"run" doc:"Identifier of the run"`
	Bytes  int64  `json:"bytes" doc:"Of its evidence"`
	Needed string `json:"needed" doc:"What for" example:"it is pinned"`
}

// Decision is what a policy means for the runs that there are.
type Decision struct {
	Delete []Deletion `json:"delete" doc:"Runs whose evidence goes, the oldest first"`
	Kept   []Kept     `json:"kept" doc:"Runs that the policy would take, and that are needed"`
	Held   []Kept     `json:"held" doc:"All runs whose evidence is needed, whether or not the policy would take it"`
	Bytes  int64      `json:"bytes" doc:"Of all files of all runs"`
	Frees  int64      `json:"frees" doc:"Bytes that are deleted"`
	Short  int64      `json:"short" doc:"Bytes that the policy wants besides, and that are needed or no evidence"`
}

const (
	gb  = 1e9
	day = 24 * time.Hour
)

// Decide applies a policy. free is the room on the disk, in bytes. Without aged no evidence is
// too old: the clock may be wrong.
func Decide(p Policy, runs []Run, free int64, now time.Time, aged bool) Decision {
	runs = slices.Clone(runs)
	slices.SortFunc(runs, func(a, b Run) int { return cmp.Or(a.Wall.Compare(b.Wall), strings.Compare(a.ID, b.ID)) })
	d := Decision{Delete: []Deletion{}, Kept: []Kept{}, Held: []Kept{}}
	for _, r := range runs {
		d.Bytes += r.Bytes
	}
	excess := func() (bytes int64, why string) {
		if over := d.Bytes - d.Frees - int64(p.KeepGB*gb); p.KeepGB > 0 && over > 0 {
			bytes, why = over, fmt.Sprintf("the runs take more than %g GB", p.KeepGB)
		}
		if lack := int64(p.KeepFreeGB*gb) - free - d.Frees; p.KeepFreeGB > 0 && lack > bytes {
			bytes, why = lack, fmt.Sprintf("less than %g GB are free", p.KeepFreeGB)
		}
		return bytes, why
	}
	for _, r := range runs {
		if r.Needed != "" && r.Evidence > 0 {
			d.Held = append(d.Held, Kept{r.ID, r.Evidence, r.Needed})
		}
		_, why := excess()
		if aged && p.KeepDays > 0 && now.Sub(r.Wall) > time.Duration(p.KeepDays)*day {
			why = fmt.Sprintf("older than %d days", p.KeepDays)
		}
		switch {
		case why == "" || r.Evidence == 0:
		case r.Needed != "":
			d.Kept = append(d.Kept, Kept{r.ID, r.Evidence, r.Needed})
		default:
			d.Delete = append(d.Delete, Deletion{r.ID, r.Wall, r.Evidence, why})
			d.Frees += r.Evidence
		}
	}
	d.Short, _ = excess()
	return d
}
