package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"eidetic/internal/base/atomicfile"
)

// Folder is a store in a folder of one file system: DIR/ab/cd/abcd…, mode 0600. Files that are being put or removed are
// in DIR/tmp; what a crash leaves there is removed by Collect.
type Folder struct{ dir string }

// OpenFolder makes the folder unless it exists.
func OpenFolder(dir string) (*Folder, error) {
	if err := os.MkdirAll(filepath.Join(dir, temporary), 0o700); err != nil {
		return nil, fmt.Errorf("folder of blobs: %w", err)
	}
	return &Folder{dir}, nil
}

const (
	temporary  = "tmp"
	goneSuffix = ".gone"
)

func (f *Folder) path(digest string) string {
	return filepath.Join(f.dir, digest[:2], digest[2:4], digest)
}

// Has renews the time of a blob that it finds.
func (f *Folder) Has(_ context.Context, digest string) (int64, bool, error) {
	if err := CheckDigest(digest); err != nil {
		return 0, false, err
	}
	info, err := os.Stat(f.path(digest))
	if err == nil && time.Since(info.ModTime()) > Renewal {
		now := time.Now()
		if err = os.Chtimes(f.path(digest), now, now); err == nil {
			// The kernel looks the file up before it sets the time: Remove may have taken it away, and seen the old
			// time, in between.
			info, err = os.Stat(f.path(digest))
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist): // never there, or Remove was faster
		return 0, false, nil
	case err != nil:
		return 0, false, err
	}
	return info.Size(), true, nil
}

// Put copies the content and has it on the disk when it returns.
func (f *Folder) Put(ctx context.Context, digest string, size int64, content io.Reader) error {
	if err := CheckDigest(digest); err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Join(f.dir, temporary), digest[:12]+".*.put")
	if err != nil {
		return fmt.Errorf("put the blob %.12s: %w", digest, noRoom(err))
	}
	defer os.Remove(temp.Name()) // in vain after adopt
	_, err = io.Copy(temp, newChecked(withContext{ctx, content}, digest, size))
	if err == nil {
		err = temp.Sync()
	}
	if err = errors.Join(err, temp.Close()); err != nil {
		return fmt.Errorf("put the blob %.12s: %w", digest, noRoom(err))
	}
	return f.adopt(digest, temp.Name())
}

// adopt moves a file, which is whole and synced, to its place. It fails with EXDEV for one of another file system.
func (f *Folder) adopt(digest, from string) error {
	err := f.moveIn(digest, from)
	if err != nil {
		return fmt.Errorf("put the blob %.12s: %w", digest, noRoom(err))
	}
	return nil
}

func (f *Folder) moveIn(digest, from string) error {
	now := time.Now()
	if err := os.Chtimes(from, now, now); err != nil {
		return err
	}
	path := f.path(digest)
	dir := filepath.Dir(path)
	err := os.Rename(from, path)
	if errors.Is(err, fs.ErrNotExist) {
		for _, dir := range []string{filepath.Dir(dir), dir} {
			if err := os.Mkdir(dir, 0o700); err == nil {
				err = atomicfile.SyncDir(filepath.Dir(dir))
				if err != nil {
					return err
				}
			} else if !errors.Is(err, fs.ErrExist) {
				return err
			}
		}
		err = os.Rename(from, path)
	}
	if err != nil {
		return err
	}
	return atomicfile.SyncDir(dir)
}

// Open opens the file of a blob.
func (f *Folder) Open(_ context.Context, digest string) (Blob, error) {
	if err := CheckDigest(digest); err != nil {
		return nil, err
	}
	file, err := os.Open(f.path(digest))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%.12s: %w", digest, ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return nil, err
	}
	return newVerified(file, digest, info.Size()), nil
}

// Remove takes the file away before it looks at its time for the last time, so that a Has of another process either
// finds nothing or has made the blob young.
func (f *Folder) Remove(_ context.Context, digest string, before time.Time) (bool, error) {
	if err := CheckDigest(digest); err != nil {
		return false, err
	}
	path := f.path(digest)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.ModTime().Before(before) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	gone := filepath.Join(f.dir, temporary, digest+goneSuffix)
	if err := os.Rename(path, gone); err != nil {
		if errors.Is(err, fs.ErrNotExist) { // another process removes it
			return false, nil
		}
		return false, err
	}
	if info, err := os.Stat(gone); err == nil && !info.ModTime().Before(before) {
		// A link, because a new file may be at the path already.
		if err := os.Link(gone, path); err != nil && !errors.Is(err, fs.ErrExist) {
			return false, fmt.Errorf("the blob %.12s is in use and cannot be put back: it is at %s: %w", digest, gone, err)
		}
		return false, os.Remove(gone)
	}
	return true, os.Remove(gone)
}

// List goes through the folders.
func (f *Folder) List(ctx context.Context) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		err := fs.WalkDir(os.DirFS(f.dir), ".", func(name string, d fs.DirEntry, err error) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err != nil {
				return err
			}
			if d.IsDir() {
				if name == temporary {
					return fs.SkipDir
				}
				return nil
			}
			if CheckDigest(d.Name()) != nil || !d.Type().IsRegular() {
				return nil // not ours
			}
			info, err := d.Info()
			if errors.Is(err, fs.ErrNotExist) {
				return nil // removed meanwhile
			}
			if !yield(infoOf(d.Name(), info, err)) || err != nil {
				return fs.SkipAll
			}
			return nil
		})
		if err != nil {
			yield(Info{}, fmt.Errorf("list the blobs in %s: %w", f.dir, err))
		}
	}
}

func infoOf(digest string, info fs.FileInfo, err error) (Info, error) {
	if err != nil {
		return Info{}, err
	}
	return Info{digest, info.Size(), info.ModTime()}, nil
}

// sweep removes what a crash has left of blobs that were being put before a time. One that was being removed is put
// back: the next Collect decides again.
func (f *Folder) sweep(_ context.Context, before time.Time) error {
	dir := filepath.Join(f.dir, temporary)
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		info, err := e.Info()
		if err != nil || !info.ModTime().Before(before) {
			continue // another process is at work
		}
		if digest, ok := strings.CutSuffix(e.Name(), goneSuffix); ok && CheckDigest(digest) == nil {
			if err := os.Link(name, f.path(digest)); err != nil && !errors.Is(err, fs.ErrExist) {
				continue
			}
		}
		_ = os.Remove(name) // the next sweep tries again
	}
	return err
}

// link gives a blob a second name, or a copy where that is not possible.
func (f *Folder) link(ctx context.Context, digest, path string) error {
	if err := CheckDigest(digest); err != nil {
		return err
	}
	err := os.Link(f.path(digest), path)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrExist):
		return err
	case errors.Is(err, syscall.EXDEV), errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EMLINK), errors.Is(err, syscall.ENOTSUP),
		errors.Is(err, fs.ErrNotExist): // of the blob or of the path's folder: the copy says which
		return Copy(ctx, f, digest, path)
	}
	return err
}

// noRoom marks the errors of a full disk.
func noRoom(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %w", ErrNoRoom, err)
	}
	return err
}
