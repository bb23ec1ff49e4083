package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"eidetic/analysis/visual"
	"eidetic/internal/lab"
	"eidetic/internal/run/experiment"
)

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
