package lab

import (
	"encoding/json"
	"image"
	"path"
	"regexp"
	"slices"
	"strings"
)

// App is a program that each trial starts, in place of a page that a browser opens. In a plan it is a name, or an
// object that says how a device starts it: exactly one of Command, Package and Recipe.
type App struct {
	Name    string `json:"name,omitempty" maxLength:"40" doc:"A name under apps: in the configuration" example:"editor"`
	Command string `json:"command,omitempty" maxLength:"1000" doc:"The virtual device: a program with its whole command line, in which {home}, {profile}, {width}, {height} and, for the plan's page, {url} are replaced" example:"mousepad --disable-server"`
	Home    string `json:"home,omitempty" maxLength:"1000" doc:"The virtual device: a folder that is copied into the program's home before each trial; without it the home is empty"`
	// Viewport is for what a plan without a browser cannot say there.
	Viewport    string `json:"viewport,omitempty" maxLength:"11" pattern:"^[0-9]+x[0-9]+$" patternDescription:"WIDTHxHEIGHT" doc:"The virtual device: size of the screen, WIDTHxHEIGHT; without it 1280x720" example:"1920x1080"`
	InputMethod string `json:"input_method,omitempty" enum:"anthy,byeoru,pinyin" doc:"The virtual device: input method (IME) of a program made with GTK 3, as a browser's"`
	Package     string `json:"package,omitempty" maxLength:"255" doc:"A phone that adb drives: a package, which is started as by its icon, or PACKAGE/ACTIVITY" example:"org.example.notes"`
	Recipe      string `json:"recipe,omitempty" maxLength:"1000" doc:"A device at a port: steps in one line that start the program; times count from the last of their events" example:"key Meta+R; wait 1s; type \"notepad\"; key Enter"`
	Close       string `json:"close,omitempty" maxLength:"1000" doc:"A device at a port: steps in one line that end the program after each trial" example:"key Alt+F4"`
	// Entry is the name under which the box's admin has configured the app; empty for one that the plan describes.
	Entry string `json:"-" yaml:"-"`
}

// LaunchApp is the value of the verb launch that starts the plan's app.
const LaunchApp = "app"

// appScheme begins what stands for the page of a plan whose app opens none.
const appScheme = "app:"

// IsAppPage says whether a page is none, but stands for an app.
func IsAppPage(page string) bool { return strings.HasPrefix(page, appScheme) }

// appFields are the fields of App in its object form.
type appFields App

// UnmarshalJSON implements json.Unmarshaler.
func (a *App) UnmarshalJSON(text []byte) error {
	return namedJSON(text, "app", (*appFields)(a), &a.Name)
}

// UnmarshalYAML decodes a name or an object.
func (a *App) UnmarshalYAML(decode func(any) error) error {
	return namedYAML(decode, (*appFields)(a), &a.Name)
}

// MarshalJSON implements json.Marshaler.
func (a App) MarshalJSON() ([]byte, error) {
	if a == (App{Name: a.Name, Entry: a.Entry}) {
		return json.Marshal(a.Name)
	}
	return json.Marshal(appFields(a))
}

// String describes the app for people, and tells two apps apart.
func (a *App) String() string {
	if a == nil {
		return "none"
	}
	words := []string{a.Entry, a.Name}
	if a.Entry == "" {
		words = append(words, a.Command, a.Package, a.Recipe)
	}
	if a.Home != "" {
		words = append(words, "home "+path.Base(a.Home))
	}
	if a.Viewport != "" {
		words = append(words, "viewport "+a.Viewport)
	}
	if a.InputMethod != "" {
		words = append(words, "input method "+a.InputMethod)
	}
	return strings.Join(slices.DeleteFunc(slices.Compact(words), func(w string) bool { return w == "" }), " ")
}

// notInPage are the characters that the name of an app does not bring into what stands for its page.
var notInPage = regexp.MustCompile(`[^A-Za-z0-9._-]+`) // constant

// page stands for the page of a plan whose app opens none, in reports, series and recordings.
func (a *App) page() string {
	name := a.Name
	switch {
	case a.Package != "":
		name, _, _ = strings.Cut(a.Package, "/")
	case a.Recipe != "":
		name = a.Recipe
		if _, typed, ok := strings.Cut(a.Recipe, `type "`); ok { // what it searches for is what it starts
			name, _, _ = strings.Cut(typed, `"`)
		}
	case len(strings.Fields(a.Command)) > 0:
		name = path.Base(strings.Fields(a.Command)[0])
	}
	return appScheme + Clip(strings.Trim(notInPage.ReplaceAllString(name, "-"), "-"), 60)
}

// Browser is the app's program as what the virtual device starts, which knows programs as browsers.
func (a *App) Browser() *Browser {
	return &Browser{Command: a.Command, Profile: a.Home, Viewport: a.Viewport, InputMethod: a.InputMethod, Entry: a.Entry, IsApp: true}
}

// The ways in which a device starts an app.
const (
	ByCommand = "command"
	ByPackage = "package"
	ByRecipe  = "recipe"
)

// Way is the one of them that the app names.
func (a *App) Way() string {
	switch {
	case a.Package != "":
		return ByPackage
	case a.Recipe != "":
		return ByRecipe
	}
	return ByCommand
}

// Size is the size of the screen; the zero point is the usual one.
func (a *App) Size() (image.Point, error) { return (&Browser{Viewport: a.Viewport}).Size() }
