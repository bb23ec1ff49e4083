// Package revplan makes the plans of a bisect's runs: out of one plan, in which a mark stands for the revision, and two
// revisions, comes the plan of the run that compares them. The plan stays as somebody wrote it, so that a field that was left out is
// the box's choice.
package revplan

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
)

// Mark stands in a plan for the revision that is loaded.
const Mark = "{revision}"

// Plan is a plan for each revision of a bisect, as JSON has it: in fields of text, [Mark] stands for the revision.
type Plan map[string]any

func fieldError(field, format string, args ...any) error {
	return &lab.StepError{Path: field, Err: fmt.Errorf(format, args...)}
}

// armFields are the fields in which the arms of a run may differ.
func armFields() []string {
	return []string{"page", "archive", "link", "match", "browser", "state", "inject"}
}

// Marked lists the fields of the plan in which [Mark] stands.
func (p Plan) Marked() (fields []string) {
	for name, value := range p {
		if !reflect.DeepEqual(value, replaced(value, "")) {
			fields = append(fields, name)
		}
	}
	slices.Sort(fields)
	return fields
}

// Check returns an error, which begins with the field, unless the plan can be carried out with any two revisions as its arms.
func (p Plan) Check() error {
	for _, list := range []string{"pages", "users"} {
		if p[list] != nil {
			return fieldError(list, "a bisect's plan is of one page: take the one that changed")
		}
	}
	if p["treatment"] != nil {
		return fieldError("treatment", "a bisect's plan has one arm, and each revision takes its place")
	}
	if p["looks"] != nil {
		return fieldError("looks", "a bisect decides by itself how many pairs it needs; leave looks out")
	}
	if on, _ := p["on"].(map[string]any); on["each"] != nil {
		return fieldError("on.each", "a bisect compares one pair of revisions at a time: bisect for one browser; boxes share its pairs by spread")
	}
	marked := p.Marked()
	for _, name := range marked {
		if !slices.Contains(armFields(), name) {
			return fieldError(name, "%s may stand in %s only, in which the arms of a run can differ", Mark, strings.Join(armFields(), ", "))
		}
	}
	if p["archive"] != nil && len(marked) == 0 {
		return fieldError("archive", "all revisions would be loaded from the same recording: write %s into its name and make it when a revision is "+
			"deployed, or leave it out, so that each revision is recorded after it was deployed", Mark)
	}
	return nil
}

// Records says whether each revision has to be recorded: the plan names no recording.
func (p Plan) Records() bool { return p["archive"] == nil }

// Metric is what a bisect looks at unless it is told.
func (p Plan) Metric() string {
	if steps, _ := p["steps"].([]any); len(steps) > 0 {
		return metric.Journey.String()
	}
	return metric.SpeedIndex.String()
}

// Of returns the plan for one revision.
func (p Plan) Of(revision string) Plan {
	out, _ := replaced(map[string]any(p), revision).(map[string]any)
	return out
}

// Recording returns the plan by which the page of a revision is recorded, and loaded once.
func (p Plan) Recording(revision string) Plan {
	out := p.Of(revision)
	out["trials"], out["name"] = 1, runName("record "+revision)
	for _, field := range []string{"warmups", "traces", "margin_percent", "primary"} {
		delete(out, field)
	}
	return out
}

// Comparison is what two revisions are compared with.
type Comparison struct {
	Control, Treatment               string // revisions
	ControlArchive, TreatmentArchive string // their recordings; empty where the plan says what is loaded
	Metric                           string // that decides
	Pairs                            int
	Seed                             uint64
}

// Between returns the plan for a comparison of two revisions.
func (p Plan) Between(c Comparison) Plan {
	out, other := p.Of(c.Control), p.Of(c.Treatment)
	arm := map[string]any{}
	for _, name := range armFields() {
		if value := other[name]; value != nil && !reflect.DeepEqual(value, out[name]) {
			arm[name] = value
		}
	}
	if c.ControlArchive != "" {
		out["archive"], arm["archive"] = c.ControlArchive, c.TreatmentArchive
	}
	out["treatment"] = arm
	out["trials"], out["seed"] = c.Pairs, c.Seed
	if primary, _ := out["primary"].(string); primary == "" { // the report of each run is about what the bisect looks at
		out["primary"] = c.Metric
	}
	out["name"] = runName("bisect " + c.Control + " " + c.Treatment)
	return out
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
		return strings.ReplaceAll(v, Mark, revision)
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
