package boottest

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"eidetic/internal/rigs/testlab"
)

// testRebuild checks that two builds of the same packages and the same binary have the same
// bytes. The images in out/image serve as one of them if they contain the present binary.
func testRebuild(t *testing.T) {
	archives, err := filepath.Glob(ImagePath(t, ".") + "/root-*")
	testlab.Need(t, err == nil && len(archives) > 0, "Debian's files in out/image; make them with: make image-test")
	version, sums := "0.0.1", []string(nil)
	if v, ok := builtOfThePresent(t); ok {
		version, sums = v, []string{sha(t, ImagePath(t, "appliance.efi")) + " " + sha(t, ImagePath(t, "appliance.img"))}
	}
	// The images trust the key whose public half is there, and the private one is not needed.
	keys := []string{"--key", "none"}
	public := filepath.Join(Root(t), "out", "image", "update.pub")
	if _, err := os.Stat(public); err == nil {
		keys = append(keys, "--trust", public)
	}
	for len(sums) < 2 {
		out := t.TempDir()
		for _, archive := range archives {
			if err := os.Symlink(archive, filepath.Join(out, filepath.Base(archive))); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.CommandContext(t.Context(), "go", "run", "./image/build", "--version", version, "--out", out)
		cmd.Args = append(cmd.Args, keys...)
		cmd.Dir = Root(t)
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		sums = append(sums, sha(t, filepath.Join(out, "appliance.efi"))+" "+sha(t, filepath.Join(out, "appliance.img")))
		if err := os.RemoveAll(out); err != nil {
			t.Fatal(err)
		}
	}
	if sums[0] != sums[1] {
		t.Errorf("two builds of the same differ:\n%s\n%s", sums[0], sums[1])
	}
}

// builtOfThePresent returns the version of the images in out/image, and whether they are
// newer than every input of another build.
func builtOfThePresent(t *testing.T) (string, bool) {
	t.Helper()
	file := ImagePath(t, "inputs.json")
	text, err := os.ReadFile(file)
	var record struct {
		Version  string
		WiFi     bool
		Browsers []string
	}
	if err != nil || json.Unmarshal(text, &record) != nil || record.WiFi || len(record.Browsers) > 0 {
		return "", false
	}
	made, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	newer := false
	for _, input := range []string{"bin/appliance", "image", "systemd"} {
		err := filepath.WalkDir(filepath.Join(Root(t), input), func(_ string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			newer = newer || err == nil && !d.IsDir() && info.ModTime().After(made.ModTime())
			return err
		})
		if err != nil {
			return "", false
		}
	}
	return record.Version, !newer
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
