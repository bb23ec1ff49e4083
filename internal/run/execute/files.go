package execute

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"eidetic/analysis/find"
	"eidetic/control/gesture"
	"eidetic/internal/lab"
	"eidetic/netlab/inject"
)

// FilesFolder is the folder, in a run's folder, of the files that its plan names.
const FilesFolder = "files"

// Bounds of a plan's files.
const (
	maxFile   = 4 << 20
	maxInline = 4 << 20 // of all files that are sent with a plan
	mostFiles = 100
)

// Files are where the files that a plan names are: beside the plan, or sent with it.
type Files struct {
	Folder string
	Sent   map[string][]byte // counts before Folder
}

// read reads a file.
func (f Files) read(name string) ([]byte, error) {
	if content, ok := f.Sent[name]; ok {
		return content, nil
	}
	if f.Folder == "" {
		return nil, errors.New("it was not sent with the plan: files: {NAME: content in Base64}, as appliance run --box does it with what " +
			"lies beside the plan's file")
	}
	root, err := os.OpenRoot(f.Folder) // a name, or a link, cannot lead out of the folder
	if err != nil {
		return nil, err
	}
	defer root.Close()
	file, err := root.Open(name)
	if err != nil {
		return nil, fmt.Errorf("it is not beside the plan: %w", err)
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(content) > maxFile {
		err = fmt.Errorf("it has more than %d MiB", maxFile>>20)
	}
	return content, err
}

// FilesOf lists the names of the files that a plan needs: pictures, gestures and scripts.
func FilesOf(p lab.Plan) []string {
	var names []string
	for _, steps := range journeys(p) {
		names = slices.Concat(names, lab.Pictures(steps), lab.Gestures(steps))
	}
	for _, a := range p.Cells()[0].Plan.Arms() { // no page or user has a script of its own
		if a.Inject != "" {
			names = append(names, a.Inject)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// CheckFiles returns an error for a plan one of whose files is missing, or is not what the plan
// takes it for.
func CheckFiles(f Files, p lab.Plan) error {
	for i, steps := range journeys(p) {
		if _, _, err := ReadFiles(f, steps); err != nil {
			return placed(p, i*max(len(p.Users), 1), err)
		}
	}
	for _, a := range p.Cells()[0].Plan.Arms() {
		if _, err := readScript(f, a); err != nil {
			return err
		}
	}
	if len(f.Sent) > mostFiles {
		return fmt.Errorf("files: %d files; at most %d", len(f.Sent), mostFiles)
	}
	names, sum := FilesOf(p), 0
	for name, content := range f.Sent {
		if !slices.Contains(names, name) {
			return fmt.Errorf("files: the plan names no file %q", name)
		}
		sum += len(content)
	}
	if sum > maxInline {
		return fmt.Errorf("files: %d bytes in all; at most %d MiB are sent with a plan: cut the pictures closer", sum, maxInline>>20)
	}
	return nil
}

// Collect reads the files that a plan needs, to be sent with it; nil where it needs none.
func Collect(f Files, p lab.Plan) (map[string][]byte, error) {
	var all map[string][]byte
	for _, name := range FilesOf(p) {
		content, err := f.read(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if all == nil {
			all = map[string][]byte{}
		}
		all[name] = content
	}
	return all, nil
}

// Unpack writes the files that were sent with a plan into a folder.
func Unpack(folder string, sent map[string][]byte) error {
	for name, content := range sent {
		if err := lab.CheckFileName(name); err != nil {
			return fmt.Errorf("files: %w", err)
		}
		to := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// readScript reads the script that an arm puts into documents; nothing without one.
func readScript(f Files, a lab.NamedArm) (string, error) {
	if a.Inject == "" {
		return "", nil
	}
	err := lab.CheckFileName(a.Inject)
	var content []byte
	if err == nil {
		content, err = f.read(a.Inject)
	}
	if err == nil {
		err = inject.CheckScript(string(content))
	}
	if err != nil {
		return "", fmt.Errorf("inject of the %s: %s: %w", a.Name, a.Inject, err)
	}
	return string(content), nil
}

// ReadFiles reads the pictures and gestures that steps name.
func ReadFiles(f Files, steps []lab.Step) (map[string]*find.Template, map[string]*gesture.Recording, error) {
	templates, gestures := map[string]*find.Template{}, map[string]*gesture.Recording{}
	for _, name := range lab.Pictures(steps) {
		content, err := f.read(name)
		if err == nil {
			templates[name], err = find.Read(content)
		}
		if err != nil {
			return nil, nil, &lab.StepError{Path: lab.PlaceOf(steps, name), Err: fmt.Errorf("picture %s: %w", name, err)}
		}
	}
	for _, name := range lab.Gestures(steps) {
		content, err := f.read(name)
		if err == nil {
			gestures[name], err = gesture.ParseRecording(bytes.NewReader(content))
		}
		if err != nil {
			return nil, nil, &lab.StepError{Path: lab.PlaceOf(steps, name), Err: fmt.Errorf("gesture %s: %w", name, err)}
		}
	}
	return templates, gestures, nil
}

// files are those of the execution's plan.
func (x *Execution) files() Files { return Files{Folder: x.Files, Sent: x.Plan.Files} }

// keepFiles copies the files that the plan names into the run's folder: an old recording is
// judged again by them.
func (x *Execution) keepFiles() error {
	all, err := Collect(x.files(), x.Plan)
	if err != nil {
		return err
	}
	return Unpack(filepath.Join(x.folder.Path(), FilesFolder), all)
}
