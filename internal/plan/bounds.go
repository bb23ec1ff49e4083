package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"eidetic/internal/lab"
)

// schemas returns the schema of a plan, made of the tags, and those of what it consists of.
var schemas = sync.OnceValues(func() (*huma.Schema, huma.Registry) {
	known := huma.NewMapRegistry("#/", huma.DefaultSchemaNamer)
	return known.Schema(reflect.TypeFor[lab.Plan](), true, ""), known
})

// Problems tells which fields are out of their bounds, of another type, or none of a plan's: the bounds are the tags of
// [lab.Plan].
func (r Request) Problems() []*lab.FieldError {
	fields, err := r.fields()
	if err != nil {
		return []*lab.FieldError{{Path: "plan", Err: err}}
	}
	result := &huma.ValidateResult{}
	schema, known := schemas()
	huma.Validate(known, schema, huma.NewPathBuffer(nil, 0), huma.ModeWriteToServer, plainPlan(fields), result)
	problems := make([]*lab.FieldError, 0, len(result.Errors))
	for _, err := range result.Errors {
		var detail *huma.ErrorDetail
		if errors.As(err, &detail) {
			problems = append(problems, &lab.FieldError{Path: detail.Location, Err: errors.New(withValue(detail))})
		}
	}
	return problems
}

// withValue is the message of a problem, with the value that has it.
func withValue(problem *huma.ErrorDetail) string {
	if list, ok := problem.Value.([]any); ok {
		if most, ok := strings.CutPrefix(problem.Message, "expected array length <= "); ok {
			name := problem.Location[strings.LastIndexByte(problem.Location, '.')+1:]
			text := fmt.Sprintf("%d %s; at most %s", len(list), name, most)
			if name == "pages" || name == "users" {
				text += " in a run: divide the plan"
			}
			return text
		}
	}
	return InWords(problem.Message) + shown(problem.Value)
}

// InWords is a message of the validator as people are told it.
func InWords(message string) string {
	for _, w := range wording() {
		rest, ok := strings.CutPrefix(message, w.theirs)
		if ok && (rest == "" || strings.Contains(w.ours, "…")) {
			return strings.Replace(w.ours, "…", strings.Trim(rest, `"`), 1)
		}
	}
	return message
}

// wording says how the validator's messages begin, the longer of two beginnings first, and what people are told.
func wording() []struct{ theirs, ours string } {
	return []struct{ theirs, ours string }{
		{"expected number >= ", "must be at least …"},
		{"expected number > ", "must be more than …"},
		{"expected number <= ", "must be at most …"},
		{"expected number < ", "must be less than …"},
		{"expected number to be a multiple of ", "must be a multiple of …"},
		{"expected number", "must be a number"},
		{"expected integer", "must be a whole number"},
		{"expected boolean", "must be true or false"},
		{"expected length >= 1", "must not be empty"}, // not 10
		{"expected length >= ", "must have at least … characters"},
		{"expected length <= ", "must have at most … characters"},
		{"expected array length >= ", "must have at least … entries"},
		{"expected array length <= ", "must have at most … entries"},
		{"expected array items to be unique", "must not have an entry twice"},
		{"expected array", "must be a list"},
		{"expected object", "must have fields of its own"},
		{"expected value to be one of ", "must be one of …"},
		{"expected string to match pattern ", "must match …"},
		{"expected string to be RFC 3339 date-time", "must be a date and time, such as 2026-05-06T07:08:09Z"},
		{"expected string to be ", "must be …"},
		{"expected string", "must be a text"},
		{"unexpected property", "there is no such field"},
	}
}

// shown is a value that fits into a message.
func shown(value any) string {
	switch v := value.(type) {
	case float64, bool:
		return fmt.Sprintf(" (it is %v)", v)
	case string:
		if len(v) <= 100 {
			return fmt.Sprintf(" (it is %q)", v)
		}
	}
	return ""
}

// plainPlan is plain of a plan.
func plainPlan(fields map[string]any) any {
	schema, known := schemas()
	return plain(fields, schema, known)
}

// plain is a value with the numbers that the validator knows, and with the name of a browser or an app, where its schema
// has one, as the object that it is short for: of two schemas that a value may have, the validator would only say that
// it has neither. What has no schema is nil there.
func plain(value any, schema *huma.Schema, known huma.Registry) any {
	if schema == nil {
		schema = &huma.Schema{}
	}
	if schema.Ref != "" {
		schema = known.SchemaFromRef(schema.Ref)
	}
	switch v := value.(type) {
	case json.Number:
		n, err := v.Float64()
		if err != nil {
			return v.String()
		}
		return n
	case string:
		if named := known.Map(); schema == named["Browser"] || schema == named["App"] {
			return map[string]any{"name": v}
		}
	case map[string]any:
		for name := range v {
			v[name] = plain(v[name], schema.Properties[name], known)
		}
	case []any:
		for i := range v {
			v[i] = plain(v[i], schema.Items, known)
		}
	}
	return value
}

// NamePrograms lets the schemas of a browser and an app be names, too, as [lab.Browser] and [lab.App] read them.
func NamePrograms(known huma.Registry) {
	for name, short := range map[string]huma.Schema{
		"Browser": {Description: "chromium, firefox or firefox-esr", Examples: []any{lab.FirefoxESR}},
		"App":     {Description: "a name under apps: in the configuration", Examples: []any{"editor"}},
	} {
		schema := known.Map()[name]
		object, most := *schema, 40
		short.Type, short.MaxLength = huma.TypeString, &most
		*schema = huma.Schema{
			Description: "A name, or an object that says which program is started and how", OneOf: []*huma.Schema{&short, &object},
		}
		for _, s := range append(schema.OneOf, schema) {
			s.PrecomputeMessages()
		}
	}
}

func fieldError(path, format string, args ...any) error {
	return &lab.FieldError{Path: path, Err: fmt.Errorf(format, args...)}
}
