// Package report writes report.html, the page that shows a run to a person.
// In go a run (lab.Run) and the artifacts in its folder; out comes one file
// that opens from disk with no server: styles, scripts and data are inside,
// videos and pictures are linked relative to it, nothing is fetched.
package report

import (
	"eidetic/internal/lab"
)

// FileName is the report's name in a run's folder.
const FileName = "report.html"

// Write writes report.html into dir, the folder of the run.
func Write(dir string, run *lab.Run) error {
	return write(dir, run)
}
