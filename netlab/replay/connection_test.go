package replay

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// TestFieldsThatConnectionNames: what the Connection field of a request names is that connection's, and does not reach the
// origin, except what may not be named there. Browsers show what that of an answer names, and so does the box.
func TestFieldsThatConnectionNames(t *testing.T) {
	b := newBench(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Connection", "X-Hop, Content-Type")
		h.Set("X-Hop", "1")
		h.Set("Content-Type", "text/css")
		fmt.Fprintf(w, "[%s%s%s]", r.Header.Get("X-Mine"), r.Header.Get("X-Other"), r.Header.Get("Authorization"))
	}), false)
	_, finish := b.record(filepath.Join(t.TempDir(), "a.wacz"))
	asked := http.Header{"Connection": {"keep-alive, x-mine, Authorization"}, "X-Mine": {"mine"}, "X-Other": {"other"}, "Authorization": {"me"}}
	recorded := b.get("GET", "https://www.example.com/x", "", asked)
	b.replay(finish(), Options{})
	for when, got := range map[string]string{"recording": recorded, "replaying": b.get("GET", "https://www.example.com/x", "", asked)} {
		for _, want := range []string{"[otherme]", "X-Hop", "text/css"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s, the device gets %s; want %s in it", when, got, want)
			}
		}
	}
}
