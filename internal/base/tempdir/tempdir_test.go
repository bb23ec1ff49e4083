package tempdir

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

const childIn = "EIDETIC_TEST_TEMPDIR_IN"

// TestKilledProcess: the folder of a killed process is removed by the next one; those of living processes, of others
// and of other uses stay.
func TestKilledProcess(t *testing.T) {
	if in := os.Getenv(childIn); in != "" {
		dir, _, err := Make(in, "film-")
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "half"), []byte("x"), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println(dir)
		select {}
	}
	in := t.TempDir()
	child := func() (dir string, kill func()) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), childIn+"="+in)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fscanln(out, &dir); err != nil {
			t.Fatal(err)
		}
		return dir, func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
	}
	killed, kill := child()
	kill()
	living, kill := child()
	defer kill()
	if _, err := os.Stat(killed); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder of a killed process is there: %v", err)
	}
	for _, other := range []string{"film", "films-1", "-film-1"} {
		if err := os.Mkdir(filepath.Join(in, other), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink(living, filepath.Join(in, "film-link")), os.WriteFile(filepath.Join(in, "film-file"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	own, remove, err := Make(in, "film-")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(living, "half")); err != nil {
		t.Errorf("the folder of a living process: %v", err)
	}
	remove()
	if _, err := os.Stat(own); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the own folder after remove: %v; want it gone", err)
	}
	list, err := os.ReadDir(in)
	if err != nil || len(list) != 6 {
		t.Errorf("there are %v, %v; want the living process's and the five others", list, err)
	}
	gone := filepath.Join(in, "gone")
	if _, _, err := Make(gone, "film-"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Make() in no folder = %v; want that it does not exist", err)
	}
	t.Setenv("TMPDIR", gone)
	if _, _, err := Make("", "film-"); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), gone+", the folder for temporary files: ") {
		t.Errorf("Make() without a folder for temporary files = %v; want what to do", err)
	}
}
