package panel

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"eidetic/internal/base/slots"
)

// Both reels of a pair stay open while a page steps through them, and no more than these.
func TestRecentReels(t *testing.T) {
	st := emptyStore(t)
	run := filmedPairs(t, st)
	p, err := newPanel(setup{Store: st, Version: "v1"})
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
		done, err := p.counted.turn.Take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer done()
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

// turnSeer is a client to whom an answer is written: it looks whether others could ask for frames meanwhile.
type turnSeer struct {
	*httptest.ResponseRecorder
	turn *slots.Turn
	held bool
}

func (w *turnSeer) Write(b []byte) (int, error) {
	w.held = w.held || w.turn.Held() > 0
	return w.ResponseRecorder.Write(b)
}

// A client that reads a picture or a piece slowly keeps nobody else from theirs.
func TestSlowReadersHoldNoTurn(t *testing.T) {
	st := emptyStore(t)
	run := filmedPairs(t, st)
	p, err := newPanel(setup{Store: st, Version: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []string{"0", "0/differences"} {
		r := httptest.NewRequest(http.MethodGet, fmt.Sprintf("http://127.0.0.1/api/v1/runs/%s/trials/1/frames/%s", run.ID, of), nil)
		r.RemoteAddr = "127.0.0.1:1"
		w := &turnSeer{ResponseRecorder: httptest.NewRecorder(), turn: p.counted.turn}
		p.router.ServeHTTP(w, r)
		if w.Code != http.StatusOK || w.held {
			t.Errorf("frames/%s: %d, and others wait for the client: %v", of, w.Code, w.held)
		}
	}
	p.counted.forget()
}

// Whoever asks for frames and leaves waits no longer for those who are before it, and has nothing read: else a list of each
// region of a long film keeps everybody from theirs for hours.
func TestFramesEndWithTheirClient(t *testing.T) {
	st := emptyStore(t)
	run := filmedPairs(t, st)
	p, err := newPanel(setup{Store: st, Version: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	done, err := p.counted.turn.Take(t.Context()) // somebody reads a reel
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []string{"frames?region=0,0,8,8", "frames.csv", "frames/0", "frames/0/differences"} {
		r := httptest.NewRequest(http.MethodGet, fmt.Sprintf("http://127.0.0.1/api/v1/runs/%s/trials/1/%s", run.ID, of), nil).WithContext(gone)
		w := httptest.NewRecorder()
		p.router.ServeHTTP(w, r)
		if w.Code != http.StatusServiceUnavailable {
			t.Errorf("%s of a client that has left = %d %.200s; want 503 at once", of, w.Code, w.Body)
		}
	}
	done()
	p.counted.forget()
	if len(p.counted.done) > 0 {
		t.Errorf("%d lists were counted for clients that have left; want none", len(p.counted.done))
	}
}
