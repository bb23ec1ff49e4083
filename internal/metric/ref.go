package metric

import (
	"slices"
	"strings"
)

// RegionMark stands between the name of a metric and that of its region.
const RegionMark = "@"

// Ref is a metric as a run names it: STEP/NAME@REGION, without a step for a load, and without a region for the
// content area.
type Ref struct {
	ID     ID     // 0 for a name that is not in the registry
	Step   string // path of the step
	Name   string // without step and region
	Region string
}

// Parse takes the name of a measurement apart. A step's path may hold a RegionMark, and a region's name a slash:
// the metric is the first that the registry has.
func Parse(name string) Ref {
	for i := range len(name) + 1 {
		if i < len(name) && name[i] != RegionMark[0] {
			continue
		}
		r := split(name[:i])
		if r.ID != 0 {
			r.Region = strings.TrimPrefix(name[i:], RegionMark)
			return r
		}
	}
	return split(name)
}

// split takes apart what stands before a region.
func split(name string) Ref {
	i := strings.LastIndexByte(name, '/')
	r := Ref{Step: name[:max(0, i)], Name: name[i+1:]}
	r.ID, _ = Named(r.Name)
	return r
}

// OfStep returns the name of the metric where it is measured of a step.
func (m ID) OfStep(path string) string { return path + "/" + m.String() }

// OfRegion returns the name of the metric where it is measured of a region.
func (m ID) OfRegion(region string) string { return m.String() + RegionMark + region }

// Entry returns what is known of the metric. One that is not in the registry has its name as its label.
func (r Ref) Entry() Entry {
	if r.ID != 0 {
		return r.ID.Entry()
	}
	return Entry{Name: r.Name, Label: r.Name, Better: Neither}
}

// Label returns the name for people, with step and region.
func (r Ref) Label() string {
	label := r.Entry().Label
	if r.Region != "" {
		label += " (" + r.Region + ")"
	}
	if r.Step != "" {
		label = r.Step + ": " + label
	}
	return label
}

// IsGuard says whether verdicts rest on the metric without being asked to: a guard of a load, or one of a step.
func (r Ref) IsGuard() bool {
	e := r.Entry()
	return e.Guard && r.Region == "" && (e.Scope == OfStep) == (r.Step != "")
}

// IsGuardOf says whether verdicts rest on the metric, by itself or because a plan asks for it by NAME or
// NAME@REGION, of a load or of any step.
func (r Ref) IsGuardOf(asked []string) bool {
	name := r.Name
	if r.Region != "" {
		name += RegionMark + r.Region
	}
	return r.IsGuard() || slices.Contains(asked, name)
}

// Label returns the name for people of a measurement's metric.
func Label(name string) string { return Parse(name).Label() }

// IsGuard says whether verdicts rest on a measurement's metric without being asked to.
func IsGuard(name string) bool { return Parse(name).IsGuard() }

// GuardPlace is the index of a measurement's metric in Guards; their number for every other metric.
func GuardPlace(name string) int {
	guards := Guards()
	if i := slices.IndexFunc(guards, func(m ID) bool { return m.String() == name }); i >= 0 {
		return i
	}
	return len(guards)
}
