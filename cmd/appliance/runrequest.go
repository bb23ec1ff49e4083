package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"eidetic/internal/client"
	"eidetic/internal/lab"

	"github.com/goccy/go-yaml"
)

// runRequest is what is sent, and the file that it came from.
type runRequest struct {
	body map[string]any
	file string
	text []byte
}

// maxPlan bounds a plan's file.
const maxPlan = 64 << 10

// readPlan reads a request. What is not a field, or of the wrong type, is an error that
// names file, line and field; the values are the box's to judge.
func readPlan(file string) (runRequest, error) {
	q := runRequest{body: map[string]any{}, file: file}
	f, err := os.Open(file)
	if err != nil {
		return q, fmt.Errorf("--plan: %w", err)
	}
	defer f.Close()
	if q.text, err = io.ReadAll(io.LimitReader(f, maxPlan+1)); err != nil {
		return q, fmt.Errorf("--plan: %w", err)
	}
	if len(q.text) > maxPlan {
		return q, fmt.Errorf("--plan %s: more than %d KiB", file, maxPlan>>10)
	}
	return q, q.parse()
}

func (q *runRequest) parse() error {
	var checked lab.Plan
	err := yaml.UnmarshalWithOptions(q.text, &checked, yaml.Strict())
	if err == nil {
		err = yaml.Unmarshal(q.text, &q.body)
	}
	if err != nil && !errors.Is(err, io.EOF) { // a file without a value
		return fmt.Errorf("%s: %s", q.file, yaml.FormatError(err, false, true))
	}
	if q.body == nil {
		q.body = map[string]any{}
	}
	return nil
}

// request is the plan with the flags over it.
func (c *RunCmd) request() (runRequest, error) {
	q := runRequest{body: map[string]any{}}
	if c.Plan != "" {
		var err error
		if q, err = readPlan(c.Plan); err != nil {
			return q, err
		}
	}
	set(q.body, "page", c.Page)
	set(q.body, "archive", c.Archive)
	set(q.body, "link", c.Link)
	set(q.body, "trials", c.Trials)
	set(q.body, "timing", c.Timing)
	set(q.body, "still_s", c.Still)
	set(q.body, "limit_s", c.Limit)
	set(q.body, "seed", c.Seed)
	if c.Tolerance != nil {
		q.body["tolerance_ms"] = float64(*c.Tolerance) / 1e6
	}
	set(q.body, "device", c.Device)
	set(q.body, "name", c.Name)
	treatment, _ := q.body["treatment"].(map[string]any) // its type was checked
	if treatment == nil {
		treatment = map[string]any{}
	}
	set(treatment, "page", c.TreatmentPage)
	set(treatment, "link", c.TreatmentLink)
	set(treatment, "archive", c.TreatmentArchive)
	if len(treatment) > 0 {
		q.body["treatment"] = treatment
	}
	if q.body["page"] == nil {
		return q, fmt.Errorf("%s names no page, and there is no --page URL", q.file)
	}
	return q, nil
}

func set[T any](body map[string]any, field string, value *T) {
	if value != nil {
		body[field] = *value
	}
}

// compares says whether there is a second arm.
func (q runRequest) compares() bool { return q.body["treatment"] != nil }

// where adds to what the box says is wrong with a field the line of the plan
// that it stands in, if it does.
func (q runRequest) where(refused *client.RefusedError) error {
	if q.text == nil || !regexp.MustCompile(`^[a-z_]+(\.[a-z_]+)?$`).MatchString(refused.Field) {
		return refused
	}
	field, err := yaml.PathString("$." + refused.Field)
	if err != nil {
		return refused
	}
	source, err := field.AnnotateSource(q.text, false)
	if err != nil { // it was a flag
		return refused
	}
	located := *refused
	located.Detail = fmt.Sprintf("%s: %s\n%s", q.file, refused.Detail, source)
	return &located
}

// archives uploads the recordings that are files here to the box, and puts their
// names there into the request.
func (q runRequest) archives(ctx context.Context, box *client.Client, say func(string, ...any)) error {
	arms := []map[string]any{q.body}
	if treatment, ok := q.body["treatment"].(map[string]any); ok {
		arms = append(arms, treatment)
	}
	for _, arm := range arms {
		name, _ := arm["archive"].(string)
		if name == "" {
			continue
		}
		info, err := os.Stat(name)
		switch {
		case err == nil && info.Mode().IsRegular():
		case strings.ContainsRune(name, filepath.Separator):
			return usage(fmt.Errorf("archive: %q is no file here, and no name of a recording on the box", name))
		default:
			continue
		}
		there, err := box.UploadArchive(ctx, name, func(there string, size int64) {
			say("Uploading %s (%.1f MB) to the box as %s", name, float64(size)/1e6, there)
		})
		if err != nil {
			return boxError(fmt.Errorf("archive %s: %w", name, err))
		}
		arm["archive"] = there
	}
	return nil
}
