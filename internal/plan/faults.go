package plan

import (
	"errors"
	"slices"
	"strings"

	"eidetic/internal/base/bounded"
	"eidetic/internal/lab"
)

// mostFaults bounds what a form is told at once.
const mostFaults = 50

// Faults lists what is wrong with a plan, each fault at its field, so that a form can show all of them at once. Files
// that the plan names are not looked at. Where it lists nothing, Check has no error for what the plan itself says.
func Faults(r Request, o Options) []*lab.FieldError {
	all := r.Problems()
	rest, canRead := r.without(all)
	add := func(err error) {
		var one *lab.FieldError
		if errors.As(err, &one) && !isKnown(all, one) {
			all = append(all, one)
		}
	}
	add(r.Allowed(o.Scope))
	if canRead {
		_, err := read(rest, o)
		for _, one := range parted(err) {
			add(one)
		}
	}
	return all[:min(len(all), mostFaults)]
}

// isKnown says whether a fault was told: at its field, at one that the field is part of, or at the control, from which
// the treatment has it.
func isKnown(all []*lab.FieldError, one *lab.FieldError) bool {
	return slices.ContainsFunc(all, func(told *lab.FieldError) bool {
		return one.Path == told.Path || strings.HasPrefix(one.Path, told.Path+".") || strings.HasPrefix(one.Path, told.Path+"[") ||
			one.Path == "treatment."+told.Path && one.Err.Error() == told.Err.Error()
	})
}

// without is the request without the fields that are out of their bounds, so that the others can be judged. It is false
// where these cannot be left out: a list bounds what is gone through, and without one of its elements the plan is
// another.
func (r Request) without(faults []*lab.FieldError) (Request, bool) {
	if len(faults) == 0 {
		return r, true
	}
	fields, err := r.fields()
	if err != nil {
		return r, false
	}
	for _, fault := range faults {
		path := bounded.Elements(fault.Path)
		if len(path) == 0 || slices.Contains([]string{"plan", "steps", "pages", "users", "files"}, path[0]) {
			return r, false
		}
		at := fields
		for len(path) > 1 {
			inner, ok := at[path[0]].(map[string]any)
			if !ok { // an element of a list, or a browser's name
				break
			}
			at, path = inner, path[1:]
		}
		delete(at, path[0])
	}
	rest, err := requestOf(fields)
	return rest, err == nil
}

// parted lists the errors that were joined.
func parted(err error) (all []error) {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	for _, one := range joined.Unwrap() {
		all = append(all, parted(one)...)
	}
	return all
}
