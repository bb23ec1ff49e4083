package device

import (
	"os"
	"path/filepath"
	"strings"
)

// programFiles are where a browser's files are, besides the system's folders: the program and
// what it is a link to, their folders, and the absolute paths in the words of its command.
func programFiles(program string, words []string) (paths []string) {
	real, err := filepath.EvalSymlinks(program)
	if err != nil {
		real = program // starting it says what is wrong
	}
	home, _ := os.UserHomeDir() // "" is around nothing
	for _, p := range []string{program, real} {
		paths = append(paths, p)
		// A program that lies in a person's home itself does not open that.
		if dir := filepath.Dir(p); !strings.HasPrefix(home+"/", dir+"/") {
			paths = append(paths, dir)
		}
	}
	for _, word := range words {
		if _, value, ok := strings.Cut(word, "="); ok {
			word = value
		}
		if filepath.IsAbs(word) {
			paths = append(paths, word)
		}
	}
	return paths
}

// socket is the file of a display's socket.
func socket(display string) string { return "/tmp/.X11-unix/X" + strings.TrimPrefix(display, ":") }
