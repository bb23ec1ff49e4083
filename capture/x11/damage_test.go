package x11_test

import (
	"context"
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"eidetic/capture/x11"
	"eidetic/internal/rigs/testlab"
)

// looksToProve is how many looks each content gets: EIDETIC_SOAK_LOOKS (make
// soak-damage), or so few that the ordinary tests have time for it.
func looksToProve(t testing.TB, few int) int {
	t.Helper()
	v := os.Getenv("EIDETIC_SOAK_LOOKS")
	if v == "" {
		return few
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		t.Fatalf("EIDETIC_SOAK_LOOKS: %q is not a number of looks", v)
	}
	return n
}

// prove fetches every picture and compares it with what the server says was drawn:
// so often, and on until there were some looks with a change and some without.
func prove(t *testing.T, display string, looks int) {
	t.Helper()
	// Twice as often as a film: more looks fall between two drawings.
	s, err := x11.Open(x11.Options{Display: display, Rate: 120})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p := s.Prove()
	ctx, cancel := context.WithTimeout(t.Context(), testlab.Hang)
	defer cancel()
	for p.Proof.Looks < looks || min(p.Proof.Changed, p.Proof.Undamaged) < 20 {
		if err := p.Look(ctx); err != nil {
			t.Fatalf("after %+v: %v", p.Proof, err)
		}
	}
	got := p.Proof
	t.Logf("%d pictures fetched; %d looks with nothing drawn, %d with a change; unseen changes: %d", got.Looks, got.Undamaged,
		got.Changed, got.Unseen)
	if got.Unseen != 0 {
		t.Errorf("%d of %d changes went unseen; the first: %s", got.Unseen, got.Changed, got.First)
	}
}

// TestDamageTellsEveryRequest: no request of the core protocol, MIT-SHM, RENDER or
// COMPOSITE changes a pixel of the screen without a word from the server.
func TestDamageTellsEveryRequest(t *testing.T) {
	display := xvfb(t, "-screen", "0", "400x300x24")
	p := newPainter(t, display, 1)
	ops := p.operations()
	names := slices.Sorted(maps.Keys(ops))
	ctx, stop := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	wait.Go(func() {
		// Bursts on their own schedule, with rests in which nothing is drawn.
		tick := time.NewTicker(13 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			if err := p.burst(names, ops); err != nil {
				t.Error(err)
				return
			}
			for range p.random.IntN(5) {
				select {
				case <-tick.C:
				case <-ctx.Done():
				}
			}
		}
	})
	prove(t, display, looksToProve(t, 400))
	stop()
	wait.Wait()
	t.Logf("operations: %v", p.done)
}
