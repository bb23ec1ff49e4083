package archive

import (
	"fmt"
	"strings"

	"eidetic/internal/lab"
)

// fieldReader collects the fields of one header from its lines.
type fieldReader struct {
	budget *budget
	raw    bool // names stay as they are, as in a message of HTTP
	fields []lab.HeaderField
	value  []byte // of the last field, once lines continue it
	lines  int
	cost   int64 // taken from the budget
}

// line takes a line that is not empty; ok is false for one that is no field.
func (r *fieldReader) line(text string) (ok bool, err error) {
	if r.lines++; r.lines > maxFields {
		return false, fmt.Errorf("a header of more than %d lines: %w", maxFields, errLimit)
	}
	cost := int64(fieldCost + len(text))
	r.cost += cost
	if err := r.budget.take(cost); err != nil {
		return false, err
	}
	last := len(r.fields) - 1
	if (text[0] == ' ' || text[0] == '\t') && last >= 0 { // folded
		if r.value == nil {
			r.value = []byte(r.fields[last].Value)
		}
		r.value = append(append(r.value, ' '), strings.TrimSpace(text)...)
		return true, nil
	}
	r.join()
	name, value, ok := strings.Cut(text, ":")
	if !ok || r.raw && name == "" {
		return false, nil
	}
	if !r.raw {
		name = strings.TrimSpace(name)
	}
	r.fields = append(r.fields, lab.HeaderField{Name: name, Value: strings.TrimSpace(value)})
	return true, nil
}

// join ends the last field.
func (r *fieldReader) join() {
	if r.value != nil {
		r.fields[len(r.fields)-1].Value = strings.TrimSpace(string(r.value))
		r.value = nil
	}
}

// done returns the fields.
func (r *fieldReader) done() []lab.HeaderField {
	r.join()
	return r.fields
}
