package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"eidetic/internal/base/atomicfile"
	"eidetic/internal/web/panel"
	"eidetic/netlab/archive"
)

// Rename implements panel.Archives. While it is carried out the recording may have both names.
func (a Uploads) Rename(name, to string) (panel.Archive, error) {
	old, err := a.path(name)
	if err != nil {
		return panel.Archive{}, err
	}
	path, err := a.path(to)
	if err != nil {
		return panel.Archive{}, err
	}
	switch err := os.Link(old, path); { // fails if the name is taken, unlike a rename
	case errors.Is(err, fs.ErrNotExist):
		return panel.Archive{}, refuse(http.StatusNotFound, "there is no recording %q", name)
	case errors.Is(err, fs.ErrExist):
		return panel.Archive{}, refuse(http.StatusConflict, "there is a recording %q already: choose another name", to)
	case err != nil:
		return panel.Archive{}, err
	}
	if err := errors.Join(os.Remove(old), atomicfile.SyncDir(a.Dir)); err != nil {
		return panel.Archive{}, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return panel.Archive{}, err
	}
	return archiveOf(info), nil
}

// Edit implements panel.Archives. The recording is read, changed and written in a process of its own, and then judged
// like an upload.
func (a Uploads) Edit(ctx context.Context, file, into, match string, e panel.ArchiveEdit, logs []string, free func() error) (
	made panel.EditedArchive, err error,
) {
	path, err := a.path(into)
	if err != nil {
		return made, err
	}
	change, err := changeOf(e)
	if err != nil {
		return made, err
	}
	change.Used = logs
	if err := a.makeDir(); err != nil {
		return made, err
	}
	dir, err := os.MkdirTemp(a.Dir, incoming)
	if err != nil {
		return made, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	out := filepath.Join(dir, into) // a recording without a title is called after its file
	done, err := a.Check.Change(ctx, file, out, change)
	switch {
	case err != nil:
		return made, err
	case done.Refused != "":
		text := strings.NewReplacer(out, into, file, filepath.Base(file)).Replace(done.Refused)
		return made, refuse(http.StatusUnprocessableEntity, "%s", text)
	}
	if err := syncFile(out); err != nil {
		return made, err
	}
	made.Left, made.Edited = done.Left, done.Edited
	made.Archive, err = a.accept(ctx, out, path, match, free)
	return made, err
}

// syncFile has the disk keep a file, which others may read from now on.
func syncFile(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(0o644), f.Sync(), f.Close())
}

// changeOf is a change as package archive takes it.
func changeOf(e panel.ArchiveEdit) (c archive.Change, err error) {
	ms := func(v float64) time.Duration { return time.Duration(v * float64(time.Millisecond)) }
	c = archive.Change{LeaveOut: e.LeaveOut, Keep: e.Keep, Pages: e.Pages, Until: ms(e.Until)}
	for i, a := range e.Answers {
		edit := archive.Edit{Status: a.Status, Set: a.Set, Drop: a.Drop, Body: a.Body, FirstByte: ms(a.FirstByte)}
		if err = edit.Validate(); err == nil && edit.Empty() {
			err = fmt.Errorf("say what to change: status, set, drop, body or first_byte_ms")
		}
		if err != nil {
			return c, refuse(http.StatusUnprocessableEntity, "answers[%d]: %w", i, err)
		}
		c.Answers = append(c.Answers, archive.AnswerChange{URL: a.URL, Edit: edit})
	}
	return c, nil
}
