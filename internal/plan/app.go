package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"eidetic/control/adb"
	"eidetic/control/gesture"
	"eidetic/internal/lab"
)

// Apps are programs that a box's admin has configured, by the names that plans call them.
type Apps map[string]lab.App

// Names lists the names in order.
func (all Apps) Names() []string { return slices.Sorted(maps.Keys(all)) }

// Check returns the field that is wrong, such as ".editor.command", and why, or nil.
func (all Apps) Check() (field string, err error) {
	if len(all) > mostBrowsers {
		return "", fmt.Errorf("%d apps; at most %d", len(all), mostBrowsers)
	}
	for _, name := range all.Names() {
		a := all[name]
		if !entryName.MatchString(name) {
			return "", fmt.Errorf("%.60q: an app's name has 1 to 40 lower-case letters, digits, dots, dashes and underscores, a letter or digit first", name)
		}
		if a.Name != "" {
			return "." + name, errors.New("it names another app: say its command, package or recipe")
		}
		err := checkApp("app", &a, Options{})
		if problems := (Request{Plan: lab.Plan{Arm: lab.Arm{App: &a}}}).Problems(); err == nil && len(problems) > 0 {
			err = problems[0]
		}
		var wrong *lab.FieldError
		if errors.As(err, &wrong) && strings.HasPrefix(wrong.Path, "app") {
			return "." + name + strings.TrimPrefix(wrong.Path, "app"), wrong.Err
		}
		if err != nil {
			return "." + name, err
		}
	}
	return "", nil
}

// resolve is the app that a plan's one stands for.
func (all Apps) resolve(a *lab.App) *lab.App {
	entry, ok := all[a.Name]
	if a.Name == "" || !ok {
		return a
	}
	entry.Entry = a.Name
	if a.Viewport != "" {
		entry.Viewport = a.Viewport
	}
	if a.InputMethod != "" {
		entry.InputMethod = a.InputMethod
	}
	return &entry
}

// checkApp returns an error, a *lab.FieldError, for an app that no device can start.
func checkApp(path string, a *lab.App, o Options) error {
	_, configured := o.Apps[a.Name]
	switch {
	case a.Name != "" && o.Elsewhere:
		return fieldError(path, "%q is a name of one box's configuration: send the plan to that box", a.Name)
	case a.Name != "" && !configured:
		return fieldError(path, "%q is none of the apps of this box (%s); its admin names them under apps: in the configuration, and who "+
			"may name programs writes app: {command: …}", a.Name, strings.Join(o.Apps.Names(), ", "))
	case a.Name != "" && (a.Command != "" || a.Package != "" || a.Recipe != "" || a.Home != "" || a.Close != ""):
		return fieldError(path, "give it a name, or say how it is started, and not both")
	}
	a = o.Apps.resolve(a)
	ways := 0
	for _, way := range []string{a.Command, a.Package, a.Recipe} {
		if strings.TrimSpace(way) != "" {
			ways++
		}
	}
	if ways != 1 {
		return fieldError(path, "say how it is started, in one way: command (virtual device), package (Android) or recipe (keys)")
	}
	if a.Command == "" && (a.Home != "" || a.Viewport != "" || a.InputMethod != "") {
		return fieldError(path, "home, viewport and input_method are of a command, which the virtual device starts")
	}
	if (a.Recipe == "") != (a.Close == "") {
		return fieldError(path+".close", "a recipe needs the steps that end the program after each trial, and nothing else has them")
	}
	if a.Package != "" {
		if err := adb.CheckStart(a.Package); err != nil {
			return &lab.FieldError{Path: path + ".package", Err: err}
		}
	}
	for _, part := range []struct{ field, steps string }{{".recipe", a.Recipe}, {".close", a.Close}} {
		if part.steps == "" {
			continue
		}
		if err := checkKeys(part.steps); err != nil {
			return fieldError(path+part.field, "%w", err)
		}
	}
	if _, err := a.Size(); err != nil {
		return &lab.FieldError{Path: path + ".viewport", Err: err}
	}
	return nil
}

// checkKeys returns an error for steps that do not give input alone.
func checkKeys(text string) error {
	steps, err := gesture.Parse(text)
	if err != nil {
		return err
	}
	for _, s := range steps {
		switch verb, value := s.Verb(); verb {
		case lab.VerbKey, lab.VerbType, lab.VerbClick, lab.VerbMove:
			if strings.HasPrefix(value, "picture ") || strings.HasPrefix(value, "css ") {
				return fmt.Errorf("%s %s: nobody looks at the screen meanwhile: aim at a place", verb, value)
			}
		case lab.VerbWait:
			if _, end, err := lab.ParseWait(value); err != nil || end != nil {
				return fmt.Errorf("wait %s: nobody looks at the screen meanwhile: wait for a time", value)
			}
		default:
			return fmt.Errorf("%s: write key, type, click, move and wait", verb)
		}
	}
	return nil
}

// errNoAsking refuses what only a browser can be asked.
var errNoAsking = errors.New("a program that is no browser tells nobody where an element is, and opens no URL: " + // constant
	"aim at a picture or at a share of the content area")

// checkApps returns an error for what plans with apps cannot have.
func (c *Checked) checkApps(o Options) error {
	p := c.Plan
	switch {
	case p.App == nil && p.Treatment != nil && p.Treatment.App != nil:
		return fieldError("treatment.app", "the control opens a page in a browser: give both arms an app, or neither")
	case p.App == nil:
		return noLaunchOfApp(p.Steps)
	case len(p.Pages) > 0 || len(p.Users) > 0:
		return fieldError("app", "pages and users are of browsers: leave them out")
	case p.Live:
		return fieldError("live", "an app is not loaded from an origin")
	}
	var wrong []error
	for _, a := range p.Arms() {
		at := Arm{NamedArm: a}.Field
		wrong = append(wrong, checkApp(at("app"), a.App, o))
		if a.Browser != nil {
			wrong = append(wrong, fieldError(at("browser"), "the arm starts an app: leave browser out; the screen's size is app.viewport"))
		}
		if !a.IsStart() {
			wrong = append(wrong, fieldError(at("state"), "%s: an app is started by the trial: write %s or %s", a.State, lab.StateAppCold,
				lab.StateAppWarm))
		}
	}
	if len(p.Steps) > 0 && p.Steps[0].Launch != lab.LaunchApp {
		wrong = append(wrong, fieldError("steps[0]", "a plan with an app begins with launch: %s", lab.LaunchApp))
	}
	if anyLater(p.Steps, true, func(s lab.Step, later bool) bool {
		return s.Open != "" || later && s.Launch != "" || len(lab.Selectors(s)) > 0
	}) {
		wrong = append(wrong, fieldError("steps", "open, a second launch, and css: %w", errNoAsking))
	}
	if len(lab.Chosen(p.Steps)) > 0 {
		wrong = append(wrong, fieldError("steps", "choose answers the file dialogues of browsers alone: "+
			"give the app a home with the file (app: {home: …})"))
	}
	return errors.Join(wrong...)
}

// noLaunchOfApp refuses to start the app of a plan that has none.
func noLaunchOfApp(steps []lab.Step) error {
	if anyLater(steps, true, func(s lab.Step, _ bool) bool { return s.Launch == lab.LaunchApp }) {
		return fieldError("steps", "launch: %s starts the plan's app: say which, as app: {command: …}", lab.LaunchApp)
	}
	return nil
}
