package panel

import (
	"errors"
	"net/http"
	"syscall"

	"github.com/danielgtaylor/huma/v2"

	"eidetic/internal/store"
)

// noSpace is what is said where the disk is full.
const noSpace = "the disk is full: delete runs (DELETE /api/v1/runs/ID?files=true) or recordings (DELETE /api/v1/archives/NAME)"

// full says whether an error is that of a disk without space, or of a quota.
func full(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// remove deletes the files of a run that has ended.
func (p *Panel) remove(id string) error {
	switch err := p.Store.Remove(id); {
	case errors.Is(err, store.ErrNotFound):
		return huma.Error404NotFound("there is no run " + clip(id))
	case errors.Is(err, store.ErrHeld):
		return huma.NewError(http.StatusConflict, "the run goes on: cancel it first, without files=true")
	case err != nil:
		return p.ours(err)
	}
	return nil
}
