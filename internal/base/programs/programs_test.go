package programs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// install makes a folder with empty programs the whole PATH.
func install(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, file := range files {
		if err := os.WriteFile(filepath.Join(dir, file), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	return dir
}

// Every name that a browser of the Chromium family has is found, the preferred one first.
func TestFindChromium(t *testing.T) {
	for _, c := range []struct {
		installed []string
		want      string
	}{
		{[]string{"google-chrome", "chromium-browser", "chromium"}, "chromium"},
		{[]string{"chromium-browser"}, "chromium-browser"},
		{[]string{"google-chrome"}, "google-chrome"},
		{[]string{"google-chrome-stable"}, "google-chrome-stable"},
	} {
		dir := install(t, c.installed...)
		if got, err := Chromium().Find(); err != nil || got != filepath.Join(dir, c.want) {
			t.Errorf("with %q installed: Find() = %q, %v; want %q, nil", c.installed, got, err, c.want)
		}
	}
}

func TestFindNothing(t *testing.T) {
	install(t)
	_, err := Certutil().Find()
	if !errors.Is(err, exec.ErrNotFound) || !strings.Contains(err.Error(), "apt-get install libnss3-tools") {
		t.Errorf("Find() of a missing program: %v; want ErrNotFound and the package", err)
	}
}

// Programs that are missing are named all at once, with one command for all.
func TestMissing(t *testing.T) {
	install(t, "google-chrome", "Xvfb")
	err := Missing(VirtualDevice())
	if err == nil || !strings.Contains(err.Error(), "apt-get install libnss3-tools vpx-tools") ||
		strings.Contains(err.Error(), "chromium") {
		t.Errorf("Missing() = %v; want certutil and vpxenc, and no Chromium", err)
	}
	install(t, "google-chrome", "Xvfb", "certutil", "vpxenc")
	if err := Missing(VirtualDevice()); err != nil {
		t.Errorf("Missing() with all installed = %v; want nil", err)
	}
}

// Nothing is advertised that no code uses: each program of the table is named by
// Go code outside this package and the doctor, which only look for it.
func TestEveryProgramIsUsed(t *testing.T) {
	used := map[string]bool{}
	root := os.DirFS("../../..")
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		if dir := filepath.Dir(path); dir == "internal/base/programs" || dir == "internal/box/doctor" {
			return nil
		}
		text, err := fs.ReadFile(root, path)
		for _, p := range All() {
			constructor := strings.ToUpper(p.Name[:1]) + p.Name[1:]
			if strings.Contains(string(text), fmt.Sprintf("%q", p.Files[0])) ||
				strings.Contains(string(text), "programs."+constructor+"()") {
				used[p.Name] = true
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range All() {
		if !used[p.Name] {
			t.Errorf("no code starts %s; want the table without it", p.Name)
		}
	}
}
