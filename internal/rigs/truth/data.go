package truth

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// The files of a folder of data.
const (
	planFile   = "plan.json"
	trialsFile = "trials.jsonl"
)

// Data are the trials of a plan, in a folder: the plan, and one line of JSON for each
// trial, written when the trial ends. If a later trial of the experiment changes the
// tolerance, and with it whether an earlier trial is valid, that trial gets another line, which replaces the first.
type Data struct {
	Plan   Plan
	Trials []Trial
	file   *os.File // nil if they are only read
}

// Read reads the data of a folder.
func Read(dir string) (*Data, error) {
	d := &Data{}
	if err := readPlan(dir, &d.Plan); err != nil {
		return nil, err
	}
	content, err := os.ReadFile(filepath.Join(dir, trialsFile))
	if err != nil {
		return nil, err
	}
	if d.Trials, _, err = parseTrials(content); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, trialsFile), err)
	}
	return d, nil
}

func readPlan(dir string, p *Plan) error {
	content, err := os.ReadFile(filepath.Join(dir, planFile))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(content, p); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(dir, planFile), err)
	}
	return nil
}

// Open opens the folder to add trials of the plan to it. It moves trials of another plan
// to a name with the time, which it returns as aside.
func Open(dir string, p Plan, now time.Time) (d *Data, aside string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, "", err
	}
	file, err := openLocked(filepath.Join(dir, trialsFile))
	if err != nil {
		return nil, "", err
	}
	defer func() {
		if err != nil {
			file.Close()
		}
	}()
	var old Plan
	switch err := readPlan(dir, &old); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, "", err
	case !samePlan(old, p):
		aside = filepath.Join(dir, now.UTC().Format("20060102-150405")+"-")
		for _, name := range []string{planFile, trialsFile} {
			if err := os.Rename(filepath.Join(dir, name), aside+name); err != nil {
				return nil, "", err
			}
		}
		file.Close()
		aside += trialsFile
		if file, err = openLocked(filepath.Join(dir, trialsFile)); err != nil {
			return nil, "", err
		}
	}
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return nil, "", err
	}
	if err := os.WriteFile(filepath.Join(dir, planFile), append(text, '\n'), 0o644); err != nil {
		return nil, "", err
	}
	content, err := io.ReadAll(file)
	if err != nil {
		return nil, "", err
	}
	d = &Data{Plan: p, file: file}
	var whole int
	if d.Trials, whole, err = parseTrials(content); err != nil {
		return nil, "", fmt.Errorf("%s: %w", filepath.Join(dir, trialsFile), err)
	}
	if whole < len(content) { // an incomplete line, from a program that was killed
		if err := file.Truncate(int64(whole)); err != nil {
			return nil, "", err
		}
	}
	return d, aside, nil
}

// openLocked opens a file that only one program at a time may append to.
func openLocked(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND|syscall.O_CLOEXEC, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s is being written by another program: %w", name, err)
	}
	return f, nil
}

func samePlan(a, b Plan) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// parseTrials parses the complete lines, and returns the offset of their end.
func parseTrials(content []byte) (trials []Trial, whole int, err error) {
	for n := 1; ; n++ {
		length := bytes.IndexByte(content[whole:], '\n')
		if length < 0 {
			return trials, whole, nil
		}
		var t Trial
		if err := json.Unmarshal(content[whole:whole+length], &t); err != nil {
			return nil, 0, fmt.Errorf("line %d: %w", n, err)
		}
		trials, whole = put(trials, t), whole+length+1
	}
}

// put adds a trial, or replaces an earlier version of it.
func put(trials []Trial, t Trial) []Trial {
	for i := len(trials) - 1; i >= 0; i-- { // an earlier version is among the last trials
		if trials[i].Experiment == t.Experiment && trials[i].Number == t.Number {
			trials[i] = t
			return trials
		}
	}
	return append(trials, t)
}

// Add appends a trial, and returns when it is on the disk.
func (d *Data) Add(t Trial) error {
	line, err := json.Marshal(t)
	if err != nil {
		return err
	}
	if _, err := d.file.Write(append(line, '\n')); err != nil {
		return err
	}
	d.Trials = put(d.Trials, t)
	return d.file.Sync()
}

// Of lists the trials of an experiment by number.
func (d *Data) Of(name string) (trials []Trial) {
	for _, t := range d.Trials {
		if t.Experiment == name {
			trials = append(trials, t)
		}
	}
	return trials
}

// Close lets another program add trials.
func (d *Data) Close() error { return d.file.Close() }
