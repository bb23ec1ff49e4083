package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"eidetic/analysis/visual"
	"eidetic/capture/file"
	"eidetic/capture/reel"
	"eidetic/internal/experiment"
)

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

// wrongFile replaces the error about a file that is no reel by the command that measures it.
func wrongFile(path string, err error) error {
	st, statErr := os.Stat(path)
	switch {
	case statErr != nil:
		return err
	case st.IsDir():
		if reels, _ := filepath.Glob(filepath.Join(path, "trials", "*", experiment.ReelFile)); len(reels) > 0 {
			return fmt.Errorf("%s is a run with %d recordings: name one, such as %s", path, len(reels), reels[0])
		}
		return fmt.Errorf("%s is a folder: if it holds pictures, use appliance analyze --frames %[1]s", path)
	case !st.Mode().IsRegular() || errors.Is(err, fs.ErrPermission) || !errors.Is(err, reel.ErrNotReel):
		return err
	}
	return fmt.Errorf("%w; a video is measured with: appliance capture --source file:%s --out %[2]s.reel && appliance analyze %[2]s.reel",
		err, path)
}
