package report

import (
	"html/template"
	"os"
	"path/filepath"

	"eidetic/internal/lab"
)

func write(dir string, run *lab.Run) error {
	return os.WriteFile(filepath.Join(dir, FileName), []byte("<!doctype html><title>"+template.HTMLEscapeString(run.Name)+"</title>"), 0o644)
}
