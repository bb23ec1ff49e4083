package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/parser"

	"eidetic/internal/lab"
)

// Plan returns the request as a plan, with the defaults of what was left out.
func (r *Request) Plan() (lab.Plan, error) {
	text, err := r.Body()
	if err != nil {
		return lab.Plan{}, err
	}
	var p lab.Plan
	if err := json.Unmarshal(text, &p); err != nil {
		return p, err
	}
	return p.WithDefaults(), nil
}

// FirstOpens says whether the first step of the request opens a page, or starts the browser with one.
func (r *Request) FirstOpens() bool {
	steps, _ := r.body["steps"].([]any)
	if len(steps) == 0 {
		return false
	}
	first, _ := steps[0].(map[string]any)
	return first["open"] != nil || first["launch"] != nil
}

// HasPages says whether the request has a list of pages.
func (r *Request) HasPages() bool {
	pages, _ := r.body["pages"].([]any)
	return len(pages) > 0
}

// fieldError is the beginning of an error of a plan's field: "link of the control: …".
var fieldError = regexp.MustCompile(`^([a-z_]+)(?: of the (control|treatment))?:`)

// LocateError adds file and line of the plan's field to an error that names one, with the lines
// around it.
func (r *Request) LocateError(err error) error {
	path := ""
	var step *lab.StepError
	if errors.As(err, &step) {
		path = step.Path
	} else if m := fieldError.FindStringSubmatch(err.Error()); m != nil {
		if path = m[1]; m[2] == lab.Treatment {
			path = "treatment." + path
		}
	}
	if r.text == nil || path == "" {
		return err
	}
	for ; path != ""; path = parent(path) { // a field that is missing is looked for in its parent
		field, ferr := yaml.PathString("$." + path)
		if ferr != nil {
			continue
		}
		file, ferr := parser.ParseBytes(r.text, 0)
		if ferr != nil {
			return err
		}
		node, ferr := field.FilterFile(file)
		if ferr != nil || node == nil || node.GetToken() == nil {
			continue
		}
		source, ferr := field.AnnotateSource(r.text, false)
		if ferr != nil {
			continue
		}
		return fmt.Errorf("%s:%d: %w\n%s", r.file, node.GetToken().Position.Line, err, source)
	}
	return fmt.Errorf("%s: %w", r.file, err)
}

// parent is the path without its last element.
func parent(path string) string {
	i := strings.LastIndexAny(path, ".[")
	if i < 0 {
		return ""
	}
	return path[:i]
}
