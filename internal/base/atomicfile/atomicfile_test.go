package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

// names returns the files of a folder.
func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func TestWriteFileReplaces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, want := range []struct {
		content string
		mode    fs.FileMode
	}{{"old", 0o644}, {"new", 0o600}} {
		if err := WriteFile(path, []byte(want.content), want.mode); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if string(content) != want.content || info.Mode() != want.mode {
			t.Errorf("the file has %q and mode %v, want %q and %v", content, info.Mode(), want.content, want.mode)
		}
	}
	if list := names(t, filepath.Dir(path)); len(list) != 1 {
		t.Errorf("the folder has %v, want the file alone", list)
	}
}

func TestFailedWriteLeavesTheOldFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "taken")
	if err := os.MkdirAll(filepath.Join(path, "by a folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(path, []byte("new"), 0o644); err == nil {
		t.Error("WriteFile() onto a folder = nil, want an error")
	}
	if list := names(t, dir); len(list) != 1 {
		t.Errorf("the folder has %v, want no temporary file", list)
	}
	if err := WriteFile(filepath.Join(dir, "missing", "file"), nil, 0o644); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("WriteFile() in a missing folder = %v, want %v", err, fs.ErrNotExist)
	}
}

func TestDiscard(t *testing.T) {
	for name, create := range map[string]func(path, pattern string) (*File, error){"Create": Create, "createNamed": createNamed} {
		t.Run(name, func(t *testing.T) { testDiscard(t, create) })
	}
}

func testDiscard(t *testing.T, create func(path, pattern string) (*File, error)) {
	path := filepath.Join(t.TempDir(), "file")
	f, err := create(path, ".part-*")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("half"); err != nil {
		t.Fatal(err)
	}
	f.Discard()
	f.Discard()
	if list := names(t, filepath.Dir(path)); len(list) != 0 {
		t.Errorf("after Discard() the folder has %v, want nothing", list)
	}
	if f, err = create(path, ".part-*"); err != nil {
		t.Fatal(err)
	}
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	f.Discard()
	if list := names(t, filepath.Dir(path)); len(list) != 1 || list[0] != "file" {
		t.Errorf("after Commit() and Discard() the folder has %v, want [file]", list)
	}
}

const killIn = "EIDETIC_TEST_KILL_IN"

// TestKilledWriterLeavesNothing: a process that is killed while it writes leaves the old file, and nothing beside it.
func TestKilledWriterLeavesNothing(t *testing.T) {
	if path := os.Getenv(killIn); path != "" {
		f, err := Output(path)
		if err == nil {
			_, err = f.Write(make([]byte, 1<<20))
		}
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("half")
		select {}
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "film.webm")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), killIn+"="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, len("half"))
	_, err = io.ReadFull(out, said)
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // it was killed
	if err != nil || string(said) != "half" {
		t.Fatalf("the writer said %q, %v; want half", said, err)
	}
	content, err := os.ReadFile(path)
	if list := names(t, dir); len(list) != 1 || err != nil || string(content) != "old" {
		t.Errorf("a killed writer leaves %v, and the file has %q, %v; want the old file alone", list, content, err)
	}
}

func TestWithPrefix(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "box [1] *")
	if paths, err := WithPrefix(dir, "."); err != nil || len(paths) > 0 {
		t.Errorf("WithPrefix() of no folder = %q, %v; want none", paths, err)
	}
	for _, name := range []string{".new-2", ".new-1", "new-3"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	paths, err := WithPrefix(dir, ".new-")
	if want := []string{filepath.Join(dir, ".new-1"), filepath.Join(dir, ".new-2")}; err != nil || !slices.Equal(paths, want) {
		t.Errorf("WithPrefix() = %q, %v; want %q", paths, err, want)
	}
}

// TestOutputKeepsWhatIsNoFile: a person's --out /dev/null or a pipe is written, and not replaced by a file.
func TestOutputKeepsWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	pipe, link, target := filepath.Join(dir, "pipe"), filepath.Join(dir, "link"), filepath.Join(dir, "target")
	if err := errors.Join(syscall.Mkfifo(pipe, 0o640), os.WriteFile(target, []byte("older and longer"), 0o640), os.Symlink(target, link)); err != nil {
		t.Fatal(err)
	}
	read := make(chan []byte, 1)
	go func() {
		content, _ := os.ReadFile(pipe) // an error is an empty content
		read <- content
	}()
	for _, path := range []string{pipe, link} {
		was, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := WriteOutput(path, []byte("new"), 0o600); err != nil {
			t.Errorf("WriteOutput(%s) = %v", path, err)
		}
		if is, err := os.Lstat(path); err != nil || is.Mode() != was.Mode() {
			t.Errorf("after WriteOutput() %s has the mode %v, %v; want %v", path, is.Mode(), err, was.Mode())
		}
	}
	content, err := os.ReadFile(target)
	if got := <-read; string(got) != "new" || string(content) != "new" || err != nil {
		t.Errorf("the pipe had %q, and the link leads to %q, %v; want new", got, content, err)
	}
	f, err := Output(link)
	if err != nil {
		t.Fatal(err)
	}
	f.Discard()
	if list := names(t, dir); len(list) != 3 {
		t.Errorf("after Discard() the folder has %v, want link, pipe and target", list)
	}
}
