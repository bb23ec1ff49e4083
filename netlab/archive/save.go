package archive

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"eidetic/internal/lab"

	"golang.org/x/sys/unix"
)

// editSuffix is added to the path of an archive for the working file of the new version that will
// replace it.
const editSuffix = ".edit" + WorkingSuffix

// Save writes a as a WACZ to path. It replaces the file there, and the same users can read the new
// one. A Save that fails leaves the old file untouched and no other file behind.
func Save(path string, a *Archive) error {
	w, err := edit(path, a)
	if err != nil {
		return fmt.Errorf("save archive: %w", err)
	}
	if err := copyInto(w, a); err != nil {
		return errors.Join(fmt.Errorf("save archive: %w", err), w.Discard())
	}
	if err := w.Close(); err != nil {
		_ = os.Remove(path + editSuffix)
		return fmt.Errorf("save archive: %w", err)
	}
	return nil
}

// edit creates the working file of path. The working file is locked until it is closed; an unlocked
// one was left by a process that died.
func edit(path string, a *Archive) (*Writer, error) {
	perm := fs.FileMode(0o644) // less the umask
	old, err := os.Stat(path)
	if err == nil {
		perm = old.Mode().Perm()
	}
	f, err := lockFile(path+editSuffix, perm)
	if err != nil {
		return nil, err
	}
	if old != nil {
		err = copyMode(f, old)
	}
	if err = errors.Join(err, removeParts(path+editSuffix)); err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	return newWriter(path, f, createOptions(a))
}

// lockFile locks and empties the file; one that exists is taken over if it is not locked.
func lockFile(name string, perm fs.FileMode) (*os.File, error) {
	for {
		f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, perm)
		if err != nil {
			return nil, err
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: another process is writing it now: %w",
				strings.TrimSuffix(name, editSuffix), err), f.Close())
		}
		mine, err := f.Stat()
		there, err2 := os.Stat(name)
		if err == nil && err2 == nil && os.SameFile(mine, there) {
			return f, f.Truncate(0)
		}
		if err := errors.Join(err, f.Close()); err != nil { // else the process that held the file has just removed it
			return nil, err
		}
	}
}

// removeParts removes what is left of the packing of a working file by a process that died.
func removeParts(name string) error {
	entries, err := os.ReadDir(filepath.Dir(name))
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), filepath.Base(name)+".") && strings.HasSuffix(e.Name(), ".tmp") {
			err = errors.Join(err, os.Remove(filepath.Join(filepath.Dir(name), e.Name())))
		}
	}
	return err
}

// WriteWARC writes a as a WARC 1.1 of per-record gzip members to path, which
// must not exist.
func WriteWARC(path string, a *Archive) error {
	w, err := edit(path, a)
	if err != nil {
		return fmt.Errorf("export WARC: %w", err)
	}
	err = copyInto(w, a)
	if err == nil {
		err = os.Link(path+editSuffix, path) // fails if path exists, unlike a rename
	}
	if err = errors.Join(err, w.Discard()); err != nil {
		return fmt.Errorf("export WARC: %w", err)
	}
	return nil
}

func createOptions(a *Archive) CreateOptions {
	o := a.carried()
	if o.Wall.IsZero() && len(a.exchanges) > 0 {
		o.Wall = a.exchanges[0].Wall
	}
	if o.Wall.IsZero() { // an import without any date: the first that a WARC may have
		o.Wall = o.Wall.AddDate(1969, 0, 0)
	}
	return o
}

func copyInto(w *Writer, a *Archive) error {
	for _, e := range a.exchanges {
		if err := w.Add(e); err != nil {
			return err
		}
	}
	for _, d := range a.dns {
		if err := w.AddDNS(d); err != nil {
			return err
		}
	}
	for _, p := range a.pages {
		if err := w.AddPage(p); err != nil {
			return err
		}
	}
	return nil
}

// With returns a copy of a with other exchanges.
func (a *Archive) With(exchanges []*lab.Exchange) *Archive {
	return New(exchanges, a.dns, a.pages, a.carried())
}

// readAllLimited reads all of r. It returns an error if r has more than n bytes.
func readAllLimited(r io.Reader, n int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, n+1))
	if err == nil && int64(len(b)) > n {
		return nil, fmt.Errorf("more than %d bytes: %w", n, errLimit)
	}
	return b, err
}
