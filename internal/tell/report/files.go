package report

import (
	"encoding/json"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"io"
	"net/url"
	"os"
	"path"
	"path/filepath"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
)

// artifact is a file of a trial that the page links to.
type artifact struct {
	URL           string // relative to the report
	Name          string
	Size          string
	Width, Height int // of a picture, in pixels
}

// thumb is one picture of a filmstrip.
type thumb struct {
	artifact
	Frame  int
	TimeMS float64
	Label  string
}

// trialPath is the path of a trial's file, relative to the run's folder.
func trialPath(n int, name string) string {
	return path.Join("trials", store.TrialName(n), filepath.ToSlash(name))
}

func openArtifact(files *os.Root, n int, name string) (*os.File, error) {
	if !filepath.IsLocal(name) {
		return nil, fmt.Errorf("%q leaves the trial's folder", name)
	}
	f, _, err := store.OpenFile(files, trialPath(n, name))
	return f, err
}

// artifactOf looks up a file by its role in t.Files. It returns nil if the trial has no
// such file or the file is missing.
func artifactOf(files *os.Root, t *lab.Trial, role string) *artifact {
	name, ok := t.Files[role]
	if !ok {
		return nil
	}
	return artifactAt(files, t.Number, name)
}

func artifactAt(files *os.Root, n int, name string) *artifact {
	if !filepath.IsLocal(name) {
		return nil
	}
	a := fileAt(files, trialPath(n, name))
	if a != nil {
		a.Name = name
	}
	return a
}

// fileAt looks up a file of the run's folder.
func fileAt(files *os.Root, name string) *artifact {
	f, _, err := store.OpenFile(files, name)
	if err != nil {
		return nil
	}
	defer f.Close()
	a := &artifact{URL: (&url.URL{Path: name}).EscapedPath(), Name: name}
	if info, err := f.Stat(); err == nil {
		a.Size = size(info.Size())
	}
	var c image.Config
	switch path.Ext(name) {
	case ".png":
		c, err = png.DecodeConfig(io.LimitReader(f, 1<<20))
	case ".jpg", ".jpeg":
		c, err = jpeg.DecodeConfig(io.LimitReader(f, 1<<20))
	}
	if err == nil {
		a.Width, a.Height = c.Width, c.Height
	}
	return a
}

// Bounds on a filmstrip's list of pictures.
const (
	maxThumbs     = 200
	maxStripBytes = 1 << 20
)

// filmstrip reads the pictures of a filmstrip. t.Files["filmstrip"] is either a JSON list
// of {"frame","time_ms","file"} with the files beside it, or one picture of the whole
// strip, which is returned as sheet.
func filmstrip(files *os.Root, t *lab.Trial) (thumbs []thumb, sheet *artifact) {
	a := artifactOf(files, t, "filmstrip")
	if a == nil || path.Ext(a.Name) != ".json" {
		return nil, a
	}
	f, err := openArtifact(files, t.Number, a.Name)
	if err != nil {
		return nil, nil
	}
	defer f.Close()
	var list []struct {
		Frame  int     `json:"frame"`
		TimeMS float64 `json:"time_ms"`
		File   string  `json:"file"`
	}
	if err := json.NewDecoder(io.LimitReader(f, maxStripBytes)).Decode(&list); err != nil {
		return nil, nil
	}
	for _, one := range list[:min(len(list), maxThumbs)] {
		name := path.Join(path.Dir(filepath.ToSlash(a.Name)), one.File)
		if p := artifactAt(files, t.Number, name); p != nil {
			thumbs = append(thumbs, thumb{artifact: *p, Frame: one.Frame, TimeMS: one.TimeMS, Label: number(one.TimeMS, "ms") + " ms"})
		}
	}
	return thumbs, nil
}
