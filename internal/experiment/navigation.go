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
	f, err := os.Open(file)
	if err != nil {
		var path *fs.PathError
		if errors.As(err, &path) {
			err = path.Err // the caller adds the file's name
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
	return lab.Event{}, errors.New("the log has no navigation event")
}
