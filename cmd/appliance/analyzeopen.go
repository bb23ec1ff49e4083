package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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
func (c *AnalyzeCmd) open(ctx context.Context) (frames visual.Frames, done func(), err error) {
	if (c.File == "") == (c.Frames == "") {
		return nil, nil, usage(errors.New("analyze: name a reel, or a folder with --frames, and not both"))
	}
	path := c.name()
	st, err := os.Stat(path)
	if err == nil && st.IsDir() {
		if reels, _ := fs.Glob(os.DirFS(path), "trials/*/"+experiment.ReelFile); len(reels) > 0 { // the pattern is valid
			return nil, nil, usage(fmt.Errorf("%s is a run with %d recordings: name one, such as %s", path, len(reels), filepath.Join(path, reels[0])))
		}
	}
	if c.Frames != "" || err == nil && st.IsDir() {
		f, err := file.OpenFolder(path, c.Rate)
		if err != nil {
			return nil, nil, badFile(fmt.Errorf("analyze: %w", err))
		}
		return f, func() {}, nil
	}
	if err == nil && st.Mode().IsRegular() && !isReel(path) {
		src, err := file.Open(ctx, path, file.Options{Format: lab.Format{Rate: c.Rate}})
		if err != nil {
			return nil, nil, badFile(fmt.Errorf("analyze: %s is no reel, and %w", path, err))
		}
		return c.asReel(ctx, src, src.NotLossless())
	}
	r, err := openReel(path)
	if err != nil {
		return nil, nil, err
	}
	if r.Format().Pixels == lab.MJPEG {
		defer r.Close()
		return c.asReel(ctx, mjpeg.New(steady.Play(r)), "MJPEG at the source")
	}
	return r, func() { _ = r.Close() }, nil
}

// name is the recording's, for people.
func (c *AnalyzeCmd) name() string { return cmp.Or(c.Frames, c.File) }

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

// scratch makes a reel in a folder of its own, which remove removes.
func scratch(h reel.Header) (w *reel.Writer, path string, remove func(), err error) {
	dir, remove, err := tempdir.Make("", "appliance-analyze-")
	if err != nil {
		return nil, "", nil, cannot(err)
	}
	path = filepath.Join(dir, "film.reel")
	if w, err = reel.Create(path, h); err != nil {
		remove()
		return nil, "", nil, cannot(err)
	}
	return w, path, remove, nil
}

// asReel writes the pictures of a source into a reel in a temporary folder, and closes the source.
func (c *AnalyzeCmd) asReel(ctx context.Context, src capture.Source, lost string) (frames visual.Frames, done func(), err error) {
	defer src.Close()
	path := c.name()
	w, to, remove, err := scratch(reel.Header{Format: src.Format(), Source: "file:" + path, Wall: time.Now(), NotLossless: lost})
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			remove()
		}
	}()
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
		var other *capture.Interruption
		switch {
		case errors.As(e, &other) && other.Ends == nil:
			e = w.WriteEvent(other.Event)
		case e == nil:
			e = w.WriteFrame(frame)
		}
		if e != nil {
			return nil, nil, errors.Join(badFile(fmt.Errorf("analyze: %s: %w", path, e)), w.Close())
		}
	}
	if err = w.Close(); err != nil {
		return nil, nil, cannot(fmt.Errorf("analyze: read the pictures of %s: %w", path, err))
	}
	r, err := reel.Open(to)
	if err != nil {
		return nil, nil, cannot(err)
	}
	return r, func() { _ = r.Close(); remove() }, nil
}

// hold returns a recording without its source's noise, if it has any.
func (c *AnalyzeCmd) hold(ctx context.Context, frames visual.Frames) (held visual.Frames, noise lab.ScreenNoise, done func(), err error) {
	if c.Raw || !steady.Stirs(frames) {
		return frames, noise, func() {}, nil
	}
	w, to, remove, err := scratch(reel.Header{Format: frames.Format(), Source: "held", Wall: time.Now()})
	if err != nil {
		return nil, noise, nil, err
	}
	defer func() {
		if err != nil {
			remove()
		}
	}()
	noise, err = steady.Hold(ctx, frames, w)
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, noise, nil, badFile(fmt.Errorf("analyze: look for noise: %w", err))
	}
	if noise.Exact() {
		return frames, noise, remove, nil
	}
	r, err := reel.Open(to)
	if err != nil {
		return nil, noise, nil, cannot(err)
	}
	return r, noise, func() { _ = r.Close(); remove() }, nil
}

// origin returns the event from which times count, and what it is in words: the
// navigation in the trial's log that is named, or that lies beside the reel. With
// the zero event times count from the start frame.
func (c *AnalyzeCmd) origin(frames visual.Frames, start int) (origin lab.Event, told string, err error) {
	told = fmt.Sprintf("frame %d", start)
	file := c.Events
	if file == "" && c.Frames == "" && c.Start < 0 {
		file = filepath.Join(filepath.Dir(c.File), experiment.EventsFile)
	}
	if file == "" {
		return lab.Event{}, told, nil
	}
	found, err := experiment.ReadNavigation(file)
	if err == nil && (frames.Len() == 0 || found.Latest < frames.Info(0).Time || found.Earliest > frames.Info(frames.Len()-1).Time) {
		err = errors.New("its navigation lies outside the time of the film")
	}
	switch {
	case err == nil:
		return found, fmt.Sprintf("the navigation in %s", file), nil
	case c.Events == "": // a file that is not there, or is another's, is no log of this reel
		return lab.Event{}, told, nil
	}
	return lab.Event{}, "", usage(fmt.Errorf("--events %s: %w", file, err))
}

// troubles are what happened to a recording's source, so that it may show other pictures than the screen did.
func troubles(r *reel.Reader) (notes []string) {
	for _, e := range r.Events() {
		if slices.Contains([]string{lab.SourceDamaged, lab.SourceSignalLost, lab.SourceBlue}, e.Kind) {
			notes = append(notes, fmt.Sprintf("%s: pictures may not be what the screen showed", e))
			break
		}
	}
	if n := r.Summary().Corrupt; n > 0 {
		notes = append(notes, fmt.Sprintf("%d pictures are marked as damaged by their source: they may not be what the screen "+
			"showed", n))
	}
	return notes
}

// doubts says why the measurements may mean nothing: the source was lossy, or the recording shows no
// page load.
func (c *AnalyzeCmd) doubts(frames visual.Frames, r *visual.Result) (notes []string) {
	lossy := ""
	switch f := frames.(type) {
	case *reel.Reader:
		lossy = f.Header().NotLossless
	case *file.Folder:
		lossy = f.NotLossless()
	}
	if lossy != "" {
		text := fmt.Sprintf("the source is lossy (%s): compression changes pixels on its own, so that first changes come too early "+
			"and last ones too late; ", lossy)
		if c.Tolerance == "0" {
			text += "--tolerance 16 leaves out small differences"
		} else {
			text += "differences of up to " + c.Tolerance + " are left out"
		}
		notes = append(notes, text)
	}
	if why := r.NoLoad(); why != "" {
		notes = append(notes, "this is no page load that could be measured: "+why)
	}
	return notes
}
