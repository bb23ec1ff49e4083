package device

import (
	"os/exec"
	"strings"
	"testing"
)

// A browser that ends in order was not broken: its page may have closed the window, and the reason says so.
func TestWhyABrowserEnded(t *testing.T) {
	for command, want := range map[string]string{
		"echo noise >&2": "the page may have closed its window (window.close): chromium ended by itself (without an error): noise",
		"exit 3":         "chromium ended by itself (exit status 3)",
	} {
		p, err := start(exec.CommandContext(t.Context(), "/bin/sh", "-c", command), "chromium")
		if err != nil {
			t.Fatal(err)
		}
		b := &Browser{process: p}
		<-b.Done()
		if got := b.Err(); got.Error() != want || strings.Contains(got.Error(), "nil") {
			t.Errorf("of %q, Err() = %q, want %q", command, got, want)
		}
	}
}
