package blob

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"eidetic/internal/fleet"
)

// Lister makes lists of run folders' files. It remembers digests, so that a growing run is not read anew for each of
// its trials.
type Lister struct {
	// Stays says which files stay on the box, by their path in the folder and their size; nil: none.
	Stays func(name string, bytes int64) bool

	mu    sync.Mutex
	known map[identity]string
}

// identity is what tells a file whose content is known from another one, and from itself after a change (as git's index
// does).
type identity struct {
	path    string
	bytes   int64
	mtime   time.Time
	changed syscall.Timespec
	device  uint64
	inode   uint64
}

// mostKnown bounds the memory of a Lister: a run of the most files, several times over.
const mostKnown = 5 * fleet.MaxFiles

// young is the age below which a file's digest is not remembered: a file that changes twice within one tick of the file
// system's clock has the same times.
const young = 2 * time.Second

// ErrChanging is of a file that is being written.
var ErrChanging = errors.New("the file changes while it is read")

// Manifest lists the files of a run folder with their digests, ordered by path. Hidden files, links, sockets and
// devices are left out; names that fleet.CheckFiles refuses, and too many files, are an error. A file that changes
// while it is read is an error (ErrChanging): list a run that is written when a trial has ended.
func (l *Lister) Manifest(ctx context.Context, dir string) ([]fleet.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("list the run: %w", err)
	}
	defer root.Close()
	var files []fleet.File
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && name != "." && errors.Is(err, fs.ErrNotExist):
			return nil // removed meanwhile
		case err != nil:
			return err
		case name == ".":
			return nil
		case strings.HasPrefix(d.Name(), ".") && d.IsDir():
			return fs.SkipDir
		case strings.HasPrefix(d.Name(), ".") || !d.Type().IsRegular():
			return nil
		case len(files) == fleet.MaxFiles:
			return fmt.Errorf("more than %d files", fleet.MaxFiles)
		}
		file, ok, err := l.file(ctx, root, dir, name)
		if ok && err == nil {
			files = append(files, file)
		}
		return err
	})
	if err == nil {
		slices.SortFunc(files, func(a, b fleet.File) int { return strings.Compare(a.Path, b.Path) })
		err = fleet.CheckFiles(files)
	}
	if err != nil {
		return nil, fmt.Errorf("list the run in %s: %w", dir, err)
	}
	return files, nil
}

// file reads one file; ok is false if it has gone, or is no regular file any longer.
func (l *Lister) file(ctx context.Context, root *os.Root, dir, name string) (file fleet.File, ok bool, err error) {
	// A pipe that has taken a file's place must not hold us up.
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ELOOP) {
		return file, false, nil
	}
	if err != nil {
		return file, false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return file, false, err
	}
	digest, err := l.digest(ctx, f, identityOf(dir, name, info))
	if err != nil {
		return file, false, fmt.Errorf("%s: %w", name, err)
	}
	file = fleet.File{Path: name, Bytes: info.Size(), SHA256: digest}
	file.Stays = l.Stays != nil && l.Stays(name, file.Bytes)
	return file, true, nil
}

func identityOf(dir, name string, info fs.FileInfo) identity {
	id := identity{path: path.Join(dir, name), bytes: info.Size(), mtime: info.ModTime()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		id.device, id.inode, id.changed = st.Dev, st.Ino, st.Ctim
	}
	return id
}

func (l *Lister) digest(ctx context.Context, f *os.File, id identity) (string, error) {
	l.mu.Lock()
	digest, ok := l.known[id]
	l.mu.Unlock()
	if ok {
		return digest, nil
	}
	began := time.Now()
	hash := sha256.New()
	n, err := io.Copy(hash, withContext{ctx, io.LimitReader(f, id.bytes+1)})
	if err != nil {
		return "", err
	}
	after, err := f.Stat()
	if err != nil {
		return "", err
	}
	if n != id.bytes || after.Size() != id.bytes || !after.ModTime().Equal(id.mtime) {
		return "", ErrChanging
	}
	digest = hex.EncodeToString(hash.Sum(nil))
	if changed := time.Unix(id.changed.Unix()); began.Sub(id.mtime) > young && began.Sub(changed) > young {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.known == nil || len(l.known) >= mostKnown {
			l.known = map[identity]string{}
		}
		l.known[id] = digest
	}
	return digest, nil
}
