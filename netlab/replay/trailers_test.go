package replay

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// TestCallsOfGRPC: an origin over HTTP/2 is told that the device takes trailers, which servers of gRPC ask for; over
// HTTP/1.1 that is the business of each connection.
func TestCallsOfGRPC(t *testing.T) {
	for _, h2 := range []bool{true, false} {
		b := newBench(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "[%s]", r.Header.Get("Te"))
		}), h2)
		_, finish := b.record(filepath.Join(t.TempDir(), "a.wacz"))
		want := map[bool]string{true: "[trailers]", false: "[]"}[h2]
		if got := b.get("POST", "https://www.example.com/Greeter/Hello", "x", http.Header{"Te": {"trailers"}}); !strings.Contains(got, want) {
			t.Errorf("with HTTP/2 %v the origin is asked with %s, want %s", h2, got, want)
		}
		finish()
	}
}
