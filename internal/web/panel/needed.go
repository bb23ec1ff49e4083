package panel

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"eidetic/internal/lab"
)

// inUse says what replays a recording now, or will for certain: a run that waits or goes on, a bisect, or a suite. The recording
// is an upload, or that of a run. The answer is "" if nothing does.
func (p *Panel) inUse(ctx context.Context, name string) (string, error) {
	if why, err := p.heldBy(ctx, name); why != "" || err != nil {
		return why, err
	}
	jobs, err := p.queue.List(ctx)
	if err != nil {
		return "", err
	}
	for _, j := range jobs {
		if inQueue(j.State) && p.replays(j.Plan, name) {
			return "run " + j.ID + " replays it: wait for its end, or cancel it", nil
		}
	}
	return "", nil
}

// heldBy says what replays a recording again and again: a bisect, or a suite.
func (p *Panel) heldBy(ctx context.Context, name string) (string, error) {
	return firstOf(ctx, p.held, name)
}

// firstOf is the first reason that is given for a recording or a run.
func firstOf(ctx context.Context, all []func(context.Context, string) (string, error), name string) (string, error) {
	for _, ask := range all {
		if why, err := ask(ctx, name); why != "" || err != nil {
			return why, err
		}
	}
	return "", nil
}

// usedBy says what uses a recording, or "" without one.
func usedBy(format, id string) string {
	if id == "" {
		return ""
	}
	return fmt.Sprintf(format, id)
}

// neededBy says what a recording is needed for under its name: its use, or a workflow. It is "" if nothing needs it.
func (p *Panel) neededBy(ctx context.Context, name string) (string, error) {
	if why, err := p.inUse(ctx, name); why != "" || err != nil {
		return why, err
	}
	return firstOf(ctx, p.kept, name)
}

// replays says whether a plan replays a recording. The queue has the path of the file in place of the name.
func (p *Panel) replays(plan lab.Plan, name string) bool {
	return slices.ContainsFunc(plan.Archives(), func(one string) bool {
		if one == name {
			return true
		}
		if !filepath.IsAbs(one) {
			return false
		}
		folder := filepath.Dir(one)
		return filepath.Base(one) == name || filepath.Base(one) == recordingName && folder == filepath.Join(p.Store.Root(), "runs", name)
	})
}

// free returns an error, 409, for a recording that is needed as check says.
func (p *Panel) free(ctx context.Context, name string, check func(context.Context, string) (string, error)) error {
	why, err := check(ctx, name)
	if err != nil {
		return p.toHTTPError(err)
	}
	if why != "" {
		return huma.NewError(http.StatusConflict, fmt.Sprintf("the recording %s is needed: %s", clip(name), why))
	}
	return nil
}

func (p archiveFeature) removeArchive(ctx context.Context, in *nameInput) (*struct{}, error) {
	if err := p.free(ctx, in.Name, p.neededBy); err != nil {
		return nil, err
	}
	return nil, p.toHTTPError(p.Archives.Remove(in.Name))
}
