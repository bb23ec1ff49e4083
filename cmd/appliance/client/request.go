package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"eidetic/internal/plan"
)

// Request is a plan as far as somebody has said it: what is left out is the box's choice, and the values are the box's
// to judge.
type Request = plan.Request

// Locate adds to a refusal of a field the lines of the plan's file around that field, also where the plan is a part of
// what was asked for. A refusal of anything else stays as it is.
func (r *RefusedError) Locate(q Request) *RefusedError {
	lines := q.Excerpt(strings.TrimPrefix(r.Field, "plan."))
	if lines == "" { // such as that of a field that a flag has set
		return r
	}
	located := *r
	located.Detail = fmt.Sprintf("%s: %s\n%s", q.File(), r.Detail, lines)
	return &located
}

// ErrNoArchive says that the path of a recording leads to no file.
var ErrNoArchive = errors.New("there is no such file here, and a recording on the box has a name without slashes") // constant

// UploadArchives uploads the recordings of a request that are files here, and puts
// their names on the box into the request. starts is called before each upload.
func (c *Client) UploadArchives(ctx context.Context, r *Request, starts func(file, name string, size int64)) error {
	var err error
	r.Plan, err = r.MapArchives(func(_, file string) (string, error) {
		info, err := os.Stat(file)
		switch {
		case err == nil && info.Mode().IsRegular():
		case strings.ContainsRune(file, filepath.Separator):
			return "", fmt.Errorf("archive %q: %w", file, ErrNoArchive)
		default:
			return file, nil // a name on the box
		}
		name, err := c.UploadArchive(ctx, file, func(name string, size int64) { starts(file, name, size) })
		if err != nil {
			return "", fmt.Errorf("archive %s: %w", file, err)
		}
		return name, nil
	})
	return err
}
