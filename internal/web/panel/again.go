package panel

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"eidetic/internal/box/credentials"
	"eidetic/internal/keep/store"
	"eidetic/internal/plan"
)

// planFiles is the folder of a run's folder in which the files are that its plan names.
const planFiles = "files"

type againBody struct{ Body SaidPlan }

// agains registers the route of a plan that is asked for again.
func (p *Panel) agains(api huma.API) {
	huma.Register(api, huma.Operation{
		OperationID: "get-run-plan", Method: http.MethodGet, Path: "/api/v1/runs/{id}/plan", Summary: "A run's plan, to be asked for again", Tags: []string{tagRuns},
		Description: "As it can be sent to POST /api/v1/runs: without what the box noted in it and filled in, with the names of recordings, and with the files that " +
			"it names. A token of the scope read gets it without its secrets and its files.",
		Security: needsToken(), Errors: []int{http.StatusUnauthorized, http.StatusNotFound, http.StatusUnprocessableEntity},
	}, p.planAgain)
}

func (p *Panel) planAgain(ctx context.Context, in *idInput) (*againBody, error) {
	found, err := p.get(ctx, in)
	if err != nil {
		return nil, err
	}
	asked, err := plan.Again(found.Body.Plan).MapArchives(func(_, file string) (string, error) { return p.nameOf(file), nil })
	if err != nil {
		return nil, p.internalError(err)
	}
	if asked.Files == nil && identityOf(ctx).Scope.Allows(credentials.Run) && p.Store.Has(in.ID) {
		if asked.Files, err = p.filesOf(in.ID); err != nil {
			return nil, p.internalError(err)
		}
	}
	return &againBody{SaidPlan{plan.Request{Plan: asked}}}, nil
}

// nameOf is what a plan calls a recording whose file the queue has named: an upload, or the run that made it.
func (p *Panel) nameOf(file string) string {
	runs := filepath.Join(p.Store.Root(), "runs") + string(filepath.Separator)
	if id, ok := strings.CutPrefix(filepath.Dir(file), runs); ok {
		return id
	}
	if filepath.IsAbs(file) {
		return filepath.Base(file)
	}
	return file
}

// filesOf reads the files that a run's plan names, if they are no more than can be sent.
func (p *Panel) filesOf(id string) (map[string][]byte, error) {
	root, err := p.Store.Files(id)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	names, err := fs.ReadDir(root.FS(), planFiles)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	files, left := map[string][]byte{}, int64(maxPlanBody/4*3)
	for _, name := range names {
		f, _, openErr := store.OpenFile(root, planFiles+"/"+name.Name())
		if openErr != nil {
			return nil, openErr
		}
		content, readErr := io.ReadAll(io.LimitReader(f, left+1))
		if err := errors.Join(readErr, f.Close()); err != nil {
			return nil, err
		}
		if left -= int64(len(content)); left < 0 {
			return nil, errors.New("the files of its plan are too large to be sent again")
		}
		files[name.Name()] = content
	}
	return files, err
}
