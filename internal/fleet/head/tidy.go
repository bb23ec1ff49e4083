package head

import (
	"context"
	"time"

	"eidetic/internal/fleet/blob"
)

const (
	// tidyPeriod is how often what nobody needs is looked for.
	tidyPeriod = time.Hour
	// youngBlob is how long a blob may be there before something refers to it: a box hands trials in before it lists
	// them.
	youngBlob = 2 * blob.MinGrace
	// retained is how long a head waits before it looks because evidence was deleted: the retention deletes that of
	// many runs at once.
	retained = 10 * time.Second
)

// keepTidy removes uploads that nobody goes on with, and blobs that no run refers to.
func (h *Head) keepTidy(ctx context.Context) {
	first := time.NewTimer(time.Minute) // not while everything starts
	defer first.Stop()
	select {
	case <-ctx.Done():
		return
	case <-first.C:
	}
	h.every(ctx, tidyPeriod, h.untidy, "files that nobody needs cannot be removed", func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(retained):
		}
		if err := h.uploads.Sweep(h.Now()); err != nil {
			return err
		}
		removed, err := blob.Collect(ctx, h.Blobs, h.needed(ctx), h.Now(), youngBlob, false, nil)
		if removed.Removed > 0 {
			h.Log.Info("files were removed that no run refers to", "files", removed.Removed, "bytes", removed.RemovedBytes)
		}
		return err
	})
}
