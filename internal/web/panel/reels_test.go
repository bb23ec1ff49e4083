package panel

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
)

// Both reels of a pair stay open while a page steps through them, and no more than these.
func TestRecentReels(t *testing.T) {
	st := emptyStore(t)
	run := filmedPairs(t, st)
	p, err := New(Config{Store: st, Version: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(p)
	t.Cleanup(s.Close)
	read := func(trial int) *openReel {
		t.Helper()
		got := ask(t, s, http.MethodGet, fmt.Sprintf("/api/v1/runs/%s/trials/%d/frames/0/differences", run.ID, trial), nil)
		if got.StatusCode != http.StatusOK {
			t.Fatalf("a piece of trial %d = %d %.200s, want 200", trial, got.StatusCode, got.text)
		}
		p.counted.turn.Lock()
		defer p.counted.turn.Unlock()
		open := p.counted.recent.open
		return open[len(open)-1]
	}
	one, two := read(1), read(2)
	if one == two || read(1) != one || read(2) != two {
		t.Error("the reels of a pair were opened again")
	}
	read(3)
	if read(2) != two || read(1) == one {
		t.Error("the reel that was not used for longest stays open, and another one does not")
	}
	p.counted.forget()
	if n := len(p.counted.recent.open); n != 0 {
		t.Errorf("%d reels are open after they were forgotten", n)
	}
}
