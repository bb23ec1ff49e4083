package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"eidetic/internal/atomicfile"
	"eidetic/internal/panel"
	"eidetic/internal/store"
	"eidetic/netlab/archive"
)

// archives are the recordings that people brought.
type archives struct{ dir string }

// maxArchive bounds what is taken in.
const maxArchive = 4 << 30

// incoming begins the names of uploads that are not whole yet.
const incoming = ".incoming-"

// sweep removes the uploads that an earlier service was ended in. It is for the
// service's start: later they may belong to somebody.
func (a archives) sweep(log *slog.Logger) {
	left, _ := filepath.Glob(filepath.Join(a.dir, incoming+"*")) // the pattern is good
	for _, file := range left {
		if err := os.Remove(file); err != nil {
			log.Warn("an upload that was cut off stays", "error", err)
			continue
		}
		log.Info("removed an upload that was cut off", "file", file)
	}
}

// make makes the folder where there is none.
func (a archives) make() error {
	err := os.Mkdir(a.dir, 0o755)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return atomicfile.SyncDir(filepath.Dir(a.dir))
}

func refuse(status int, format string, args ...any) error {
	return &panel.Refusal{Status: status, Err: fmt.Errorf(format, args...)}
}

// path is where a recording is, or would be.
func (a archives) path(name string) (string, error) {
	if !store.ValidID(name) || !strings.HasSuffix(name, ".wacz") {
		return "", refuse(http.StatusUnprocessableEntity, "%q is no name of a recording: letters, digits, '.', '-' and '_', and .wacz at the end", name)
	}
	return filepath.Join(a.dir, name), nil
}

// List implements panel.Archives.
func (a archives) List(context.Context) ([]panel.Archive, error) {
	entries, err := os.ReadDir(a.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []panel.Archive
	for _, e := range entries {
		if _, err := a.path(e.Name()); err != nil || !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue // removed just now
		}
		all = append(all, panel.Archive{Name: e.Name(), Bytes: info.Size(), Modified: info.ModTime().UTC()})
	}
	return all, nil
}

// Put implements panel.Archives. The recording has its name only when it is
// whole and can be read.
func (a archives) Put(ctx context.Context, name string, content io.Reader) (panel.Archive, error) {
	path, err := a.path(name)
	if err != nil {
		return panel.Archive{}, err
	}
	if err := a.make(); err != nil {
		return panel.Archive{}, err
	}
	f, err := os.CreateTemp(a.dir, incoming)
	if err != nil {
		return panel.Archive{}, err
	}
	defer os.Remove(f.Name()) // gone already when all went well
	n, err := io.Copy(f, io.LimitReader(content, maxArchive+1))
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	switch {
	case ctx.Err() != nil:
		return panel.Archive{}, ctx.Err()
	case err != nil:
		return panel.Archive{}, err
	case n > maxArchive:
		return panel.Archive{}, refuse(http.StatusRequestEntityTooLarge, "recordings of more than %d GiB are not taken", maxArchive>>30)
	}
	if _, err := archive.Open(f.Name()); err != nil {
		// The name of our own file is nobody's business.
		return panel.Archive{}, refuse(http.StatusUnprocessableEntity, "%s", strings.ReplaceAll(err.Error(), f.Name(), name))
	}
	// What is answered as taken in outlasts a power cut.
	if err := errors.Join(os.Rename(f.Name(), path), atomicfile.SyncDir(a.dir)); err != nil {
		return panel.Archive{}, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return panel.Archive{}, err
	}
	return panel.Archive{Name: name, Bytes: info.Size(), Modified: info.ModTime().UTC()}, nil
}

// Open implements panel.Archives.
func (a archives) Open(name string) (*os.File, error) {
	path, err := a.path(name)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, refuse(http.StatusNotFound, "there is no recording %q", name)
	}
	return f, err
}

// Remove implements panel.Archives.
func (a archives) Remove(name string) error {
	path, err := a.path(name)
	if err != nil {
		return err
	}
	if err := os.Remove(path); errors.Is(err, fs.ErrNotExist) {
		return refuse(http.StatusNotFound, "there is no recording %q", name)
	} else if err != nil {
		return err
	}
	return nil
}
