package plan

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// RevisionMark stands in the plan of a bisect, in the fields in which arms can differ, for the revision that is loaded.
const RevisionMark = "{revision}"

// CheckRevisions returns an error, a *lab.FieldError, unless the plan can be carried out with any two revisions as its
// arms.
func (r Request) CheckRevisions() error {
	fields, err := r.fields()
	if err != nil {
		return err
	}
	for _, list := range []string{"pages", "users"} {
		if fields[list] != nil {
			return fieldError(list, "a bisect's plan is of one page: take the one that changed")
		}
	}
	switch {
	case fields["treatment"] != nil:
		return fieldError("treatment", "a bisect's plan has one arm, and each revision takes its place")
	case fields["looks"] != nil:
		return fieldError("looks", "a bisect decides by itself how many pairs it needs; leave looks out")
	case r.On != nil && r.On.Each != "":
		return fieldError("on.each", "a bisect compares one pair of revisions at a time: bisect for one browser; boxes share its pairs by spread")
	}
	marked := r.marked(fields)
	for _, name := range marked {
		if arm := fieldsOf[lab.Arm](); !slices.Contains(arm, name) {
			return fieldError(name, "%s may stand in %s only, in which the arms of a run can differ", RevisionMark, strings.Join(arm, ", "))
		}
	}
	if !r.Records() && len(marked) == 0 {
		return fieldError("archive", "all revisions would be loaded from the same recording: write %s into its name and make it when a revision is "+
			"deployed, or leave it out, so that each revision is recorded after it was deployed", RevisionMark)
	}
	return nil
}

// marked lists the fields of the plan in which the mark stands.
func (r Request) marked(fields map[string]any) (names []string) {
	for name, value := range fields {
		if !reflect.DeepEqual(value, replaced(value, "")) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// fieldsOf are the names of a type's fields in JSON.
func fieldsOf[T any]() (names []string) {
	for f := range reflect.TypeFor[T]().Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "-" {
			names = append(names, name)
		}
	}
	return names
}

// Records says whether each revision has to be recorded: the plan names no recording.
func (r Request) Records() bool { return r.Archive == "" }

// Metric is what a bisect looks at unless it is told.
func (r Request) Metric() string {
	if len(r.Steps) > 0 {
		return metric.Journey.String()
	}
	return metric.SpeedIndex.String()
}

// Of is the request for one revision.
func (r Request) Of(revision string) (Request, error) {
	fields, err := r.fields()
	if err != nil {
		return r, err
	}
	marked, _ := replaced(fields, revision).(map[string]any)
	out, err := requestOf(marked)
	out.written = r.written
	return out, err
}

// Recording is the request by which the page of a revision is recorded, and loaded once.
func (r Request) Recording(revision string) (Request, error) {
	out, err := r.Of(revision)
	out.Trials, out.Name = 1, runName("record "+revision)
	out.Warmups, out.Traces, out.Margin, out.Margins, out.Primary, out.Budgets = 0, 0, 0, nil, "", nil
	return out, err
}

// Comparison is what two revisions are compared with.
type Comparison struct {
	Control, Treatment               string // revisions
	ControlArchive, TreatmentArchive string // their recordings; empty where the plan says what is loaded
	Metric                           string // that decides
	Pairs                            int
	Seed                             uint64
}

// Between is the request for a comparison of two revisions: the treatment is what differs.
func (r Request) Between(c Comparison) (Request, error) {
	out, err := r.Of(c.Control)
	if err != nil {
		return r, err
	}
	other, err := r.Of(c.Treatment)
	if err != nil {
		return r, err
	}
	if out.Treatment, err = difference(out.Arm, other.Arm); err != nil {
		return r, err
	}
	if c.ControlArchive != "" {
		out.Archive, out.Treatment.Archive = c.ControlArchive, c.TreatmentArchive
	}
	out.Trials, out.Seed, out.Budgets = c.Pairs, c.Seed, nil
	if out.Primary == "" { // the report of each run is about what the bisect looks at
		out.Primary = c.Metric
	}
	out.Name = runName("bisect " + c.Control + " " + c.Treatment)
	return out, nil
}

// difference is what the second arm has other than the first.
func difference(a, b lab.Arm) (*lab.Arm, error) {
	first, err := Request{Plan: lab.Plan{Arm: a}}.fields()
	if err != nil {
		return nil, err
	}
	second, err := Request{Plan: lab.Plan{Arm: b}}.fields()
	if err != nil {
		return nil, err
	}
	for name, value := range first {
		if reflect.DeepEqual(value, second[name]) {
			delete(second, name)
		}
	}
	text, err := json.Marshal(second)
	if err != nil {
		return nil, err
	}
	out := &lab.Arm{}
	return out, json.Unmarshal(text, out)
}

// runName is a text as short as the name of a run may be.
func runName(text string) string {
	const most = 90
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
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
