package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/tell/report"
)

// imported is what an import of a log or of spans has found for the timelines of a run.
type imported struct {
	list  []lab.Annotation
	isOld func(lab.Annotation) bool // says what of an earlier import it replaces
	many  int                       // that there was no room for
	said  string                    // of what was found, and how well it is known
}

// put puts what was imported onto the timelines of a run, all of it or nothing, and writes the run's pages anew.
func (i imported) put(std *streams, dir string) error {
	replaced := 0
	if len(i.list) > 0 {
		var err error
		if replaced, err = store.PutAnnotations(dir, i.isOld, i.list); err != nil {
			return cannot(fmt.Errorf("nothing was imported: %w", err))
		}
	}
	run, err := store.ReadWhole(dir) // as it is by now, with the curves that its report shows
	if err == nil && run.State != store.StateRunning && len(i.list) > 0 {
		err = report.Write(dir, run)
	}
	if err != nil {
		return cannot(fmt.Errorf("%s has the %d annotations, and the run's pages could not be written anew: %w", store.AnnotationsFile, len(i.list), err))
	}
	if i.many > 0 {
		i.said += fmt.Sprintf(", %d are too many", i.many)
	}
	i.said += "."
	if replaced > 0 {
		i.said += fmt.Sprintf(" They replace the %d of an earlier import.", replaced)
	}
	if run.State == store.StateRunning {
		i.said += fmt.Sprintf(" The run is in progress, with %d trials so far: its pages come at its end, and later trials have nothing of this.", len(run.Trials))
	}
	fmt.Fprintln(std.err, i.said)
	return nil
}

// ownAnnotations are those of the run itself.
func ownAnnotations(dir string) ([]lab.Annotation, error) {
	f, err := os.Open(filepath.Join(dir, store.AnnotationsFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, _, err := store.ReadAnnotations(f, lab.MostRunAnnotations)
	return list, err
}
