package panel

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"eidetic/internal/rigs/testlab"
)

// Large bodies of changes are not read while others are: only those of files that go to the disk are.
func TestLargeBodiesAreReadInTurn(t *testing.T) {
	p, err := newPanel(setup{Store: emptyStore(t), Version: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	// send returns the status, and how much of the body was read before the router saw the request.
	send := func(ctx context.Context, method, path string, size int, change func(*http.Request)) (status, before, all int) {
		body := bytes.NewReader(make([]byte, size))
		r := httptest.NewRequest(method, "http://127.0.0.1"+path, body).WithContext(ctx)
		if change != nil {
			change(r)
		}
		w := httptest.NewRecorder()
		p.bodies(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			before = size - body.Len()
			got, err := io.ReadAll(r.Body)
			if all = len(got); err != nil {
				t.Errorf("%s %s: reading the body: %v", method, path, err)
			}
		})).ServeHTTP(w, r)
		return w.Code, before, all
	}
	unsaid := func(r *http.Request) { r.ContentLength = -1 }
	var held []func()
	for range mostBodies {
		done, err := p.holding.Take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, done)
	}
	for _, c := range []struct {
		method, path string
		size         int
		change       func(*http.Request)
		waits        bool
	}{
		{"POST", "/api/v1/runs", freeBody, nil, false},
		{"POST", "/api/v1/runs", freeBody + 1, nil, true},
		{"POST", "/api/v1/runs", 1, unsaid, true},
		{"PUT", "/api/v1/workflows/a", freeBody + 1, nil, true},
		{"PUT", "/api/v1/archives/a.wacz/name", freeBody + 1, nil, true},
		{"PUT", "/api/v1/archives/a.wacz", freeBody + 1, nil, false},
		{"POST", "/api/v1/restore", freeBody + 1, unsaid, false},
	} {
		status, before, all := send(gone, c.method, c.path, c.size, c.change)
		if c.waits != (status == http.StatusServiceUnavailable) || before != 0 || !c.waits && all != c.size {
			t.Errorf("%s %s of %d bytes while others are read: %d, %d bytes; want that it waits: %v", c.method, c.path, c.size, status, all, c.waits)
		}
	}
	for _, done := range held {
		done()
	}
	for range 2 * mostBodies {
		if status, _, all := send(t.Context(), "POST", "/api/v1/runs", maxPlanBody, nil); status != http.StatusOK || all != maxPlanBody {
			t.Fatalf("a large body beside no other: %d, %d bytes; want all", status, all)
		}
	}
	status, _, _ := send(t.Context(), "POST", "/api/v1/runs", maxPlanBody+1, nil)
	if status != http.StatusRequestEntityTooLarge || p.holding.Held() != 0 {
		t.Errorf("a body that is too large: %d, and %d are held; want 413, 0", status, p.holding.Held())
	}
}

// A request whose body came in time may take as long as it likes to be carried out.
func TestDeadlineEndsWithTheBody(t *testing.T) {
	p, err := newPanel(setup{Store: emptyStore(t), Version: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	const limit = 100 * time.Millisecond
	ended := make(chan bool, 1)
	s := httptest.NewServer(p.bodies(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(limit)); err != nil { // as huma does
			t.Error(err)
		}
		if _, err := io.ReadAll(r.Body); err != nil {
			t.Error(err)
		}
		over := time.NewTimer(3 * limit)
		defer over.Stop()
		select {
		case <-r.Context().Done():
			ended <- true
		case <-over.C:
			ended <- false
		}
	})))
	defer s.Close()
	for _, size := range []int{10, freeBody + 1} {
		ctx, cancel := context.WithTimeout(t.Context(), testlab.Hang)
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/api/v1/runs", bytes.NewReader(make([]byte, size)))
		if err != nil {
			t.Fatal(err)
		}
		if answer, err := s.Client().Do(r); err == nil {
			answer.Body.Close()
		}
		cancel()
		if <-ended {
			t.Errorf("a request of %d bytes ended with the deadline of its body", size)
		}
	}
}
