package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"eidetic/analysis/visual"
	"eidetic/capture"
	"eidetic/capture/file"
	"eidetic/capture/mjpeg"
	"eidetic/capture/reel"
	"eidetic/capture/steady"
	"eidetic/internal/base/tempdir"
	"eidetic/internal/lab"
	"eidetic/internal/run/experiment"
)

// open opens what is to be analysed: a reel, a folder of pictures, or a film, which is
// turned into a reel on the way.
func (c *AnalyzeCmd) open(ctx context.Context) (frames visual.Frames, name string, done func(), err error) {
	if (c.File == "") == (c.Frames == "") {
		return nil, "", nil, usage(errors.New("analyze: name a reel, or a folder with --frames, and not both"))
	}
	path := c.File
	if c.Frames != "" {
		path = c.Frames
	}
	st, err := os.Stat(path)
	if err == nil && st.IsDir() {
		if reels, _ := fs.Glob(os.DirFS(path), "trials/*/"+experiment.ReelFile); len(reels) > 0 { // the pattern is valid
			return nil, "", nil, usage(fmt.Errorf("%s is a run with %d recordings: name one, such as %s", path, len(reels), filepath.Join(path, reels[0])))
		}
	}
	if c.Frames != "" || err == nil && st.IsDir() {
		f, err := file.OpenFolder(path, c.Rate)
		if err != nil {
			return nil, "", nil, badFile(fmt.Errorf("analyze: %w", err))
		}
		return f, path, func() {}, nil
	}
	if err == nil && st.Mode().IsRegular() && !isReel(path) {
		return c.importFilm(ctx, path)
	}
	r, err := openReel(path)
	if err != nil {
		return nil, "", nil, err
	}
	if r.Format().Pixels == lab.MJPEG {
		defer r.Close()
		return c.asReel(ctx, mjpeg.New(steady.Play(r)), path, "MJPEG at the source")
	}
	return r, path, func() { _ = r.Close() }, nil
}

// isReel says whether a file begins as reels do; one that cannot be read may be one.
func isReel(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return true
	}
	defer f.Close()
	start := make([]byte, 5)
	_, err = io.ReadFull(f, start)
	return err == nil && string(start) == "\x8bREEL"
}

// importFilm turns a film into a reel in a temporary folder.
func (c *AnalyzeCmd) importFilm(ctx context.Context, path string) (frames visual.Frames, name string, done func(), err error) {
	src, err := file.Open(ctx, path, file.Options{Format: lab.Format{Rate: c.Rate}})
	if err != nil {
		return nil, "", nil, badFile(fmt.Errorf("analyze: %s is no reel, and %w", path, err))
	}
	return c.asReel(ctx, src, path, src.NotLossless())
}

// asReel writes the pictures of a source into a reel in a temporary folder, and closes the source.
func (c *AnalyzeCmd) asReel(ctx context.Context, src capture.Source, path, lost string) (
	frames visual.Frames, name string, done func(), err error,
) {
	defer src.Close()
	dir, remove, err := tempdir.Make("", "appliance-analyze-")
	if err != nil {
		return nil, "", nil, cannot(err)
	}
	defer func() {
		if err != nil {
			remove()
		}
	}()
	to := filepath.Join(dir, "film.reel")
	w, err := reel.Create(to, reel.Header{Format: src.Format(), Source: "file:" + path, Wall: time.Now(), NotLossless: lost})
	if err != nil {
		return nil, "", nil, cannot(err)
	}
	c.cut = nil
	for n := 0; ; n++ {
		frame, e := src.Next(ctx)
		if errors.Is(e, file.ErrCut) && n > 0 { // a recorder that was killed; what it wrote is whole
			c.cut = e
			break
		}
		if errors.Is(e, io.EOF) {
			break
		}
		if e == nil {
			e = w.WriteFrame(frame)
		}
		if e != nil {
			err = errors.Join(badFile(fmt.Errorf("analyze: %s: %w", path, e)), w.Close())
			return nil, "", nil, err
		}
	}
	if err = w.Close(); err != nil {
		return nil, "", nil, cannot(fmt.Errorf("analyze: read the pictures of %s: %w", path, err))
	}
	r, err := reel.Open(to)
	if err != nil {
		return nil, "", nil, cannot(err)
	}
	return r, path, func() { _ = r.Close(); remove() }, nil
}

// hold returns a recording without its source's noise, if it has any.
func (c *AnalyzeCmd) hold(ctx context.Context, frames visual.Frames) (held visual.Frames, noise lab.ScreenNoise, done func(), err error) {
	if c.Raw || !steady.Stirs(frames) {
		return frames, noise, func() {}, nil
	}
	dir, done, err := tempdir.Make("", "appliance-analyze-")
	if err != nil {
		return nil, noise, nil, cannot(err)
	}
	defer func() {
		if err != nil {
			done()
		}
	}()
	to := filepath.Join(dir, "held.reel")
	w, err := reel.Create(to, reel.Header{Format: frames.Format(), Source: "held", Wall: time.Now()})
	if err != nil {
		return nil, noise, nil, cannot(err)
	}
	noise, err = steady.Hold(ctx, frames, w)
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, noise, nil, badFile(fmt.Errorf("analyze: look for noise: %w", err))
	}
	if noise.Exact() {
		return frames, noise, done, nil
	}
	r, err := reel.Open(to)
	if err != nil {
		return nil, noise, nil, cannot(err)
	}
	remove := done
	return r, noise, func() { _ = r.Close(); remove() }, nil
}
