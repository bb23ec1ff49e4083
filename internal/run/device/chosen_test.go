package device

import (
	"os"
	"path/filepath"
	"testing"
)

// The folder of files to choose has these alone, whatever the home was copied from: a dialogue completes what is typed.
func TestUnpackChosen(t *testing.T) {
	home := t.TempDir()
	for _, files := range []map[string][]byte{nil, {"old.txt": nil}, {"a.txt": []byte("a"), "in/b.txt": []byte("b")}} {
		if err := unpackChosen(home, files); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(filepath.Join(home, chosenFolder, "in/b.txt"))
	if err != nil || string(got) != "b" {
		t.Errorf("in/b.txt = %q, %v; want b", got, err)
	}
	if err := unpackChosen(home, map[string][]byte{"../out.txt": nil}); err == nil {
		t.Error("unpackChosen() wrote outside its folder")
	}
	if _, err := os.Stat(filepath.Join(home, chosenFolder, "old.txt")); err == nil {
		t.Error("old.txt is still there")
	}
}
