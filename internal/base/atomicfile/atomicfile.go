// Package atomicfile replaces files as a whole: in go a path and content, out
// comes a file that has, after a crash or a power cut too, either the old content
// or the new. It writes a temporary file in the same folder, syncs it, renames it
// and syncs the folder (rename(2), fsync(2)).
package atomicfile

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// WriteFile replaces the file at path by content, with exactly this mode. Its
// folder must exist.
func WriteFile(path string, content []byte, mode fs.FileMode) error {
	f, err := Create(path, "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	return f.fill(content, mode)
}

// fill writes all of the content, and commits or discards the file.
func (f *File) fill(content []byte, mode fs.FileMode) error {
	defer f.Discard()
	_, err := f.Write(content)
	if err = errors.Join(err, f.Chmod(mode)); err != nil {
		return fmt.Errorf("write %s: %w", f.path, err)
	}
	return f.Commit()
}

// File is a temporary file that Commit gives its path. Commit or Discard must be
// called; a call of Discard after Commit does nothing.
type File struct {
	*os.File
	path   string
	itself bool   // the file at path is written, and no temporary one
	hidden string // pattern of the name that the temporary file gets in Commit; empty if it has one
}

// Create makes a temporary file for path in path's folder, which only this user
// can read until Chmod. If it needs a name, that follows pattern, as in os.CreateTemp.
func Create(path, pattern string) (*File, error) {
	fd, err := unix.Open(filepath.Dir(path), unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return createNamed(path, pattern) // network file systems and FAT have no O_TMPFILE
	}
	f := &File{os.NewFile(uintptr(fd), path), path, false, pattern}
	if _, err := os.Lstat(f.inProc()); err != nil { // without /proc it would never get a name
		_ = f.Close()
		return createNamed(path, pattern)
	}
	return f, nil
}

// createNamed is Create with a name from the beginning.
func createNamed(path, pattern string) (*File, error) {
	temp, err := os.CreateTemp(filepath.Dir(path), pattern)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", path, err)
	}
	return &File{temp, path, false, ""}, nil
}

// inProc is the name by which a file without one is linked (open(2), O_TMPFILE).
func (f *File) inProc() string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }

// Output is Create for a file that a person names, which only this user can read until Chmod. A device, a pipe and a
// link, such as /dev/null or /dev/stdout, are written themselves: root would put a file into their place.
func Output(path string) (*File, error) {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().IsRegular() || info.IsDir() {
		return Create(path, "."+filepath.Base(path)+".*.tmp")
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", path, err)
	}
	return &File{f, path, true, ""}, nil
}

// WriteOutput is WriteFile for a file that a person names.
func WriteOutput(path string, content []byte, mode fs.FileMode) error {
	f, err := Output(path)
	if err != nil {
		return err
	}
	return f.fill(content, mode)
}

// Chmod changes the mode of the temporary file; what is written itself keeps its own.
func (f *File) Chmod(mode fs.FileMode) error {
	if f.itself {
		return nil
	}
	return f.File.Chmod(mode)
}

// Commit puts the file on the disk and gives it its path.
func (f *File) Commit() error {
	if f.itself {
		return f.Close()
	}
	err := f.Sync()
	name := f.Name()
	if err == nil && f.hidden != "" {
		name, err = f.appear()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(name, f.path)
	}
	if err == nil {
		return SyncDir(filepath.Dir(f.path))
	}
	if name != f.path {
		_ = os.Remove(name) // the error before says what is wrong
	}
	return fmt.Errorf("write %s: %w", f.path, err)
}

// appear gives a file without a name one of its own: a link cannot replace what is at path.
func (f *File) appear() (name string, err error) {
	before, after, _ := strings.Cut(f.hidden, "*")
	name = filepath.Join(filepath.Dir(f.path), before+rand.Text()+after) // 128 random bits: nothing has this name
	if err := unix.Linkat(unix.AT_FDCWD, f.inProc(), unix.AT_FDCWD, name, unix.AT_SYMLINK_FOLLOW); err != nil {
		return f.path, err
	}
	return name, nil
}

// Discard removes the temporary file unless Commit was called.
func (f *File) Discard() {
	if f.Close() == nil && !f.itself && f.hidden == "" { // else Commit has closed it, or it goes by itself
		_ = os.Remove(f.Name()) // a temporary file that stays does no harm
	}
}

// SyncDir puts the names in a folder on the disk. Without it a file that was
// renamed can be missing after a power cut.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync the folder %s: %w", dir, err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("sync the folder %s: %w", dir, err)
	}
	return nil
}

// WithPrefix returns the paths of what lies in a folder under names that begin with prefix, sorted: such as what an
// earlier process was at when it ended. A folder that is not there has none. The folder's own name may have any
// characters, those of patterns among them.
func WithPrefix(dir, prefix string) (paths []string, err error) {
	all, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, entry := range all {
		if strings.HasPrefix(entry.Name(), prefix) {
			paths = append(paths, filepath.Join(dir, entry.Name()))
		}
	}
	return paths, err
}
