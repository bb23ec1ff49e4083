package boottest

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"eidetic/internal/testlab"
)

// Two builds of the same packages and the same binary are the same bytes.
func testRebuild(t *testing.T) {
	archives, err := filepath.Glob(ImagePath(t, ".") + "/root-*")
	testlab.Need(t, err == nil && len(archives) > 0, "Debian's files in out/image; make them with: make image-test")
	key := ImagePath(t, "update.key")
	var sums [2]string
	for i := range sums {
		out := t.TempDir()
		for _, archive := range archives {
			if err := os.Symlink(archive, filepath.Join(out, filepath.Base(archive))); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.CommandContext(t.Context(), "go", "run", "./image/build", "--version", "0.0.1", "--out", out, "--key", key)
		cmd.Dir = Root(t)
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		sums[i] = sha(t, filepath.Join(out, "appliance.efi")) + " " + sha(t, filepath.Join(out, "appliance.img"))
		if err := os.RemoveAll(out); err != nil {
			t.Fatal(err)
		}
	}
	if sums[0] != sums[1] {
		t.Errorf("two builds of the same differ:\n%s\n%s", sums[0], sums[1])
	}
}

func sha(t *testing.T, file string) string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}
