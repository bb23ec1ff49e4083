package plan

import (
	"errors"
	"fmt"
	"image"
	"maps"
	"regexp"
	"slices"
	"strings"

	"eidetic/internal/lab"
)

// Browsers are browsers that a box's admin has configured, by the names that plans call them: each is what a plan would
// say of it.
type Browsers map[string]lab.Browser

// Names lists the names in order.
func (all Browsers) Names() []string { return slices.Sorted(maps.Keys(all)) }

// known lists the browsers that have a name everywhere.
func known() []string { return []string{lab.Chromium, lab.Firefox, lab.FirefoxESR} }

// entryName is what a browser of the configuration may be called.
var entryName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,39}$`) // constant

// mostBrowsers bounds the browsers of a configuration: a box offers all of them to its fleet.
const mostBrowsers = 50

// Check returns the field that is wrong, such as ".nightly.prefs", and why, or nil.
func (all Browsers) Check() (field string, err error) {
	if len(all) > mostBrowsers {
		return "", fmt.Errorf("%d browsers; at most %d", len(all), mostBrowsers)
	}
	for _, name := range all.Names() {
		b := all[name]
		switch {
		case !entryName.MatchString(name):
			return "", fmt.Errorf("%.60q: a browser's name has 1 to 40 lower-case letters, digits, dots, dashes and underscores, a letter or digit first", name)
		case slices.Contains(known(), name):
			return "." + name, fmt.Errorf("%s is the name of that program itself: call it by another", name)
		}
		_, err := checkBrowser("", &b, Options{})
		var wrong *lab.FieldError
		if errors.As(err, &wrong) && wrong.Path == "" { // the browser as a whole
			err = wrong.Err
		}
		if err != nil {
			return "." + name, err
		}
		if all := (Request{Plan: lab.Plan{Arm: lab.Arm{Browser: &b}}}).Problems(); len(all) > 0 {
			return "." + name, fmt.Errorf("%s: %w", strings.TrimPrefix(all[0].Path, "browser."), all[0].Err)
		}
	}
	return "", nil
}

// resolve is the browser that a plan's one stands for: one of the list, with what the plan says besides. With
// elsewhere, a name that is in no list is one of another box's.
func (all Browsers) resolve(b *lab.Browser, elsewhere bool) *lab.Browser {
	if b == nil || b.Command != "" || slices.Contains(known(), b.Name) {
		return b
	}
	entry, ok := all[b.Name]
	if !ok {
		own := *b
		if elsewhere {
			own.Entry = b.Name
		}
		return &own
	}
	entry.Entry = b.Name
	entry.Flags, entry.Prefs = slices.Concat(entry.Flags, b.Flags), slices.Concat(entry.Prefs, b.Prefs)
	entry.Extensions = slices.Concat(entry.Extensions, b.Extensions)
	for _, text := range []struct{ to, said *string }{
		{&entry.Profile, &b.Profile}, {&entry.Viewport, &b.Viewport}, {&entry.Scheme, &b.Scheme}, {&entry.Draw, &b.Draw},
		{&entry.InputMethod, &b.InputMethod},
	} {
		if *text.said != "" {
			*text.to = *text.said
		}
	}
	if b.Scale != 0 {
		entry.Scale = b.Scale
	}
	return &entry
}

// isForeign says whether only another box knows what a browser is.
func isForeign(b *lab.Browser) bool { return b != nil && b.Entry != "" && b.Entry == b.Name }

// checkBrowser returns the size of the screen that a browser fills, or an error for one that cannot be started.
func checkBrowser(path string, b *lab.Browser, o Options) (image.Point, error) {
	if b == nil {
		return image.Point{}, nil
	}
	at := func(field string) string { return strings.TrimPrefix(path+"."+field, ".") }
	_, configured := o.Browsers[b.Name]
	switch {
	case b.Command == "" && b.Name == "":
		return image.Point{}, fieldError(path, "give it a name (chromium, firefox, firefox-esr) or a command")
	case b.Command != "" && b.Name != "":
		return image.Point{}, fieldError(path, "give it a name or a command, and not both")
	case b.Command == "" && !configured && !o.Elsewhere && !slices.Contains(known(), b.Name):
		return image.Point{}, fieldError(path, "%q is none of %s; another browser is named under browsers: in the configuration of the box, "+
			"or written as browser: {command: /path/of/the/program}", b.Name, strings.Join(slices.Concat(known(), o.Browsers.Names()), ", "))
	case b.Command != "" && strings.TrimSpace(b.Command) == "":
		return image.Point{}, fieldError(at("command"), "it is empty")
	}
	b = o.Browsers.resolve(b, o.Elsewhere)
	switch {
	case isForeign(b):
	case len(b.Extensions) > 0 && b.Family() != lab.Chromium:
		return image.Point{}, fieldError(at("extensions"), "only Chromium loads them from a folder; for another browser put the extension "+
			"into a profile (profile: FOLDER)")
	case len(b.Prefs) > 0 && b.Family() != lab.Firefox:
		return image.Point{}, fieldError(at("prefs"), "only Firefox has them")
	}
	for _, p := range b.Prefs {
		if name, _, ok := strings.Cut(p, "="); !ok || name == "" {
			return image.Point{}, fieldError(at("prefs"), "%q: write NAME=VALUE", p)
		}
	}
	size, err := b.Size()
	if err != nil {
		return size, &lab.FieldError{Path: at("viewport"), Err: err}
	}
	return size, nil
}
