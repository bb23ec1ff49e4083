package plan

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"eidetic/analysis/find"
	"eidetic/control/gesture"
	"eidetic/internal/base/bounded"
	"eidetic/internal/lab"
	"eidetic/netlab/inject"
)

// Bounds of a plan's files.
const (
	maxFile   = 4 << 20
	maxInline = 4 << 20 // of all files that are sent with a plan
	mostFiles = 100
	maxPixels = 16 << 20 // of all pictures together, which a few kilobytes may unpack to each
)

// Folder is where the files are that a plan names: beside the plan, or sent with it.
type Folder struct {
	Path string
	Sent map[string][]byte // counts before Path
}

// read reads a file.
func (f Folder) read(name string) ([]byte, error) {
	if err := lab.CheckFileName(name); err != nil {
		return nil, err
	}
	if content, ok := f.Sent[name]; ok {
		return content, nil
	}
	if f.Path == "" {
		return nil, errors.New("it was not sent with the plan: files: {NAME: content in Base64}, as appliance run --box does it with what " +
			"lies beside the plan's file")
	}
	root, err := os.OpenRoot(f.Path) // a name, or a link, cannot lead out of the folder
	if err != nil {
		return nil, err
	}
	defer root.Close()
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe, which somebody sent, may have nobody to write
	if err != nil {
		return nil, fmt.Errorf("it is not beside the plan: %w", err)
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, errors.New("it is no file"))
	}
	content, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(content) > maxFile {
		err = fmt.Errorf("it has more than %d MiB", maxFile>>20)
	}
	return content, err
}

// Files are the files that a plan names, by their names, as what they are.
type Files struct {
	Pictures map[string]*find.Template
	Gestures map[string]*gesture.Recording
	Scripts  map[string]string
	Chosen   map[string][]byte // for file dialogues
	Contents map[string][]byte // of all of them
}

func newFiles() Files {
	return Files{
		map[string]*find.Template{}, map[string]*gesture.Recording{}, map[string]string{}, map[string][]byte{},
		map[string][]byte{},
	}
}

// readFiles reads the files that the plan names.
func (c *Checked) readFiles(from Folder) (Files, error) {
	all := newFiles()
	for i, steps := range c.journeys() {
		if err := all.ofSteps(from, c.pageOf(i*max(len(c.Users), 1)), steps); err != nil {
			return all, err
		}
	}
	for _, a := range c.Cells[0].Arms { // no page or user has a script of its own
		if a.Inject == "" {
			continue
		}
		content, err := all.read(from, a.Inject)
		content = bounded.UTF8(content)
		if err == nil {
			err = inject.CheckScript(string(content))
		}
		if err != nil {
			return all, fieldError(a.Field("inject"), "%s: %w", a.Inject, err)
		}
		all.Scripts[a.Inject] = string(content)
	}
	return all, all.checkSent(from.Sent)
}

func (f Files) read(from Folder, name string) ([]byte, error) {
	content, err := from.read(name)
	if err == nil {
		f.Contents[name] = content
	}
	return content, err
}

// Attach puts the files that the plan names into it, as they are sent to a box, which judges what the plan says
// besides.
func (r *Request) Attach(from Folder) error {
	c := Checked{Plan: r.Plan}
	if c.CellCount() > lab.MaxCells {
		return c.CheckCells()
	}
	c.fill()
	if err := c.checkSteps(); err != nil {
		return err
	}
	from.Sent = r.Files
	files, err := c.readFiles(from)
	if err != nil || len(files.Contents) == 0 {
		return err
	}
	r.Files = files.Contents
	return files.checkSent(r.Files)
}

// checkSent returns an error for files that were sent and are too many, too large, or needed by nothing.
func (f Files) checkSent(sent map[string][]byte) error {
	if len(sent) > mostFiles {
		return fieldError("files", "%d files; at most %d", len(sent), mostFiles)
	}
	sum := 0
	for name, content := range sent {
		if _, named := f.Contents[name]; !named {
			return fieldError("files", "the plan names no file %q", name)
		}
		sum += len(content)
	}
	if sum > maxInline {
		return fieldError("files", "%d bytes in all; at most %d MiB are sent with a plan: cut the pictures closer", sum, maxInline>>20)
	}
	return nil
}

// ReadFiles reads the files that steps name.
func ReadFiles(from Folder, steps []lab.Step) (Files, error) {
	all := newFiles()
	return all, all.ofSteps(from, "", steps)
}

// ofSteps reads the files of steps, whose fields begin with at.
func (f Files) ofSteps(from Folder, at string, steps []lab.Step) error {
	for _, name := range lab.Pictures(steps) {
		if f.Pictures[name] != nil { // of another page
			continue
		}
		content, err := f.read(from, name)
		if err == nil {
			f.Pictures[name], err = find.Read(content)
		}
		if err == nil && f.pixels() > maxPixels {
			err = fmt.Errorf("with those before it, it has %d million pixels; at most %d in a plan: cut the pictures closer",
				f.pixels()>>20, maxPixels>>20)
		}
		if err != nil {
			return fieldError(at+lab.PlaceOf(steps, name), "picture %s: %w", name, err)
		}
	}
	for _, name := range lab.Gestures(steps) {
		if f.Gestures[name] != nil {
			continue
		}
		content, err := f.read(from, name)
		if err == nil {
			f.Gestures[name], err = gesture.ParseRecording(bytes.NewReader(content))
		}
		if err != nil {
			return fieldError(at+lab.PlaceOf(steps, name), "gesture %s: %w", name, err)
		}
	}
	for _, name := range lab.Chosen(steps) {
		content, err := f.read(from, name)
		if err != nil {
			return fieldError(at+lab.PlaceOf(steps, name), "choose %s: %w", name, err)
		}
		f.Chosen[name] = content
	}
	return nil
}

// pixels is how many pixels the pictures have together.
func (f Files) pixels() (sum int) {
	for _, t := range f.Pictures {
		sum += t.Size().X * t.Size().Y
	}
	return sum
}

// Unpack writes files, by their names, into a folder.
func Unpack(folder string, contents map[string][]byte) error {
	for name, content := range contents {
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
