// Package plan is what a run is asked by, from the first word to the last check: [Request] is a plan as far as somebody
// has said it, in a file, over REST, in a form or on a command line, and [Check] makes of it a [Checked], with
// everything read that it says, which is what a run is carried out by. The record of a plan, which stands in run.json,
// is [lab.Plan]; its tags are the bounds of the fields, of which the schema is made too.
package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/goccy/go-yaml"

	"eidetic/internal/base/bounded"
	"eidetic/internal/lab"
)

// Request is a plan as far as somebody has said it: a field that is left out is the choice of who carries it out. It is
// written as it was said, so that a bound is judged where it is known, and a patch of another plan removes what it says
// is null.
type Request struct {
	lab.Plan
	// rest is what was said and Plan cannot hold: a zero, which it cannot tell from a field that was left out, and what
	// no plan has, which [Request.Problems] tells.
	rest []said
	written
}

// said is the value of a field, with the names and numbers that lead to it.
type said struct {
	path  []string
	value any
}

// UnmarshalJSON implements json.Unmarshaler. Every object can be read.
func (r *Request) UnmarshalJSON(text []byte) error {
	fields, err := objectOf(text)
	if err != nil {
		return err
	}
	*r, err = requestOf(fields)
	return err
}

// MarshalJSON implements json.Marshaler.
func (r Request) MarshalJSON() ([]byte, error) {
	if len(r.rest) == 0 {
		return json.Marshal(r.Plan) // in the order of its fields
	}
	fields, err := r.fields()
	if err != nil {
		return nil, err
	}
	return json.Marshal(fields)
}

// YAML writes the request as a person does.
func (r Request) YAML() (string, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return "", err
	}
	var written []byte
	err = bounded.YAML(text, func() (err error) {
		written, err = yaml.JSONToYAML(text)
		return err
	})
	return string(bytes.TrimPrefix(written, []byte("{}\n"))), err
}

// Set says a field, such as "link" or "treatment.link", in place of what was said of it before.
func (r *Request) Set(path string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	plain, err := decode(text)
	if err != nil {
		return err
	}
	fields, err := r.fields()
	if err != nil {
		return err
	}
	assign(fields, bounded.Elements(path), plain)
	changed, err := requestOf(fields)
	r.Plan, r.rest = changed.Plan, changed.rest
	return err
}

// With is the request with the changes of another, as by a JSON Merge Patch (RFC 7396): a field that is said replaces
// that of r, and null removes it.
func (r Request) With(change Request) (Request, error) {
	fields, err := r.fields()
	if err != nil {
		return r, err
	}
	patch, err := change.fields()
	if err != nil {
		return r, err
	}
	merged, _ := mergePatch(fields, patch).(map[string]any) // two objects make one
	changed, err := requestOf(merged)
	changed.written = r.written
	return changed, err
}

// mergePatch is the function of RFC 7396, section 2.
func mergePatch(target, patch any) any {
	fields, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	out, ok := target.(map[string]any)
	if !ok {
		out = map[string]any{}
	}
	for name, value := range fields {
		if value == nil {
			delete(out, name)
		} else {
			out[name] = mergePatch(out[name], value)
		}
	}
	return out
}

// requestOf reads fields, as JSON has them.
func requestOf(fields map[string]any) (r Request, err error) {
	unread := map[string]any{}
	for name, value := range fields { // one by one, so that a value of another type is none of the others' business
		text, err := json.Marshal(map[string]any{name: value})
		if err != nil {
			return r, err
		}
		before := r.Plan
		if json.Unmarshal(text, &r.Plan) != nil {
			r.Plan, unread[name] = before, value
		}
	}
	held, err := r.fields()
	if err != nil {
		return r, err
	}
	for name, value := range unread {
		held[name] = value
		r.rest = append(r.rest, said{[]string{name}, value})
	}
	r.rest = missing(r.rest, nil, fields, held)
	return r, nil
}

// missing appends to rest what of a value is not held.
func missing(rest []said, path []string, value, held any) []said {
	at := func(name string) []string { return append(slices.Clone(path), name) }
	switch value := value.(type) {
	case map[string]any:
		has, ok := held.(map[string]any)
		if !ok { // such as a browser, which is written by its name
			return rest
		}
		for name, one := range value {
			if inner, ok := has[name]; ok {
				rest = missing(rest, at(name), one, inner)
			} else {
				rest = append(rest, said{at(name), one})
			}
		}
	case []any:
		has, _ := held.([]any)
		for i, one := range value[:min(len(value), len(has))] {
			rest = missing(rest, at(strconv.Itoa(i)), one, has[i])
		}
	}
	return rest
}

// fields are those of the request, as JSON has them.
func (r Request) fields() (map[string]any, error) {
	text, err := json.Marshal(r.Plan)
	if err != nil {
		return nil, err
	}
	fields, err := objectOf(text)
	if err != nil {
		return nil, err
	}
	for _, s := range r.rest {
		assign(fields, s.path, s.value)
	}
	return fields, nil
}

// assign puts a value where a path leads, and makes the objects on the way. What a plan that was changed since has no
// more stays away.
func assign(node any, path []string, value any) {
	switch at := node.(type) {
	case map[string]any:
		if len(path) == 1 {
			at[path[0]] = value
			return
		}
		if at[path[0]] == nil {
			at[path[0]] = map[string]any{}
		}
		assign(at[path[0]], path[1:], value)
	case []any:
		if i, err := strconv.Atoi(path[0]); err == nil && i < len(at) && len(path) > 1 {
			assign(at[i], path[1:], value)
		}
	}
}

// decode reads a value of JSON; its numbers keep their digits, as those of a seed.
func decode(text []byte) (value any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return value, d.Decode(&value)
}

// errNoObject refuses a plan that is a list or a single value.
var errNoObject = errors.New("a plan is an object with fields, such as page") // constant

func objectOf(text []byte) (map[string]any, error) {
	value, err := decode(text)
	if err != nil {
		return nil, err
	}
	fields, ok := value.(map[string]any)
	if !ok {
		return nil, errNoObject
	}
	return fields, nil
}

// IsEmpty says whether nothing was said.
func (r Request) IsEmpty() bool {
	fields, err := r.fields()
	return err == nil && len(fields) == 0
}

// Opens says whether the plan opens a page: that of the plan, that of its first step, or those of a list.
func (r Request) Opens() bool { return r.Arms()[0].Page != "" || r.FirstPage() != "" }
