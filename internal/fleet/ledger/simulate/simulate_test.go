package simulate

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"eidetic/internal/fleet/ledger"
	"eidetic/internal/testlab"
)

func TestMain(m *testing.M) { testlab.NoLeaks(m) }

// TestFleetSimulation is a small fleet over a bad network: every run ends exactly once.
func TestFleetSimulation(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*testlab.Hang) // some thousand calls, under the race detector
	defer cancel()
	database := filepath.Join(t.TempDir(), "fleet.db")
	r, err := Run(ctx, Options{
		Boxes: 20, Runs: 400, Needs: 30, Series: 5, Faults: 0.01, Delay: 100 * time.Millisecond, Work: 10 * time.Millisecond,
		RestartAfter: 90, Seed: 1,
		Open: func(ctx context.Context, assemble func(context.Context, ledger.Run) (ledger.Assembled, error)) (*ledger.Ledger, error) {
			return ledger.Open(ctx, ledger.Config{Database: database, Lease: 5 * time.Second, Assemble: assemble})
		},
	})
	if err != nil || r.Ended != 400 || r.Twice != 0 || r.Lost != 0 {
		t.Errorf("Run() ended %d, %d twice, lost %d: %v; want 400, 0, 0, nil", r.Ended, r.Twice, r.Lost, err)
	}
	if r.Faulty == 0 || r.Restarts == 0 || len(r.Claims) < 400 {
		t.Errorf("Run() had %d faults, %d restarts and %d claims; want some of each, and a claim a run", r.Faulty, r.Restarts, len(r.Claims))
	}
	t.Logf("%d calls, %d of them faulty, %d restarts, %d parts given again, %v", r.Calls, r.Faulty, r.Restarts, r.Again, r.Took)
}
