package boottest

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// guestDir is the box's folder for files of the test: in memory, executable.
const guestDir = "/run/guest"

// Send copies a file of this machine to the box and returns its path there. It
// keeps its name and whether it can be executed.
func (b *Box) Send(t *testing.T, file string) string {
	t.Helper()
	name := filepath.Base(file)
	b.send(t, guestDir, func(w *tar.Writer) error { return addFile(w, name, file) })
	return path.Join(guestDir, name)
}

// Build compiles a command of this repository, for example ./cmd/appliance, and
// returns its path on the box.
func (b *Box) Build(t *testing.T, pkg string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), path.Base(pkg))
	goTool(t, "build", "-o", file, pkg)
	return b.Send(t, file)
}

// Test compiles the tests of a package of this repository, for example
// ./capture/v4l2, with the build tag "guest", and runs on the box, as root,
// those that run names (a pattern as of go test -run; all when it is empty).
// The package's testdata is there too. What they print is logged; one that
// fails, is skipped or does not exist fails this test.
func (b *Box) Test(t *testing.T, pkg, run string, flags ...string) {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "guest.test")
	goTool(t, "test", "-c", "-tags", "guest", "-o", binary, pkg)
	dir := path.Join(guestDir, strings.NewReplacer("./", "", "/", "-").Replace(pkg))
	b.send(t, dir, func(w *tar.Writer) error {
		if err := addFile(w, "guest.test", binary); err != nil {
			return err
		}
		return addTree(w, filepath.Join(Root(t), pkg, "testdata"), "testdata")
	})
	environment := "REQUIRE_ALL=1"
	for _, name := range []string{"EIDETIC_EVENTS", "EIDETIC_SOAK"} { // of make soak-controls and soak-grabber
		if v := os.Getenv(name); v != "" {
			environment += " " + name + "=" + shellQuote(v)
		}
	}
	command := fmt.Sprintf("cd %s && "+environment+" ./guest.test -test.v -test.timeout=%v", dir, Patience)
	if run != "" {
		command += " -test.run " + shellQuote(run)
	}
	for _, f := range flags {
		command += " " + shellQuote(f)
	}
	out, err := b.Try(t, command)
	t.Logf("%s on the box:\n%s", pkg, out)
	if err != nil {
		t.Errorf("%s on the box: %v", pkg, err)
	}
	if !strings.Contains(out, "--- PASS") || strings.Contains(out, "--- SKIP") {
		t.Errorf("%s on the box: want every test of %q to run, but one was skipped or does not exist", pkg, run)
	}
	b.Run(t, "rm -rf "+dir)
}

// Root returns the folder of this repository.
func Root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	t.Fatal("the test does not run in its repository")
	return ""
}

// goTool compiles for the box: static, as the image's own binary.
func goTool(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = Root(t)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64", "GOFLAGS=-trimpath")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// send unpacks on the box, below dir, what write puts into a tar archive.
func (b *Box) send(t *testing.T, dir string, write func(*tar.Writer) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	sent := make(chan error, 1)
	port, err := b.Uplink.ServeOnce(func(w io.Writer) error {
		archive := tar.NewWriter(w)
		err := write(archive)
		if err == nil {
			err = archive.Close()
		}
		sent <- err
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.Shell.Run(ctx, fmt.Sprintf("mkdir -p %s && tar -x -C %[1]s < /dev/tcp/%s/%d", shellQuote(dir), Router.Addr(), port))
	if err != nil {
		t.Fatal(err)
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
}

func addFile(w *tar.Writer, name, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	header := &tar.Header{Name: name, Mode: int64(info.Mode().Perm()), Size: info.Size(), Format: tar.FormatPAX}
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return err
}

// addTree adds the regular files of a folder, which may be missing.
func addTree(w *tar.Writer, from, to string) error {
	if _, err := os.Stat(from); os.IsNotExist(err) {
		return nil
	}
	return filepath.WalkDir(from, func(file string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		below, err := filepath.Rel(from, file)
		if err != nil {
			return err
		}
		return addFile(w, path.Join(to, filepath.ToSlash(below)), file)
	})
}

// shellQuote makes one word of bash of any text.
func shellQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
