package head

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/internal/fleet"
	"eidetic/internal/fleet/blob"
	"eidetic/internal/fleet/ledger"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// A run of another head of which the store has lost files, as by a rule of a bucket that deletes old ones, does not hide
// the runs that ended after it.
func TestLostFilesHideNoOtherRun(t *testing.T) {
	ends := map[string][]fleet.File{}
	l, err := ledger.Open(t.Context(), ledger.Config{
		Database: filepath.Join(t.TempDir(), "fleet.db"),
		Assemble: func(_ context.Context, r ledger.Run) (ledger.Assembled, error) {
			return ledger.Assembled{State: store.StateDone, Files: ends[r.ID]}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	h := overFolder(t, l)
	for _, id := range []string{"r1", "r2", "r3"} {
		run := &lab.Run{ID: id, Wall: time.Now(), State: store.StateRunning, Trials: []*lab.Trial{}, Summary: []lab.Summary{}}
		folder, err := store.Create(t.TempDir(), run)
		if err != nil {
			t.Fatal(err)
		}
		defer folder.Close()
		run.State = store.StateDone
		if err := folder.Save(run); err != nil {
			t.Fatal(err)
		}
		files, err := (&blob.Lister{}).Manifest(t.Context(), folder.Path())
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if _, _, err := h.keep(t.Context(), filepath.Join(folder.Path(), f.Path)); err != nil {
				t.Fatal(err)
			}
		}
		lost := fleet.File{Path: "trials/001/screen.reel", Bytes: 1, SHA256: strings.Repeat("ab", 32)}
		switch id {
		case "r1": // run.json as well
			files = []fleet.File{lost}
		case "r2":
			files = append(files, lost)
		}
		ends[id] = files
	}
	code, err := l.NewCode(t.Context(), "test", codeValid)
	if err != nil {
		t.Fatal(err)
	}
	offer := fleet.Offer{Devices: []fleet.OfferedDevice{{Name: "virtual", Kind: "virtual", Ready: true}}}
	box, err := l.Join(t.Context(), code, "lab-1", "print", offer)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"r1", "r2", "r3"} {
		if _, err := l.AddRuns(t.Context(), ledger.NewRun{ID: id, Parts: []ledger.NewPart{{}}}); err != nil {
			t.Fatal(err)
		}
		a, err := l.Claim(t.Context(), ledger.Claim{BoxID: box.ID, Request: id, Free: []string{"virtual"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.End(t.Context(), ledger.Lease{BoxID: box.ID, Part: a.Part, Token: a.Token}, fleet.Outcome{State: store.StateDone}); err != nil {
			t.Fatal(err)
		}
	}
	second, third := h.Events().Listen("r2"), h.Events().Listen("r3")
	defer second.Close()
	defer third.Close()
	ctx, stop := context.WithTimeout(t.Context(), testlab.Hang)
	worked := make(chan error, 1)
	go func() { worked <- h.Work(ctx) }()
	for name, wake := range map[string]<-chan struct{}{"second": second.Wake(), "third": third.Wake()} {
		select {
		case <-wake: // the ledger assembles them in any order
		case <-ctx.Done():
			t.Errorf("the head does not show the %s run", name)
		}
	}
	stop()
	if err := <-worked; err != nil && ctx.Err() == nil {
		t.Error(err)
	}
	if h.Store.Has("r1") || !h.Store.Has("r2") || !h.Store.Has("r3") {
		t.Errorf("the head has r1: %v, r2: %v, r3: %v; want the last two", h.Store.Has("r1"), h.Store.Has("r2"), h.Store.Has("r3"))
	}
}
