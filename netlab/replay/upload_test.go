package replay

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/internal/rigs/testlab"
)

// TestUploads: a body that a page makes as it goes reaches the origin as it comes, since the page may wait for what
// another answer says of its beginning; it is recorded whole, and matched in a replay.
func TestUploads(t *testing.T) {
	heard := make(chan struct{})
	b := newBench(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/heard" {
			select {
			case <-heard:
				_, _ = io.WriteString(w, "it began")
			case <-r.Context().Done():
			}
			return
		}
		first := make([]byte, len("first "))
		if _, err := io.ReadFull(r.Body, first); err != nil {
			t.Errorf("the origin got %q, %v", first, err)
		}
		close(heard)
		rest, err := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s%s %v %d", first, rest, err, r.ContentLength)
	}), true)
	talk := func() (told string) {
		ctx, cancel := context.WithTimeout(t.Context(), testlab.Hang)
		defer cancel()
		from, to := io.Pipe()
		ended := make(chan string, 1)
		go func() {
			r, err := http.NewRequestWithContext(ctx, "POST", "https://www.example.com/up", from)
			if err != nil {
				ended <- err.Error()
				return
			}
			resp, err := b.client.Do(r)
			if err != nil {
				ended <- err.Error()
				return
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			ended <- fmt.Sprint(string(text), " ", err)
		}()
		_, _ = io.WriteString(to, "first ")
		if got := b.get("GET", "https://www.example.com/heard", "", nil); !strings.Contains(got, "it began") {
			t.Errorf("while the body is on its way, the other request gets %s", got)
		}
		_, _ = io.WriteString(to, "and last")
		_ = to.Close()
		return <-ended
	}
	const want = "first and last <nil> -1 <nil>"
	_, finish := b.record(filepath.Join(t.TempDir(), "a.wacz"))
	if got := talk(); got != want {
		t.Errorf("while recording, the page gets %s; want %s", got, want)
	}
	a := finish()
	b.origin.Close()
	for _, e := range a.Exchanges() {
		if body := string(e.Request.Body); strings.HasSuffix(e.URL, "/up") && body != "first and last" {
			t.Errorf("the recording has the body %q", body)
		}
	}
	s := b.replay(a, Options{Timing: Timing{Mode: TimingNone}})
	if got := talk(); got != want || s.Stats().Misses > 0 {
		t.Errorf("in a replay, the page gets %s, %+v; want %s and no miss", got, s.Stats(), want)
	}
}
