package panel

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"

	"eidetic/internal/keep/store"
	"eidetic/internal/tell/report/reporttest"
)

// lists is a script that waits until the page has read the list n times and shown it.
func lists(n int) string {
	return fmt.Sprintf(
		`await until(() => performance.getEntriesByType("resource").filter(e => e.name.includes("/api/v1/runs?")).length >= %d); await fetch("/api/v1/health");`,
		n,
	)
}

// A list requested before a run was deleted does not bring the run back.
func TestLateListInBrowser(t *testing.T) {
	q, err := store.OpenQueue(t.Context(), filepath.Join(t.TempDir(), "queue.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	st := newStore(t)
	other := reporttest.Run(0, 0)
	other.ID = "20261121-080000-other"
	addRun(t, st, other)
	p, err := newPanel(setup{Store: st, Queue: queueOf(st, q, &fakeRunner{}), Archives: fakeArchives{},
		Devices: func(context.Context) []Device { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	held, deleted := make(chan struct{}), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The second request is the one that the page makes when its event stream opens.
		if r.URL.Path != "/api/v1/runs" || asked.Add(1) != 2 {
			p.ServeHTTP(w, r)
			if r.Method == http.MethodDelete {
				close(deleted)
			}
			return
		}
		early := httptest.NewRecorder()
		p.ServeHTTP(early, r)
		close(held)
		select {
		case <-deleted:
		case <-r.Context().Done():
		}
		w.Header().Set("Content-Type", early.Header().Get("Content-Type"))
		_, _ = io.Copy(w, early.Body)
	}))
	t.Cleanup(s.Close)
	b := browsers.New(t)
	if err := b.Open(s.URL + "/"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-held:
	case <-b.Context.Done():
		t.Fatal("the page did not read the list after its event stream opened")
	}
	got, err := reporttest.Eval[string](b, `(async () => {`+until+`
		document.querySelector(".remove").click();
		document.getElementById("yes").click();
		await until(() => !document.getElementById("sure").open);
		const at_once = document.querySelectorAll(".run").length;
		`+lists(2)+`
		return [at_once, document.querySelectorAll(".run").length, document.activeElement.id].join(" ");
	})()`)
	if want := "1 1 heading"; err != nil || got != want {
		t.Errorf("got %q (%v), want %q", got, err, want)
	}
}

// bare adds finished runs without files, the newest last.
func bare(t *testing.T, st *store.Store, n int) {
	t.Helper()
	for i := range n {
		run := reporttest.Run(0, 0)
		run.ID, run.Name, run.State = fmt.Sprintf("20261121-10%02d00-r", i), fmt.Sprint("r", i), store.StateDone
		f, err := store.Create(st.Root(), run)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Reading the list again keeps its length, and unchanged runs keep their DOM nodes.
func TestReadAgainInBrowser(t *testing.T) {
	st := newStore(t)
	bare(t, st, 60)
	p, err := newPanel(setup{Store: st})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(p)
	t.Cleanup(s.Close)
	b := browsers.New(t)
	if err := b.Open(s.URL + "/"); err != nil {
		t.Fatal(err)
	}
	got, err := reporttest.Eval[string](b, `(async () => {`+until+lists(2)+` // at the start, and when the stream has opened
		const first = document.querySelector(".run"), before = document.querySelectorAll(".run").length;
		document.getElementById("more").click();
		await until(() => document.querySelectorAll(".run").length > before);
		return [before, document.querySelectorAll(".run").length, document.querySelector(".run") === first].join(" ");
	})()`)
	if want := "50 61 true"; err != nil || got != want {
		t.Errorf("older runs: %q (%v), want %q", got, err, want)
	}
	p.queue.Events().Publish(Progress{Run: "20261121-105900-r", State: store.StateDone})
	got, err = reporttest.Eval[string](b, `(async () => {`+until+lists(4)+`
		return document.querySelectorAll(".run").length + "";
	})()`)
	if want := "61"; err != nil || got != want {
		t.Errorf("after news of a run: %q (%v), want %q", got, err, want)
	}
}
