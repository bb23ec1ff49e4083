package simulate

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"eidetic/internal/fleet/member"
	"eidetic/internal/rigs/testlab"
)

func TestMain(m *testing.M) { testlab.NoLeaks(m) }

// TestFleetSimulation is a small fleet that calls its head over TLS and a bad network: every run ends exactly once.
func TestFleetSimulation(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*testlab.Hang) // some thousand calls, under the race detector
	defer cancel()
	dir := t.TempDir()
	r, err := Run(ctx, Options{
		Boxes: 20, Runs: 200, Needs: 30, Series: 5, Faults: 0.02, Delay: 100 * time.Millisecond, Work: 10 * time.Millisecond,
		RestartAfter: 70, Seed: 1, Dir: dir, Database: filepath.Join(dir, "fleet.db"), Lease: 5 * time.Second,
		Times: member.Times{Describe: 200 * time.Millisecond, Claim: time.Second, Call: time.Minute},
	})
	if err != nil || r.Ended != 200 || r.Twice != 0 || r.Lost != 0 {
		t.Errorf("Run() ended %d, %d twice, lost %d: %v; want 200, 0, 0, nil", r.Ended, r.Twice, r.Lost, err)
	}
	if r.Faulty == 0 || r.Restarts == 0 || len(r.Claims)+len(r.Woken) < 200 {
		t.Errorf("Run() had %d faults, %d restarts and %d claims; want some of each, and a claim a run", r.Faulty, r.Restarts, len(r.Claims)+len(r.Woken))
	}
	t.Logf("%d calls, %d of them faulty, %d failed, %d restarts, %d parts given again, %v after %v of joining",
		r.Calls, r.Faulty, r.Failed, r.Restarts, r.Again, r.Took, r.Joined)
}
