package replay

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/internal/lab"
)

// TestBrokenOrigin: a page sees that an origin breaks its connection, while it is recorded and in each replay, and a
// second request gets what the second one got. A person who opens the address is told by the box.
func TestBrokenOrigin(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		t.Run(map[bool]string{false: "h1", true: "h2"}[h2], func(t *testing.T) {
			asked := 0
			b := newBench(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if asked++; r.URL.Path == "/always" || asked == 1 {
					panic(http.ErrAbortHandler) // closes the connection, or resets the stream
				}
				_, _ = w.Write([]byte("at last"))
			}), h2)
			page := http.Header{"Sec-Fetch-Mode": {"cors"}, "Sec-Fetch-Dest": {"empty"}}
			ask := func(path string) string { // no client repeats a POST by itself
				return b.get("POST", "https://www.example.com"+path, "x", page)
			}
			_, finish := b.record(filepath.Join(t.TempDir(), "a.wacz"))
			seen := []string{ask("/once"), ask("/once"), ask("/always")}
			for i, want := range []string{"error: ", "at last", "error: "} {
				if !strings.Contains(seen[i], want) {
					t.Errorf("request %d of the recording gets %s; want %q", i, seen[i], want)
				}
			}
			navigation := http.Header{"Sec-Fetch-Mode": {"navigate"}, "Sec-Fetch-Dest": {"document"}}
			if got := b.get("POST", "https://www.example.com/always", "x", navigation); !strings.Contains(got, "502") {
				t.Errorf("a person's request gets %s; want 502 with the reason", got)
			}
			a := finish()
			b.origin.Close()
			failed := 0
			for _, e := range a.Exchanges() {
				if e.IsFailed() {
					failed++
				}
				if e.IsPending() {
					t.Errorf("%s %s is pending", e.Method, e.URL)
				}
			}
			if failed != 2 || len(a.Exchanges()) != 3 {
				t.Fatalf("%d of %d exchanges failed; want 2 of 3", failed, len(a.Exchanges()))
			}
			s := b.replay(a, Options{})
			for i, path := range []string{"/once", "/once", "/always"} {
				if got := ask(path); strings.HasPrefix(got, "error: ") != strings.HasPrefix(seen[i], "error: ") {
					t.Errorf("request %d of the replay gets %s; want %s", i, got, seen[i])
				}
			}
			if st := s.Stats(); st.Misses != 0 || st.Asked != 3 {
				t.Errorf("Stats() = %+v; want no miss, and 3 exchanges asked for", st)
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			for _, line := range b.log {
				if line.Stage != lab.StageLive && (line.Error != "" || line.Exchange == "") {
					t.Errorf("the replay's log has %+v; want no error of the box", line)
				}
			}
		})
	}
}
