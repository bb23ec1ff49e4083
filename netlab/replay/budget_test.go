package replay

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"eidetic/internal/rigs/testlab"
	"eidetic/netlab/archive"
)

// endless sends a megabyte, in messages or in pieces of a body, again and again until the other side leaves or it has
// sent 64.
func endless() http.Handler {
	const times = 64
	part := bytes.Repeat([]byte("x"), 1<<20)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isSocket(r) {
			for range times {
				if _, err := w.Write(part); err != nil {
					return
				}
			}
			return
		}
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
		if err != nil {
			return
		}
		defer c.CloseNow()
		for range times {
			if err := c.Write(r.Context(), websocket.MessageBinary, part); err != nil {
				return
			}
		}
		_ = c.Close(websocket.StatusNormalClosure, "")
	})
}

// TestRecordingHasOneBudget: sockets and bodies that are recorded at once take no more than the recording may, the
// device gets all of them, and the recording says what is lost.
func TestRecordingHasOneBudget(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testlab.Hang)
	defer cancel()
	b := newBench(t, endless(), false)
	rec, finish := b.record(filepath.Join(t.TempDir(), "a.wacz"))
	const memory = 32 << 20
	rec.budget = newBudget(memory)
	var devices sync.WaitGroup
	for range 3 {
		devices.Go(func() {
			c, _, err := websocket.Dial(ctx, "wss://www.example.com/chat", &websocket.DialOptions{HTTPClient: b.client})
			if err != nil {
				t.Error(err)
				return
			}
			defer c.CloseNow()
			c.SetReadLimit(-1)
			for got := 0; ; got++ {
				if _, _, err := c.Read(ctx); err != nil {
					if got != 64 {
						t.Errorf("a device got %d messages, then %v; want 64", got, err)
					}
					return
				}
			}
		})
	}
	devices.Go(func() {
		answer, err := b.client.Get("https://www.example.com/body")
		if err != nil {
			t.Error(err)
			return
		}
		defer answer.Body.Close()
		if n, err := io.Copy(io.Discard, answer.Body); n != 64<<20 || err != nil {
			t.Errorf("the device got %d bytes, %v; want 64 MiB", n, err)
		}
	})
	devices.Wait()
	for range 4 {
		select {
		case line := <-b.logged:
			if line.Error != errBudget.Error() {
				t.Errorf("%s: the log says %q; want %q", line.URL, line.Error, errBudget)
			}
		case <-ctx.Done():
			t.Fatal("a request is not logged")
		}
	}
	a := finish()
	kept := 0
	for _, e := range a.Exchanges() {
		kept += len(e.Response.Body)
		for _, p := range e.Socket {
			kept += len(p.Data)
		}
		if e.Truncated != "length" {
			t.Errorf("%s is cut off by %q; want length", e.URL, e.Truncated)
		}
	}
	if kept == 0 || kept > memory/2 {
		t.Errorf("%d bytes are kept; want some, and at most %d", kept, memory/2)
	}
	if n := rec.budget.held.n.Load(); n != 0 {
		t.Errorf("%d bytes are held after the recording; want 0", n)
	}
	said := archive.Assess(a)
	for _, e := range a.Exchanges() {
		if !strings.Contains(problemOf(said, e.ID), "more than may be recorded") {
			t.Errorf("the problem of %s is %q; want what is lost and why", e.URL, problemOf(said, e.ID))
		}
	}
}

func problemOf(q archive.Quality, id string) string {
	for _, p := range q.Problems {
		if p.Exchange == id {
			return p.What
		}
	}
	return ""
}

// TestSocketBytesAreOnePiece: a side that sends a byte at a time takes no more memory than one that sends all at once.
func TestSocketBytesAreOnePiece(t *testing.T) {
	took := int64(0)
	r := socketRecord{take: func(memory int64, _ int) bool { took += memory; return true }}
	for i := range 100_000 {
		r.add(time.Duration(i)*time.Microsecond/100, false, []byte{byte(i)})
	}
	if len(r.pieces) > 3 || took > 100_000*dataCost+3*pieceCost {
		t.Errorf("100,000 bytes within a millisecond are %d pieces that take %d bytes", len(r.pieces), took)
	}
	r.add(time.Millisecond, true, []byte("x"))
	r.add(time.Millisecond, false, []byte("y"))
	if n := len(r.pieces); !r.pieces[n-2].Device || r.pieces[n-1].Device {
		t.Errorf("the last pieces are %+v; want one of each side", r.pieces[n-2:])
	}
}
