package main

import (
	"fmt"

	"eidetic/analysis/visual"
	"eidetic/capture/file"
	"eidetic/capture/reel"
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
