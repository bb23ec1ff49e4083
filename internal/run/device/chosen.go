package device

import (
	"errors"
	"os"
	"path/filepath"
)

// chosenFolder is the folder in a home of the files that steps choose. No browser has one of its own there.
const chosenFolder = "files"

// ChosenPath is the path, as a browser's file dialogue understands it, of a file of Options.Chosen.
func ChosenPath(name string) string { return "~/" + chosenFolder + "/" + filepath.ToSlash(name) }

// unpackChosen writes the files into a home in which no program runs yet. Only they are in their folder: the dialogue
// completes what is typed.
func unpackChosen(home string, files map[string][]byte) error {
	if len(files) == 0 {
		return nil
	}
	folder := filepath.Join(home, chosenFolder)
	if err := errors.Join(os.RemoveAll(folder), os.Mkdir(folder, 0o700)); err != nil {
		return err
	}
	root, err := os.OpenRoot(folder) // a name cannot lead out of it
	if err != nil {
		return err
	}
	defer root.Close()
	for name, content := range files {
		if err := errors.Join(root.MkdirAll(filepath.Dir(name), 0o700), root.WriteFile(name, content, 0o600)); err != nil {
			return err
		}
	}
	return nil
}
