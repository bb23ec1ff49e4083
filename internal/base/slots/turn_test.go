package slots

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"eidetic/internal/rigs/testlab"
)

// Somebody who asks a hundred times has others wait for one of them, and whoever leaves waits no longer.
func TestLinesTakeTurns(t *testing.T) {
	one := NewTurn(1)
	done, err := one.Take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	waiting := func(name string) int {
		one.lines.mu.Lock()
		defer one.lines.mu.Unlock()
		if l := one.lines.of[name]; l != nil {
			return l.n
		}
		return 0
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	var order []string
	ask := func(name string) {
		ctx := WithHolder(t.Context(), name)
		before := waiting(name)
		all.Go(func() {
			done, err := one.Take(ctx)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			order = append(order, name)
			mu.Unlock()
			done()
		})
		testlab.Await(t, name+" in its line", func() bool { return waiting(name) > before })
	}
	for range 100 {
		ask("flood")
	}
	ask("nightly")
	ask("mobile")
	gone, leave := context.WithCancel(WithHolder(t.Context(), "flood"))
	leave()
	if _, err := one.Take(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("Take() of who has left = %v, want that it waits no longer", err)
	}
	done()
	all.Wait()
	for _, name := range []string{"nightly", "mobile"} {
		if at := slices.Index(order, name); at > 4 {
			t.Errorf("%s has the turn after %d others, want after a few", name, at)
		}
	}
	if len(one.lines.of) != 0 || one.Held() != 0 {
		t.Errorf("after all, lines %v and %d turns are left", fmt.Sprint(one.lines.of), one.Held())
	}
}
