package panics

import (
	"os"
	"path/filepath"
	"testing"
)

func TestPanics(t *testing.T) {
	mark := filepath.Join(os.Getenv("TRIED"), "panics")
	if _, err := os.Stat(mark); err == nil {
		return
	}
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	panic("not the first time")
}

// TestAfter never runs in the first try: running TestPanics alone again would
// leave it out.
func TestAfter(t *testing.T) {
	if err := os.WriteFile(filepath.Join(os.Getenv("TRIED"), "after"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}
