package device

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"eidetic/internal/base/programs"
	"eidetic/internal/lab"
)

// Program is a browser that can be started, each time with a fresh profile.
type Program interface {
	Start(o Options) (*Browser, error)
	// Describe names the browser and its version.
	Describe() string
}

// Describe implements [Program].
func (c *Chromium) Describe() string { return c.Version }

// findProgram finds the program of a browser, whose command has these words.
func findProgram(b *lab.Browser, words []string) (string, error) {
	switch {
	case len(words) > 0:
		return exec.LookPath(words[0])
	case b.Family() != lab.Firefox:
		return programs.Chromium().Find()
	}
	find := programs.Firefox()
	if b.Name == lab.FirefoxESR {
		find.Files = []string{lab.FirefoxESR}
	}
	return find.Find()
}

// CheckBrowser returns an error for a browser that this machine lacks. Of the usual one, nil, it is seen when it starts.
func CheckBrowser(b *lab.Browser) error {
	if b == nil {
		return nil
	}
	if err := cmp.Or(CheckExtensions(b), checkInputMethod(b.InputMethod)); err != nil {
		return err
	}
	_, err := findProgram(b, strings.Fields(b.Command))
	return err
}

// OpenBrowser finds a browser and prepares a home folder in the workshop.
func OpenBrowser(ctx context.Context, w Workshop, b *lab.Browser) (Program, error) {
	if b == nil {
		return NewChromium(ctx, w)
	}
	o := &other{what: *b, dir: w.Dir, name: "browser"}
	if b.IsApp {
		o.name = "app"
	}
	words := strings.Fields(b.Command)
	var err error
	if o.program, err = findProgram(b, words); err != nil {
		if b.Command != "" {
			err = fmt.Errorf("command: %w", err)
		}
		return nil, fmt.Errorf("%s: %w", o.name, err)
	}
	words = words[min(1, len(words)):]
	if err := cmp.Or(CheckExtensions(b), checkInputMethod(b.InputMethod)); err != nil {
		return nil, fmt.Errorf("%s: %w", o.name, err)
	}
	if b.IsApp { // it may know no --version
		o.version, o.whole = filepath.Base(o.program), words
		return o, o.prepare(ctx, w)
	}
	if o.version, err = w.version(ctx, o.program, words); err != nil {
		return nil, fmt.Errorf("browser: %w", err)
	}
	o.more = append(words, b.Flags...)
	if strings.Contains(b.Command, "{url}") {
		o.whole, o.more = words, b.Flags
	}
	return o, o.prepare(ctx, w)
}

// other is a browser that a plan names or describes.
type other struct {
	what             lab.Browser
	program, version string
	name             string   // of its process in errors
	more             []string // flags after our own
	whole            []string // the whole command line, where a plan gives that
	template         string   // a home folder, copied for each trial
	dir              string
}

// profileName is the folder of the profile in a home.
const profileName = "profile"

// Describe implements [Program].
func (o *other) Describe() string {
	if o.what.IsApp {
		return o.what.String()
	}
	text := o.what.String()
	if o.what.Name != "" {
		text = strings.TrimSpace(strings.TrimPrefix(text, o.what.Name))
	}
	if text == "" {
		return o.version
	}
	return o.version + " (" + text + ")"
}

// prepare makes the home folder: the profile, trust in the authority, and preferences. What writes into it as this
// process comes before the first program that could put a link there.
func (o *other) prepare(ctx context.Context, w Workshop) error {
	var err error
	if o.template, err = os.MkdirTemp(o.dir, "template-"); err != nil {
		return fmt.Errorf("preparing the %s's home: %w", o.name, err)
	}
	profile := filepath.Join(o.template, profileName)
	given := profile
	if o.what.IsApp {
		given = o.template
	}
	if o.what.Profile != "" {
		err = copyFolder(given, o.what.Profile, ofProfile())
	}
	if err = errors.Join(err, writeEngine(o.template, o.what.InputMethod), os.MkdirAll(profile, 0o700)); err != nil {
		return fmt.Errorf("preparing the %s's profile: %w", o.name, err)
	}
	// Chromium and its kin read the first folder, Firefox its profile.
	stores := []string{filepath.Join(o.template, ".pki", "nssdb")}
	if o.what.Family() == lab.Firefox {
		stores = append(stores, profile)
		if err := writePrefs(profile, o.what); err != nil {
			return fmt.Errorf("preparing the browser's preferences: %w", err)
		}
	}
	if o.what.Family() == lab.Chromium {
		if err := writeChromiumPreferences(o.template); err != nil {
			return err
		}
	}
	for _, store := range stores {
		if err := w.trust(ctx, o.template, store); err != nil {
			return err
		}
	}
	return nil
}

// arguments are the command line after the program.
func (o *other) arguments(home string, options Options) []string {
	profile := filepath.Join(home, profileName)
	if o.whole != nil {
		replace := strings.NewReplacer("{url}", options.URL, "{profile}", profile, "{home}", home,
			"{width}", fmt.Sprint(options.Screen.Width), "{height}", fmt.Sprint(options.Screen.Height))
		var args []string
		for _, word := range append(o.whole, o.more...) {
			args = append(args, replace.Replace(word))
		}
		return args
	}
	switch o.what.Family() {
	case lab.Firefox:
		args := append([]string{"--no-remote", "--profile", profile, "--kiosk", "--width", fmt.Sprint(options.Screen.Width),
			"--height", fmt.Sprint(options.Screen.Height)}, options.Extra...)
		return append(append(args, o.more...), options.URL)
	case lab.Chromium:
		args := flags(profile, options.with(append(chromiumFlags(o.what), o.more...)))
		if o.what.Draw == lab.DrawGL {
			args = slices.DeleteFunc(args, func(flag string) bool { return flag == softwareFlag })
		}
		if len(o.what.Extensions) > 0 {
			args = withExtensions(args, o.what.Extensions)
		}
		return args
	}
	return append(append(append([]string{}, o.more...), options.Extra...), options.URL)
}

// chromiumFlags are those of a plan's choices. Of two flags of a name the last counts.
func chromiumFlags(b lab.Browser) (all []string) {
	if b.Scale != 0 {
		all = append(all, fmt.Sprintf("--force-device-scale-factor=%g", b.Scale))
	}
	switch b.Draw {
	case lab.DrawWebGL:
		all = append(all, "--enable-unsafe-swiftshader")
	case lab.DrawGL:
		all = append(all, "--ignore-gpu-blocklist", "--enable-gpu-rasterization")
	}
	switch b.Scheme {
	case "dark":
		all = append(all, "--blink-settings=preferredColorScheme=0")
	case "light":
		all = append(all, "--blink-settings=preferredColorScheme=1")
	}
	if b.InputMethod != "" {
		all = append(all, "--gtk-version=3") // whose module the input method has
	}
	return all
}

// Start implements [Program].
func (o *other) Start(options Options) (*Browser, error) {
	options.inputMethod = o.what.InputMethod
	options.words = slices.Concat(o.whole, o.more, o.what.Extensions)
	args := func(home string) []string { return o.arguments(home, options) }
	return startIn(o.dir, o.template, o.program, filepath.Base(o.program), args, options)
}
