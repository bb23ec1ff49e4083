package panel

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"eidetic/internal/keep/store"
)

// maxFiles bounds the list of a run's files; it suffices for a thousand trials.
const maxFiles = 10_000

// File is a file of a run.
type File struct {
	Path     string    `json:"path" doc:"Relative to the run's folder" example:"trials/001/evidence.webm"`
	Bytes    int64     `json:"bytes" doc:"Size of the file"`
	Modified time.Time `json:"modified"`
}

type filesBody struct {
	Body struct {
		Files []File `json:"files"`
		More  bool   `json:"more" doc:"Whether there are more files than listed"`
	}
}

// files lists the files that the artifact route serves.
func (p *Panel) files(ctx context.Context, in *idInput) (*filesBody, error) {
	root, err := p.Store.Files(in.ID)
	if errors.Is(err, store.ErrNotFound) {
		return nil, huma.Error404NotFound("run " + clip(in.ID) + " has no files")
	}
	if err != nil {
		return nil, p.internalError(err)
	}
	defer root.Close()
	body := &filesBody{}
	body.Body.Files = []File{}
	err = fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case path == ".":
			return err
		case err != nil || isHidden(path) && d.IsDir():
			return fs.SkipDir // unreadable, or removed meanwhile
		case isHidden(path) || !d.Type().IsRegular():
			return nil
		case len(body.Body.Files) == maxFiles:
			body.Body.More = true
			return fs.SkipAll
		}
		if info, err := d.Info(); err == nil { // a running run renames and removes files
			body.Body.Files = append(body.Body.Files, File{path, info.Size(), info.ModTime().UTC()})
		}
		return nil
	})
	if err != nil {
		return nil, p.internalError(err)
	}
	return body, nil
}
