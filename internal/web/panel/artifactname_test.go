package panel

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"
)

// The path of an artifact is unescaped once, whatever escapes it has.
func TestArtifactNamesAreUnescapedOnce(t *testing.T) {
	runs := newStore(t)
	const run = "20261121-091400-demo"
	folder := filepath.Join(runs.Root(), "runs", run)
	names := []string{"a b.txt", "a%20b.txt", "50%.txt", "50%25.txt", "a+b.txt", "ä.txt", "a;b.txt"}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := newServer(t, setup{Store: runs, Version: "v1"})
	for _, name := range names {
		for _, path := range []string{"/runs/" + run + "/" + url.PathEscape(name), "/api/v1/runs/" + run + "/artifacts/" + escapeAll(name)} {
			if got := ask(t, s, http.MethodGet, path, nil); got.StatusCode != http.StatusOK || got.text != name {
				t.Errorf("GET %s = %d %q, want %q", path, got.StatusCode, got.text, name)
			}
		}
	}
}

// escapeAll escapes every byte.
func escapeAll(name string) (out string) {
	const digits = "0123456789ABCDEF"
	for _, b := range []byte(name) {
		out += "%" + string(digits[b>>4]) + string(digits[b&15])
	}
	return out
}
