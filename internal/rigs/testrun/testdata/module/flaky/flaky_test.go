package flaky

import (
	"os"
	"path/filepath"
	"testing"
)

// first says whether something is tried for the first time.
func first(t *testing.T, name string) bool {
	mark := filepath.Join(os.Getenv("TRIED"), name)
	_, err := os.Stat(mark)
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return err != nil
}

func TestSteady(t *testing.T) {}

func TestFlaky(t *testing.T) {
	t.Run("a case", func(t *testing.T) {})
	t.Run("another (case)", func(t *testing.T) {
		if first(t, "flaky") {
			t.Error("not the first time")
		}
	})
}
