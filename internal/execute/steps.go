package execute

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"eidetic/analysis/find"
	"eidetic/control"
	"eidetic/control/gesture"
	"eidetic/internal/journey"
	"eidetic/internal/lab"
)

// FilesFolder is the folder, in a run's folder, of the pictures and gestures that its plan names.
const FilesFolder = "files"

// Hands give a device the input of steps.
type Hands struct {
	Controller control.Controller
}

// CheckSteps returns an error, a *lab.StepError, for steps that cannot be carried out.
func CheckSteps(steps []lab.Step) error {
	if err := gesture.Check(steps); err != nil {
		return err
	}
	return checkAll(steps, "steps", true)
}

// What no device of a run can do, with what to do instead.
var (
	errSelector = errors.New("css: a run asks no browser where an element is; aim at a picture or at a share of the content area") // constant
	errOpen     = errors.New("only the first step of a run opens a page; go on by clicking a link, as a person does")              // constant
)

func checkAll(steps []lab.Step, path string, outermost bool) error {
	for i, s := range steps {
		at := fmt.Sprintf("%s[%d]", path, i)
		verb, _ := s.Verb()
		if err := checkStep(s, outermost && i == 0); err != nil {
			return &lab.StepError{Path: at + "." + verb, Err: err}
		}
		if err := checkAll(s.Steps, at+".steps", false); err != nil {
			return err
		}
	}
	return nil
}

// checkStep refuses what the devices of runs cannot do.
func checkStep(s lab.Step, first bool) error {
	if s.Launch != "" || s.Open != "" && !first {
		return errOpen
	}
	if s.Open != "" {
		return CheckPage(s.Open)
	}
	targets := []string{s.Click, s.Move, s.At}
	for _, way := range []string{s.Drag, s.Pan} {
		if from, to, ok := strings.Cut(way, " to "); ok {
			targets = append(targets, from, to)
		}
	}
	for _, text := range targets {
		if t, err := lab.ParseTarget(text); err == nil && t.CSS != "" {
			return errSelector
		}
	}
	return nil
}

// ReadFiles reads the pictures and gestures that steps name, from the folder of the plan.
func ReadFiles(dir string, steps []lab.Step) (map[string]*find.Template, map[string]*gesture.Recording, error) {
	templates, gestures := map[string]*find.Template{}, map[string]*gesture.Recording{}
	for _, name := range lab.Pictures(steps) {
		content, err := readFile(dir, name, find.MaxBytes)
		if err == nil {
			templates[name], err = find.Read(content)
		}
		if err != nil {
			return nil, nil, &lab.StepError{Path: lab.PlaceOf(steps, name), Err: fmt.Errorf("picture %s: %w", name, err)}
		}
	}
	for _, name := range lab.Gestures(steps) {
		content, err := readFile(dir, name, 8<<20)
		if err == nil {
			gestures[name], err = gesture.ParseRecording(bytes.NewReader(content))
		}
		if err != nil {
			return nil, nil, &lab.StepError{Path: lab.PlaceOf(steps, name), Err: fmt.Errorf("gesture %s: %w", name, err)}
		}
	}
	return templates, gestures, nil
}

// readFile reads a file of a folder, up to a size.
func readFile(dir, name string, most int64) ([]byte, error) {
	if dir == "" {
		return nil, errors.New("there is no folder to look for it: such files lie beside the file of the plan")
	}
	root, err := os.OpenRoot(dir) // a name, or a link, cannot lead out of the folder
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.Open(name)
	if err != nil {
		return nil, fmt.Errorf("it is not beside the plan: %w", err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(content)) > most {
		err = fmt.Errorf("it has more than %d MiB", most>>20)
	}
	return content, err
}

// player makes what carries out the plan's steps; nil without steps.
func (x *Execution) player() (*journey.Player, error) {
	if len(x.Plan.Steps) == 0 {
		return nil, nil
	}
	hands := x.Rig.Hands
	if hands == nil {
		return nil, errors.New("steps: this device can be given no input but the key that starts a load")
	}
	templates, gestures, err := ReadFiles(x.Files, x.Plan.Steps)
	if err != nil {
		return nil, err
	}
	return &journey.Player{
		Controller: hands.Controller, Clock: clock, Templates: templates, Gestures: gestures,
	}, nil
}

// keepFiles copies the files that the steps name into the run's folder: an old recording is
// judged again by them.
func (x *Execution) keepFiles() error {
	names := append(lab.Pictures(x.Plan.Steps), lab.Gestures(x.Plan.Steps)...)
	for _, name := range names {
		content, err := readFile(x.Files, name, 8<<20)
		if err != nil {
			return err
		}
		to := filepath.Join(x.folder.Path(), FilesFolder, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
