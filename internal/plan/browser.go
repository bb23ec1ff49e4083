package plan

import (
	"image"
	"slices"
	"strings"

	"eidetic/internal/lab"
)

// checkBrowser returns the size of the screen that a browser fills, or an error for one that cannot be started.
func checkBrowser(path string, b *lab.Browser) (image.Point, error) {
	if b == nil {
		return image.Point{}, nil
	}
	named := []string{lab.Chromium, lab.Firefox, lab.FirefoxESR}
	switch {
	case b.Command == "" && b.Name == "":
		return image.Point{}, fieldError(path, "give it a name (chromium, firefox, firefox-esr) or a command")
	case b.Command != "" && b.Name != "":
		return image.Point{}, fieldError(path, "give it a name or a command, and not both")
	case b.Command == "" && !slices.Contains(named, b.Name):
		return image.Point{}, fieldError(path, "%q is none of %s; for another browser write browser: {command: /path/of/the/program}", b.Name,
			strings.Join(named, ", "))
	case b.Command != "" && strings.TrimSpace(b.Command) == "":
		return image.Point{}, fieldError(path+".command", "it is empty")
	case len(b.Extensions) > 0 && b.Family() != lab.Chromium:
		return image.Point{}, fieldError(path+".extensions", "only Chromium loads them from a folder; for another browser put the extension "+
			"into a profile (profile: FOLDER)")
	case len(b.Prefs) > 0 && b.Family() != lab.Firefox:
		return image.Point{}, fieldError(path+".prefs", "only Firefox has them")
	}
	for _, p := range b.Prefs {
		if name, _, ok := strings.Cut(p, "="); !ok || name == "" {
			return image.Point{}, fieldError(path+".prefs", "%q: write NAME=VALUE", p)
		}
	}
	size, err := b.Size()
	if err != nil {
		return size, &lab.FieldError{Path: path + ".viewport", Err: err}
	}
	return size, nil
}
