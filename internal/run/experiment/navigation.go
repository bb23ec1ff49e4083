package experiment

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"eidetic/internal/lab"
)

// maxEventLine bounds a line of an event log.
const maxEventLine = 1 << 20

// ReadNavigation finds, in a trial's event log, the event from which the trial's times
// count.
func ReadNavigation(file string) (lab.Event, error) {
	events, err := ReadEvents(file)
	if err != nil {
		return lab.Event{}, err
	}
	for _, e := range events {
		if e.Name == "navigate" && e.Earliest <= e.Latest {
			return e, nil
		}
	}
	return lab.Event{}, errors.New("the log has no navigation event")
}

// mostEvents bounds a log: an hour of scrolling has some 200,000 inputs.
const mostEvents = 1 << 20

// ReadEvents reads a trial's event log.
func ReadEvents(file string) ([]lab.Event, error) {
	f, err := os.Open(file)
	if err != nil {
		var path *fs.PathError
		if errors.As(err, &path) {
			err = path.Err // the caller adds the file's name
		}
		return nil, err
	}
	defer f.Close()
	var events []lab.Event
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxEventLine)
	for n := 1; lines.Scan(); n++ {
		var e lab.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if len(events) == mostEvents {
			return nil, fmt.Errorf("line %d: more than %d events", n, mostEvents)
		}
		events = append(events, e)
	}
	return events, lines.Err()
}
