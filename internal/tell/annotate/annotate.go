// Package annotate puts onto the timelines of a run what others kept of the same time: the lines of a program's log, and
// the spans of a back end. In flow their files and the run; out flow annotations in the run's folder, each with the
// bounds within which its time is known. Errors name the flags of appliance annotate.
package annotate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/tell/report"
)

// Import is what a log or spans have for the timelines of a run.
type Import struct {
	list  []lab.Annotation
	isOld func(lab.Annotation) bool // says what of an earlier import it replaces
	many  int                       // that there was no room for
	said  string                    // of what was found, and how well it is known
}

// Put puts it onto the timelines of a run, all of it or nothing, writes the run's pages anew, and says what was found.
func (i Import) Put(dir string) (said string, err error) {
	replaced := 0
	if len(i.list) > 0 {
		if replaced, err = store.PutAnnotations(dir, i.isOld, i.list); err != nil {
			return "", fmt.Errorf("nothing was imported: %w", err)
		}
	}
	run, err := store.ReadWhole(dir) // as it is by now, with the curves that its report shows
	if err == nil && run.State != store.StateRunning && len(i.list) > 0 {
		err = report.Write(dir, run)
	}
	if err != nil {
		return "", fmt.Errorf("%s has the %d annotations, and the run's pages could not be written anew: %w", store.AnnotationsFile, len(i.list), err)
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
	return i.said, nil
}

// Own are the annotations that a run has.
func Own(dir string) ([]lab.Annotation, error) {
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
