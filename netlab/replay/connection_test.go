package replay

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// TestFieldsThatConnectionNames: what a Connection field names is that connection's. It reaches neither the origin nor
// the device, while recording and in a replay, except what may not be named there.
func TestFieldsThatConnectionNames(t *testing.T) {
	b := newBench(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Add("Connection", "X-Hop, Content-Type")
		h.Add("Connection", "SET-COOKIE,x-second")
		for _, name := range []string{"X-Hop", "X-Second", "X-End"} {
			h.Set(name, "1")
		}
		h.Set("Content-Type", "text/css")
		h.Set("Set-Cookie", "a=b")
		fmt.Fprintf(w, "[%s%s%s]", r.Header.Get("X-Mine"), r.Header.Get("X-Other"), r.Header.Get("Authorization"))
	}), false)
	_, finish := b.record(filepath.Join(t.TempDir(), "a.wacz"))
	asked := http.Header{"Connection": {"keep-alive, x-mine, Authorization"}, "X-Mine": {"mine"}, "X-Other": {"other"}, "Authorization": {"me"}}
	recorded := b.get("GET", "https://www.example.com/x", "", asked)
	b.replay(finish(), Options{})
	for when, got := range map[string]string{"recording": recorded, "replaying": b.get("GET", "https://www.example.com/x", "", asked)} {
		for _, want := range []string{"[otherme]", "X-End", "text/css", "Set-Cookie"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s, the device gets %s; want %s in it", when, got, want)
			}
		}
		for _, not := range []string{"X-Hop", "X-Second"} {
			if strings.Contains(got, not) {
				t.Errorf("%s, the device gets %s; want no %s", when, got, not)
			}
		}
	}
}
