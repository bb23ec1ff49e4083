package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"eidetic/analysis/visual"
	"eidetic/internal/experiment"
	"eidetic/internal/lab"
	"eidetic/internal/store"
)

// origin is the event from which times count: the navigation of the trial whose
// log is named, or lies beside the reel. The zero event is none, and then they
// count from the start frame. What it is, is told in words.
func (c *AnalyzeCmd) origin(frames visual.Frames, start int) (origin lab.Event, told string, err error) {
	told = fmt.Sprintf("frame %d", start)
	file := c.Events
	if file == "" && c.Frames == "" && c.Start < 0 {
		file = filepath.Join(filepath.Dir(c.File), experiment.EventsFile)
	}
	if file == "" {
		return lab.Event{}, told, nil
	}
	found, err := navigation(file)
	if err == nil && (frames.Len() == 0 || found.Latest < frames.Info(0).Time || found.Earliest > frames.Info(frames.Len()-1).Time) {
		err = errors.New("its navigation was not while this was filmed")
	}
	switch {
	case err == nil:
		return found, fmt.Sprintf("the navigation in %s", file), nil
	case c.Events == "": // a file that is not there, or is another's, is no log of this reel
		return lab.Event{}, told, nil
	}
	return lab.Event{}, "", usage(fmt.Errorf("--events %s: %w", file, err))
}

// navigation finds the event that a trial's times count from.
func navigation(file string) (lab.Event, error) {
	f, err := os.Open(file)
	if err != nil {
		var path *fs.PathError
		if errors.As(err, &path) {
			err = path.Err // the message has the name
		}
		return lab.Event{}, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, store.MaxLineBytes)
	for n := 1; lines.Scan(); n++ {
		var e lab.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return lab.Event{}, fmt.Errorf("line %d: %w", n, err)
		}
		if e.Name == "navigate" && e.Earliest <= e.Latest {
			return e, nil
		}
	}
	if err := lines.Err(); err != nil {
		return lab.Event{}, err
	}
	return lab.Event{}, errors.New("no navigation is in it")
}
