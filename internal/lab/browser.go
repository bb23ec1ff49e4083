package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"path"
	"strconv"
	"strings"
)

// Browser is the browser of a virtual device. In a plan it is a name, or an object.
type Browser struct {
	Name        string   `json:"name,omitempty" maxLength:"40" doc:"chromium, firefox or firefox-esr, or a name under browsers: in the configuration" example:"firefox-esr"`
	Command     string   `json:"command,omitempty" maxLength:"1000" doc:"Program with its flags, instead of a name. With {url} in it, it is the whole command line, in which {profile}, {width}, {height} and {home} are replaced as well" example:"/opt/firefox-nightly/firefox"`
	Profile     string   `json:"profile,omitempty" maxLength:"1000" doc:"Folder of a profile, which is copied for each trial; without it the profile is empty"`
	Flags       []string `json:"flags,omitempty" maxItems:"50" doc:"Further flags of the command line"`
	Prefs       []string `json:"prefs,omitempty" maxItems:"100" doc:"Firefox: further preferences, NAME=VALUE" example:"[\"layout.frame_rate=30\"]"`
	Scale       float64  `json:"scale,omitempty" minimum:"0.5" maximum:"4" doc:"Device pixels of a CSS pixel; without it 1"`
	Viewport    string   `json:"viewport,omitempty" maxLength:"11" pattern:"^[0-9]+x[0-9]+$" patternDescription:"WIDTHxHEIGHT" doc:"Size of the screen that the browser fills, WIDTHxHEIGHT; without it 1280x720" example:"412x915"`
	Extensions  []string `json:"extensions,omitempty" maxItems:"10" doc:"Chromium: folders of unpacked extensions, which are loaded" example:"[\"/srv/extensions/blocker\"]"`
	Scheme      string   `json:"scheme,omitempty" enum:"light,dark" doc:"Colour scheme that pages are told"`
	Draw        string   `json:"draw,omitempty" enum:"software,webgl,gl" doc:"How it draws. software, as without it: the same on every machine; Chromium then has no WebGL. webgl: the same, and Chromium has WebGL in software, as Firefox always does. gl: by the machine's OpenGL, which a graphics processor does where the sandbox has one, and Mesa's software else; pictures may then differ between machines"`
	InputMethod string   `json:"input_method,omitempty" enum:"anthy,byeoru,pinyin" doc:"Input method (IME) through which keys go once Shift+Space has switched it on: anthy (Japanese), byeoru (Korean) or pinyin (Chinese). Pages then see composition events"`
	// Entry is the name under which the box's admin has configured the browser; empty for one that the plan describes.
	Entry string `json:"-" yaml:"-"`
	// IsApp says that it is the program of an [App]: Command is the whole command line, and Profile the home.
	IsApp bool `json:"-" yaml:"-"`
}

// The browsers that have a name.
const (
	Chromium   = "chromium"
	Firefox    = "firefox"
	FirefoxESR = "firefox-esr"
)

// BrowserNamed is the browser of a name or of a program's path; nil is Chromium.
func BrowserNamed(name string) *Browser {
	switch {
	case name == Chromium:
		return nil
	case strings.ContainsRune(name, '/'):
		return &Browser{Command: name}
	}
	return &Browser{Name: name}
}

// How a browser may draw.
const (
	DrawSoftware = "software"
	DrawWebGL    = "webgl"
	DrawGL       = "gl"
)

// browserFields are the fields of Browser in its object form.
type browserFields Browser

// UnmarshalJSON implements json.Unmarshaler.
func (b *Browser) UnmarshalJSON(text []byte) error {
	return namedJSON(text, "browser", (*browserFields)(b), &b.Name)
}

// UnmarshalYAML decodes a name or an object.
func (b *Browser) UnmarshalYAML(decode func(any) error) error {
	return namedYAML(decode, (*browserFields)(b), &b.Name)
}

// MarshalJSON implements json.Marshaler.
func (b Browser) MarshalJSON() ([]byte, error) {
	if fields := (Browser{Name: b.Name}); b.String() == fields.String() {
		return json.Marshal(b.Name)
	}
	return json.Marshal(browserFields(b))
}

// String describes the browser for people, and tells two browsers apart.
func (b *Browser) String() string {
	if b == nil {
		return Chromium
	}
	words := []string{b.Name}
	switch {
	case b.Entry != "":
		words = []string{b.Entry}
	case b.Command != "":
		words = []string{b.Command}
	}
	if b.Profile != "" {
		words = append(words, "profile "+path.Base(b.Profile))
	}
	words = append(append(words, b.Flags...), b.Prefs...)
	if b.Scale != 0 && b.Scale != 1 {
		words = append(words, fmt.Sprintf("scale %g", b.Scale))
	}
	if b.Scheme != "" {
		words = append(words, b.Scheme)
	}
	if b.Draw != "" && b.Draw != DrawSoftware {
		words = append(words, "draw "+b.Draw)
	}
	if b.Viewport != "" {
		words = append(words, "viewport "+b.Viewport)
	}
	if b.InputMethod != "" {
		words = append(words, "input method "+b.InputMethod)
	}
	for _, folder := range b.Extensions {
		words = append(words, "extension "+path.Base(folder))
	}
	return strings.TrimSpace(strings.Join(words, " "))
}

// Family is the browser that this one is a version of, by its name or its program: Chromium,
// Firefox, or "" for another.
func (b *Browser) Family() string {
	if b == nil {
		return Chromium
	}
	if b.IsApp {
		return ""
	}
	name := b.Name
	if b.Command != "" {
		name = path.Base(strings.Fields(b.Command)[0])
	}
	switch {
	case strings.HasPrefix(name, "firefox"):
		return Firefox
	case name == "", strings.HasPrefix(name, "chrom"), strings.HasPrefix(name, "google-chrom"):
		return Chromium
	}
	return ""
}

// The bounds of a viewport's sides, in pixels.
const (
	minViewport = 100
	maxViewport = 4096
)

// Size is the size of the screen that the browser fills; the zero point is the usual one.
func (b *Browser) Size() (image.Point, error) {
	if b == nil || b.Viewport == "" {
		return image.Point{}, nil
	}
	var p image.Point
	width, height, ok := strings.Cut(b.Viewport, "x")
	for _, side := range []struct {
		text string
		to   *int
	}{{width, &p.X}, {height, &p.Y}} {
		n, err := strconv.Atoi(side.text)
		if !ok || err != nil || n < minViewport || n > maxViewport {
			return p, fmt.Errorf("%q: write WIDTHxHEIGHT, each side from %d to %d pixels, such as 412x915", b.Viewport, minViewport, maxViewport)
		}
		*side.to = n
	}
	return p, nil
}

// ErrNoProtocol says that a browser cannot be asked.
var ErrNoProtocol = errors.New("this browser tells nobody where an element is without telling the page that it is automated: " + // constant
	"aim at a picture or at a share of the content area, or use browser: chromium")

// ErrCannotOpen says that a browser opens no URL for anybody.
var ErrCannotOpen = errors.New("this browser has no way to be told a URL that leaves no trace in the page: " + // constant
	"click a link, or use browser: chromium")
