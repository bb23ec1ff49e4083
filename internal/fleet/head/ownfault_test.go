package head

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"eidetic/internal/fleet"
	"eidetic/internal/fleet/blob"
	"eidetic/internal/fleet/ledger"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// faultyBlobs is a store that opens nothing.
type faultyBlobs struct {
	*blob.Folder
	err error
}

func (b faultyBlobs) Open(context.Context, string) (blob.Blob, error) { return nil, b.err }

// overFolder is a head over a ledger, with blobs in a folder.
func overFolder(t *testing.T, l *ledger.Ledger) *Head {
	t.Helper()
	dir := t.TempDir()
	runs, err := store.Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = runs.Close() }) // nothing is written at the end
	blobs, err := blob.OpenFolder(filepath.Join(dir, "files"))
	if err != nil {
		t.Fatal(err)
	}
	h, err := Over(l, Config{Data: dir, Blobs: blobs, Store: runs})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// A fault of the head's own disk or store is not counted against a run whose parts are whole; one of what a box handed
// in is.
func TestOwnFaultsEndNoRun(t *testing.T) {
	for _, c := range []struct {
		err  error
		away bool
	}{
		{blob.ErrNoRoom, true}, {blob.ErrRefused, true}, {syscall.ENOSPC, true}, {syscall.EDQUOT, true}, {syscall.EROFS, true}, {fs.ErrPermission, true},
		{blob.ErrNotFound, false}, {blob.ErrDigest, false}, {errors.New("hostile"), false},
	} {
		h := overFolder(t, nil)
		h.Blobs = faultyBlobs{h.Blobs.(*blob.Folder), fmt.Errorf("open: %w", c.err)}
		files := []fleet.File{{Path: "run.json", Bytes: 1, SHA256: strings.Repeat("ab", 32)}}
		part := ledger.Part{ID: "r1", Run: "r1", State: store.StateDone, Outcome: &fleet.Outcome{State: store.StateDone, Files: files}}
		_, err := h.assemble(t.Context(), ledger.Run{ID: "r1", Parts: []ledger.Part{part}})
		var away *lab.AwayError
		if !errors.Is(err, c.err) || errors.As(err, &away) != c.away {
			t.Errorf("assemble() with %v = %v; want that it is away: %v", c.err, err, c.away)
		}
	}
}
