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

// maxEventLine bounds a line of a log of events.
const maxEventLine = 1 << 20

// ReadNavigation finds, in a trial's log of events, the event that the trial's
// times count from.
func ReadNavigation(file string) (lab.Event, error) {
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
	lines.Buffer(nil, maxEventLine)
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
