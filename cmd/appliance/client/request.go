package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"eidetic/internal/lab"

	"eidetic/internal/base/yamlguard"
	"github.com/goccy/go-yaml"
)

// Request is a plan as far as somebody wrote it: a field that is left out is the
// box's choice, and the values are the box's to judge. So it keeps the fields that
// were written, and not a lab.Plan, in which a 0 that was written and a field that
// was not are the same.
type Request struct {
	body map[string]any
	file string // that the plan came from; empty without one
	text []byte // of the file
}

// maxPlan bounds a plan's file.
const maxPlan = 64 << 10

// NewRequest returns a request without a field.
func NewRequest() *Request { return &Request{body: map[string]any{}} }

// ReadRequest reads a plan's file, in YAML or JSON. A field that there is not, or of
// the wrong type, is an error that names file, line and field.
func ReadRequest(file string) (*Request, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxPlan+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxPlan {
		return nil, fmt.Errorf("%s: more than %d KiB", file, maxPlan>>10)
	}
	return parseRequest(file, text)
}

func parseRequest(file string, text []byte) (*Request, error) {
	r := &Request{file: file, text: text}
	var checked lab.Plan
	err := yamlguard.Try(func() error {
		return cmp.Or(yaml.UnmarshalWithOptions(text, &checked, yaml.Strict()), yaml.Unmarshal(text, &r.body))
	})
	if err != nil && !errors.Is(err, io.EOF) { // io.EOF: a file without a value
		return nil, fmt.Errorf("%s: %s", file, yaml.FormatError(err, false, true))
	}
	if r.body == nil {
		r.body = map[string]any{}
	}
	if len(checked.Steps) > 0 {
		if err := r.typed("steps", checked.Steps); err != nil {
			return nil, err
		}
	}
	if len(checked.Pages) > 0 {
		if err := r.typed("pages", checked.Pages); err != nil {
			return nil, err
		}
	}
	if len(checked.Users) > 0 {
		if err := r.typed("users", checked.Users); err != nil {
			return nil, err
		}
	}
	if checked.Measure != nil {
		return r, r.typed("measure", checked.Measure)
	}
	return r, nil
}

// typed writes a field as its type has it: in YAML "scroll: 5" and "tolerance: 6" are numbers, and
// in the request texts.
func (r *Request) typed(field string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var plain any
	if err := json.Unmarshal(text, &plain); err != nil {
		return err
	}
	r.body[field] = plain
	return nil
}

// arm returns the map of the treatment, or of the whole request, which is the
// control; nil is a treatment that there is not.
func (r *Request) arm(treatment bool) map[string]any {
	if !treatment {
		return r.body
	}
	arm, _ := r.body["treatment"].(map[string]any) // the type was checked
	return arm
}

// arms lists whatever can name a recording: the control, the treatment, and those of each page.
func (r *Request) arms() []map[string]any {
	all := []map[string]any{r.arm(false), r.arm(true)}
	pages, _ := r.body["pages"].([]any)
	for _, p := range pages {
		if entry, ok := p.(map[string]any); ok {
			all = append(all, entry)
			if t, ok := entry["treatment"].(map[string]any); ok {
				all = append(all, t)
			}
		}
	}
	return all
}

// Set sets a field of the plan: "link", or "treatment.link".
func (r *Request) Set(field string, value any) {
	name, ofTreatment := strings.CutPrefix(field, "treatment.")
	arm := r.arm(ofTreatment)
	if arm == nil {
		arm = map[string]any{}
		r.body["treatment"] = arm
	}
	arm[name] = value
}

// Page returns the page of the control, or "".
func (r *Request) Page() string {
	page, _ := r.body["page"].(string)
	return page
}

// File is the file that the plan came from, or "".
func (r *Request) File() string { return r.file }

// Compares says whether there is a treatment.
func (r *Request) Compares() bool {
	if r.body["treatment"] != nil {
		return true
	}
	pages, _ := r.body["pages"].([]any)
	for _, p := range pages {
		if entry, _ := p.(map[string]any); entry["treatment"] != nil {
			return true
		}
	}
	return false
}

// Body returns the request in JSON.
func (r *Request) Body() ([]byte, error) { return json.Marshal(r.body) }

// Locate adds to a refusal of a field the lines of the plan's file around that field.
// A refusal of anything else stays as it is.
func (r *Request) Locate(refused *RefusedError) *RefusedError {
	if r.text == nil || !regexp.MustCompile(`^[a-z_]+(\.[a-z_]+)?$`).MatchString(refused.Field) {
		return refused
	}
	field, err := yaml.PathString("$." + refused.Field)
	if err != nil {
		return refused
	}
	source, err := field.AnnotateSource(r.text, false)
	if err != nil { // the field was set by a flag
		return refused
	}
	located := *refused
	located.Detail = fmt.Sprintf("%s: %s\n%s", r.file, refused.Detail, source)
	return &located
}

// SetFiles sends files with the plan, by the names that the plan has for them.
func (r *Request) SetFiles(files map[string][]byte) {
	if len(files) > 0 {
		r.body["files"] = files
	}
}

// ErrNoArchive says that the path of a recording leads to no file.
var ErrNoArchive = errors.New("there is no such file here, and a recording on the box has a name without slashes") // constant

// UploadArchives uploads the recordings of a request that are files here, and puts
// their names on the box into the request. starts is called before each upload.
func (c *Client) UploadArchives(ctx context.Context, r *Request, starts func(file, name string, size int64)) error {
	for _, arm := range r.arms() {
		file, _ := arm["archive"].(string)
		if file == "" {
			continue
		}
		info, err := os.Stat(file)
		switch {
		case err == nil && info.Mode().IsRegular():
		case strings.ContainsRune(file, filepath.Separator):
			return fmt.Errorf("archive %q: %w", file, ErrNoArchive)
		default:
			continue // a name on the box
		}
		name, err := c.UploadArchive(ctx, file, func(name string, size int64) { starts(file, name, size) })
		if err != nil {
			return fmt.Errorf("archive %s: %w", file, err)
		}
		arm["archive"] = name
	}
	return nil
}
