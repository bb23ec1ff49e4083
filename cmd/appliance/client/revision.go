package client

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// RevisionMark stands in a plan for the revision that is loaded.
const RevisionMark = "{revision}"

// armFields are the fields in which the arms of a run may differ.
func armFields() []string {
	return []string{"page", "archive", "link", "match", "browser", "state", "inject"}
}

// Marked lists the fields of the plan in which [RevisionMark] stands.
func (r *Request) Marked() (fields []string) {
	for name, value := range r.body {
		if !reflect.DeepEqual(value, replaced(value, "")) {
			fields = append(fields, name)
		}
	}
	slices.Sort(fields)
	return fields
}

// CheckRevisions returns an error unless the plan can be carried out with any two revisions as its arms.
func (r *Request) CheckRevisions() error {
	for _, list := range []string{"pages", "users"} {
		if r.body[list] != nil {
			return fmt.Errorf("%s: %s: a bisect's plan is of one page: take the one that changed", r.file, list)
		}
	}
	if r.Compares() {
		return fmt.Errorf("%s: treatment: a bisect's plan has one arm, and each revision takes its place", r.file)
	}
	marked := r.Marked()
	for _, name := range marked {
		if !slices.Contains(armFields(), name) {
			return fmt.Errorf("%s: %s: %s may stand in %s only, in which the arms of a run can differ", r.file, name, RevisionMark,
				strings.Join(armFields(), ", "))
		}
	}
	if r.body["archive"] != nil && len(marked) == 0 {
		return fmt.Errorf("%s: archive: all revisions would be loaded from the same recording: write %s into its name and let the command "+
			"make it, or leave it out, so that each revision is recorded after it was deployed", r.file, RevisionMark)
	}
	return nil
}

// Records says whether each revision has to be recorded: the plan names no recording.
func (r *Request) Records() bool { return r.body["archive"] == nil }

// Of returns the request for one revision.
func (r *Request) Of(revision string) *Request {
	body, _ := replaced(r.body, revision).(map[string]any)
	return &Request{body: body, file: r.file, text: r.text}
}

// Between returns the request for a comparison of two revisions.
func (r *Request) Between(control, treatment string) *Request {
	out, other := r.Of(control), r.Of(treatment)
	for _, name := range armFields() {
		if value := other.body[name]; value != nil && !reflect.DeepEqual(value, out.body[name]) {
			out.Set("treatment."+name, value)
		}
	}
	return out
}

// replaced is a copy of a value with the revision in place of its marks.
func replaced(value any, revision string) any {
	switch v := value.(type) {
	case string:
		return strings.ReplaceAll(v, RevisionMark, revision)
	case map[string]any:
		out := map[string]any{}
		for name, one := range v {
			out[name] = replaced(one, revision)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, one := range v {
			out[i] = replaced(one, revision)
		}
		return out
	}
	return value
}
