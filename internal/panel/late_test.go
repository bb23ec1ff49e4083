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

	"eidetic/internal/report/reporttest"
	"eidetic/internal/store"
)

// lists waits until the page has read the list so often, and has shown what it read.
func lists(n int) string {
	return fmt.Sprintf(`await until(() => performance.getEntriesByType("resource").filter(e => e.name.includes("/api/v1/runs?")).length >= %d); await fetch("/api/v1/health");`, n)
}

// An answer that was on its way while a run was deleted does not bring the run back.
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
	p, err := New(Config{Store: st, Queue: queueOf(st, q, &fakeRunner{}), Archives: fakeArchives{}, Devices: func(context.Context) []Device { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	held, deleted := make(chan struct{}), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The second is that for which the stream of events asks when it opens.
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
	b := reporttest.NewBrowser(t)
	if err := b.Open(s.URL + "/"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-held:
	case <-b.Context.Done():
		t.Fatal("the page does not read the list when its stream has opened")
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

// bare adds runs that are done and have no files, the newest last.
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

// A list that is read again has as many runs as before, and what has not changed
// stays where it is.
func TestReadAgainInBrowser(t *testing.T) {
	st := newStore(t)
	bare(t, st, 60)
	p, err := New(Config{Store: st})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(p)
	t.Cleanup(s.Close)
	b := reporttest.NewBrowser(t)
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
	p.events.Publish(Progress{Run: "20261121-105900-r", State: store.StateDone})
	got, err = reporttest.Eval[string](b, `(async () => {`+until+lists(4)+`
		return document.querySelectorAll(".run").length + "";
	})()`)
	if want := "61"; err != nil || got != want {
		t.Errorf("after news of a run: %q (%v), want %q", got, err, want)
	}
}
