package testlab

import (
	"os"
	"testing"
	"time"
)

// TempDir makes a folder for programs that go on writing after their main process has
// ended, as browsers' helpers do. It is removed after the test; a file that is written
// during the removal does not fail the test, as it would with t.TempDir. Call TempDir
// before registering the clean-up that ends the program.
func TempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "eidetic-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for deadline := time.Now().Add(30 * time.Second); os.RemoveAll(dir) != nil && time.Now().Before(deadline); {
			<-tick.C
		}
	})
	return dir
}
