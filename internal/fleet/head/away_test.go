package head

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/internal/fleet"
	"eidetic/internal/fleet/blob"
	"eidetic/internal/fleet/ledger/pgtest"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/web/panel"
)

// awayBlobs is a store of files whose machine is off.
type awayBlobs struct{ *blob.Folder }

func (awayBlobs) Has(context.Context, string) (int64, bool, error) {
	return 0, false, &lab.AwayError{What: "the store", Err: errors.New("secret-user: no route to host")}
}

// lines passes on what is logged, for a test that waits for it.
type lines chan string

func (l lines) Write(b []byte) (int, error) {
	select {
	case l <- string(b):
	default:
	}
	return len(b), nil
}

// A head that starts before its database says that it waits, and then works. While database or store are away, people
// and boxes are told to ask again, without the database's user; afterwards the same head goes on.
func TestFleetAway(t *testing.T) {
	testlab.NeedNamespaces(t)
	testlab.Need(t, pgtest.Programs() != "", "PostgreSQL's server; install it with: make deps")
	server, err := pgtest.Start(t.Context(), testlab.TempDir(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	}()
	database, err := server.Database(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	runs, err := store.Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer runs.Close()
	folder, err := blob.OpenFolder(filepath.Join(dir, "files"))
	if err != nil {
		t.Fatal(err)
	}
	said := make(lines, 1)
	c := Config{
		Data: dir, Database: database, Blobs: folder, Store: runs, Check: func(lab.Plan) error { return nil },
		Archive: func(string) (string, error) { return "away_test.go", nil },
		Log:     slog.New(slog.NewTextHandler(said, nil)),
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if _, err := Open(stopped, c); err == nil {
		t.Error("Open() of a head that stops = nil; want an error")
	}
	opened := make(chan error, 1)
	var h *Head
	go func() {
		var err error
		h, err = Open(t.Context(), c)
		opened <- err
	}()
	if line := <-said; !strings.Contains(line, "the head waits for it") {
		t.Errorf("the head says %q; want that it waits", line)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-opened; err != nil {
		t.Fatalf("Open() = %v; want nil once the database is there", err)
	}
	defer h.Close()
	code, err := h.ledger.NewCode(t.Context(), "test", codeValid)
	if err != nil {
		t.Fatal(err)
	}
	offer := fleet.Offer{Devices: []fleet.OfferedDevice{{Name: "virtual", Kind: "virtual", Ready: true}}}
	if _, err := h.ledger.Join(t.Context(), code, "lab-1", "print", offer); err != nil {
		t.Fatal(err)
	}
	const token = "of-the-test-alone"
	p, err := panel.New(panel.Config{
		Store: runs, Token: lab.NewSecret(token), Modules: []panel.Module{panel.WithRuns(h, nil, nil), panel.WithBoxes(h.Boxes())},
	})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(handler http.Handler, method, path, body string) *http.Response {
		r := httptest.NewRequestWithContext(t.Context(), method, "http://127.0.0.1"+path, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Result()
	}
	const plan = `{"page": "https://www.shop.example/", "archive": "site.wacz", "trials": 1}`
	refused := func(what string, r *http.Response) {
		t.Helper()
		text, err := io.ReadAll(r.Body)
		if err != nil || r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Retry-After") == "" ||
			strings.Contains(string(text), "user") || strings.Contains(string(text), dir) {
			t.Errorf("%s = %s, Retry-After %q, %s, %v; want 503 with it, and no name of a user", what, r.Status, r.Header.Get("Retry-After"), text, err)
		}
	}
	h.Blobs = awayBlobs{folder}
	refused("a run while the store is away", ask(p, http.MethodPost, "/api/v1/runs", plan))
	h.Blobs = folder
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	_, away := h.ledger.BoxOf(t.Context(), "print")
	h.answer(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/fleet/v1/claims", nil), away)
	refused("a box's claim", w.Result())
	refused("a run while the database is away", ask(p, http.MethodPost, "/api/v1/runs", plan))
	refused("the list of boxes", ask(p, http.MethodGet, "/api/v1/boxes", ""))
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := ask(p, http.MethodPost, "/api/v1/runs", plan); r.StatusCode != http.StatusAccepted {
		t.Errorf("a run when the database is back = %s; want 202", r.Status)
	}
}

// A plan with on.each is one run for each box or none, under one key.
func TestFleetEach(t *testing.T) {
	h := newTestHead(t)
	offer := fleet.Offer{Devices: []fleet.OfferedDevice{{Name: "virtual", Kind: "virtual", Ready: true}}}
	for _, name := range []string{"lab-1", "lab-2", "lab-3"} {
		code, err := h.ledger.NewCode(t.Context(), "test", codeValid)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.ledger.Join(t.Context(), code, name, "print-"+name, offer); err != nil {
			t.Fatal(err)
		}
	}
	plan := lab.Plan{Name: "shop", Trials: 1, Arm: lab.Arm{Page: "https://www.shop.example/"}, On: &lab.On{Each: "box"}}
	count := func() int {
		t.Helper()
		jobs, err := h.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(jobs)
	}
	h.Check = func(p lab.Plan) error {
		if strings.HasSuffix(p.Name, "lab-3") {
			return errors.New("it is wrong for the third")
		}
		return nil
	}
	once := store.Once{Key: "k", Request: "r"}
	if _, err := h.Add(t.Context(), plan, once); err == nil || count() > 0 {
		t.Errorf("Add() of which one run is refused = %v, and %d wait; want an error, and none", err, count())
	}
	h.Check = func(lab.Plan) error { return nil }
	first, err := h.Add(t.Context(), plan, once)
	if err != nil || count() != 3 {
		t.Fatalf("Add() = %v, and %d wait; want nil, 3", err, count())
	}
	if id, err := h.Add(t.Context(), plan, once); err != nil || id != first || count() != 3 {
		t.Errorf("Add() again = %q, %v, and %d wait; want %q, nil, 3", id, err, count(), first)
	}
	// Runs of one name, in one second.
	plan.On, plan.Name = &lab.On{Each: "browser"}, strings.Repeat("x", 200)
	offer.Devices[0].Browsers = []string{"chromium", "firefox-esr"}
	b, err := h.ledger.Box(t.Context(), "lab-1")
	if err != nil {
		t.Fatal(err)
	}
	if err := h.ledger.Describe(t.Context(), b.ID, offer); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Add(t.Context(), plan, store.Once{}); err != nil || count() != 5 {
		t.Errorf("Add() of runs with one name = %v, and %d wait; want nil, 5", err, count())
	}
}
