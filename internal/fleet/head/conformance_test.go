package head

import (
	"path/filepath"
	"testing"
	"time"

	"eidetic/internal/fleet"
	"eidetic/internal/fleet/fleettest"
	"eidetic/internal/fleet/ledger"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/tell/report/reporttest"
)

// The head does what boxes rely on, and so does the one in memory with which boxes are tested; who is no box, or
// another one, gets nothing of a part.
func TestFleetConformance(t *testing.T) {
	fleettest.Try(t, func(t *testing.T) fleettest.Suite {
		h := newTestHead(t)
		return fleettest.Suite{
			Link: func(t *testing.T) string {
				t.Helper()
				made, err := h.Boxes().NewCode(t.Context(), "test")
				if err != nil {
					t.Fatal(err)
				}
				return made.Link
			},
			Add: func(t *testing.T) string {
				t.Helper()
				id, err := h.Add(t.Context(), lab.Plan{Name: "secret", Trials: 1, Arm: lab.Arm{Page: "https://www.shop.example/", Archive: "site.wacz"}}, store.Once{})
				if err != nil {
					t.Fatal(err)
				}
				return id
			},
			Lapse: func(t *testing.T) {
				t.Helper()
				for range 12 { // in steps, as the head lives all the time: else all leases would last anew
					h.clock.forward(20 * time.Second)
					if err := h.ledger.Sweep(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
			},
			Cancel: func(t *testing.T, part string) {
				t.Helper()
				if err := h.Cancel(t.Context(), part); err != nil {
					t.Fatal(err)
				}
			},
			Left: func(t *testing.T, a fleet.Assignment) string {
				t.Helper()
				run := reporttest.Run(1, 1)
				run.ID, run.Name, run.Plan, run.Page, run.State = a.Part, a.Plan.Name, a.Plan, a.Plan.Page, store.StateRunning
				folder, err := store.Create(t.TempDir(), run)
				if err != nil {
					t.Fatal(err)
				}
				defer folder.Close()
				if err := reporttest.Files(folder.Path(), run, reporttest.Options{}); err != nil {
					t.Fatal(err)
				}
				run.State = store.StateDone
				if err := folder.Save(run); err != nil {
					t.Fatal(err)
				}
				return folder.Path()
			},
			Want: func(t *testing.T, part, path, _ string) {
				t.Helper()
				var r ledger.Run
				h.until("the run is put together", func() (ok bool) {
					var err error
					if r, err = h.ledger.Run(t.Context(), part); err != nil {
						t.Fatal(err)
					}
					return isEnd(r.State)
				}, func() { t.Logf("the run is %s: %s", r.State, r.Error) })
				if err := h.ledger.Want(t.Context(), part, path); err != nil {
					t.Fatalf("Want(%s) of a run that is %s (%s) = %v; want nil", filepath.Base(path), r.State, r.Error, err)
				}
				h.wished.ring()
			},
			Has: func(t *testing.T, digest string) bool {
				t.Helper()
				_, has, err := h.Blobs.Has(t.Context(), digest)
				if err != nil {
					t.Fatal(err)
				}
				return has
			},
		}
	})
}
