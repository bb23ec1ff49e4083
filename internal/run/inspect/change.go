package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"eidetic/netlab/archive"
)

// Changed is what became of a change.
type Changed struct {
	Left   int `json:"left"`   // requests that were left out
	Edited int `json:"edited"` // answers that were changed
	// Refused says why the change cannot be made.
	Refused string `json:"refused,omitempty"`
}

// Bounds of a change, and of the files that this process may write.
const (
	maxChange = 16 << 20
	maxFile   = 4 << 30
)

// Change writes a changed recording into a new file. Its pages may be named as a report names them.
func Change(file, out string, c archive.Change, memory int64) Changed {
	a, err := archive.OpenWithin(file, archive.Limits{Memory: memory})
	if err != nil {
		return Changed{Refused: err.Error()}
	}
	if a.Lost() > 0 {
		return Changed{Refused: fmt.Sprintf("%d exchanges or damaged parts of it cannot be read: appliance archive import --partial makes a recording of the rest",
			a.Lost())}
	}
	for i, name := range c.Pages {
		for _, p := range a.Pages() {
			if cut(p.URL, maxURL) == name {
				c.Pages[i] = p.URL
			}
		}
	}
	made, left, edited, err := a.Changed(c)
	if err == nil {
		err = archive.Save(out, made)
	}
	if err != nil {
		return Changed{Refused: err.Error()}
	}
	return Changed{Left: left, Edited: edited}
}

// Import writes the archive of another program's file into a new file; what reading it left out, lacks or changed goes
// with it.
func Import(file, out string, memory int64) Changed {
	a, err := archive.OpenWithin(file, archive.Limits{Memory: memory})
	if err == nil {
		a, err = a.Import()
	}
	if err == nil {
		err = archive.Save(out, a)
	}
	if err != nil {
		return Changed{Refused: err.Error()}
	}
	return Changed{}
}

// task is what the process of its own does to a recording.
type task struct {
	Import bool
	Change archive.Change
}

// do carries out a task.
func (t task) do(file, out string, memory int64) Changed {
	if t.Import {
		return Import(file, out, memory)
	}
	return Change(file, out, t.Change, memory)
}

// Change makes a change in a process of its own. An error means that it could not be tried; that it is refused is in
// the answer.
func (c Checker) Change(ctx context.Context, file, out string, change archive.Change) (Changed, error) {
	return c.write(ctx, file, out, task{Change: change})
}

// Import imports a file in a process of its own, as Change does.
func (c Checker) Import(ctx context.Context, file, out string) (Changed, error) {
	return c.write(ctx, file, out, task{Import: true})
}

func (c Checker) write(ctx context.Context, file, out string, t task) (done Changed, err error) {
	memory := c.Memory
	if memory == 0 {
		memory = archive.MemoryOf(archive.DefaultShare)
	}
	if len(c.Command) == 0 {
		return t.do(file, out, memory), nil
	}
	text, err := json.Marshal(t)
	if err != nil {
		return done, err
	}
	died, err := c.start(ctx, &done, text, file, strconv.FormatInt(memory, 10), out)
	if died != "" {
		return Changed{Refused: died}, err
	}
	return done, err
}

// ServeChange is the half of Checker.Change and Checker.Import in the process of its own.
func ServeChange(w io.Writer, r io.Reader, file, out string, memory int64) error {
	if err := confine(file, memory); err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(r, maxChange+1))
	if err != nil {
		return err
	}
	if len(text) > maxChange {
		return errors.New("the change is too large")
	}
	var t task
	if err := json.Unmarshal(text, &t); err != nil {
		return fmt.Errorf("the change: %w", err)
	}
	return json.NewEncoder(w).Encode(t.do(file, out, memory))
}
