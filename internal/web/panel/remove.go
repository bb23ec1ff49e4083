package panel

import (
	"context"
	"errors"
	"net/http"
	"syscall"

	"github.com/danielgtaylor/huma/v2"

	"eidetic/internal/keep/store"
)

// noSpace is the error text for a full disk.
const noSpace = "the disk is full: delete runs (DELETE /api/v1/runs/ID?files=true) or recordings (DELETE /api/v1/archives/NAME)"

// isNoSpace says whether an error means a full disk or an exhausted quota.
func isNoSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// remove deletes the files of a run that has ended.
func (p *Panel) remove(ctx context.Context, id string) error {
	if err := p.free(ctx, id, p.neededBy); err != nil {
		return err
	}
	switch why, err := firstOf(ctx, p.cited, id); {
	case err != nil:
		return p.internalError(err)
	case why != "":
		return huma.NewError(http.StatusConflict, why)
	}
	err := p.Store.Remove(id)
	for _, tell := range p.removed {
		if err == nil {
			err = tell(ctx, id)
		}
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		return huma.Error404NotFound("there is no run " + clip(id))
	case errors.Is(err, store.ErrPinned):
		return huma.NewError(http.StatusConflict, "the run is pinned: remove the pin first (DELETE /api/v1/runs/"+id+"/pin)")
	case errors.Is(err, store.ErrRead):
		return huma.NewError(http.StatusConflict, err.Error())
	case errors.Is(err, store.ErrHeld):
		return huma.NewError(http.StatusConflict, "the run goes on: cancel it first, without files=true")
	case err != nil:
		return p.internalError(err)
	}
	return nil
}
