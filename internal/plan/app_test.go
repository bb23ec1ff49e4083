package plan

import (
	"encoding/json"
	"strings"
	"testing"

	"eidetic/internal/lab"
)

// TestApps: an app has one way of being started, begins its steps, and is asked nothing that only a browser answers.
func TestApps(t *testing.T) {
	apps := Apps{"editor": {Command: "/usr/bin/editor --new"}}
	start := []lab.Step{{Name: "start", Launch: lab.LaunchApp}}
	editor := &lab.App{Command: "editor"}
	for name, c := range map[string]struct {
		plan lab.Plan
		says string
	}{
		"command":           {lab.Plan{Arm: lab.Arm{App: editor}}, ""},
		"steps":             {lab.Plan{Arm: lab.Arm{App: editor}, Steps: append(start, lab.Step{Type: "x"})}, ""},
		"its page":          {lab.Plan{Arm: lab.Arm{App: editor, Page: "https://a.test/"}, Steps: start}, ""},
		"configured":        {lab.Plan{Arm: lab.Arm{App: &lab.App{Name: "editor"}}}, ""},
		"two programs":      {lab.Plan{Arm: lab.Arm{App: editor}, Treatment: &lab.Arm{App: &lab.App{Command: "other"}}}, ""},
		"warm":              {lab.Plan{Arm: lab.Arm{App: editor, State: lab.StateAppWarm}}, ""},
		"package":           {lab.Plan{Arm: lab.Arm{App: &lab.App{Package: "org.example.notes/.Main"}}}, ""},
		"recipe":            {lab.Plan{Arm: lab.Arm{App: &lab.App{Recipe: "key Meta+R; wait 1s; type \"notepad\"; key Enter", Close: "key Alt+F4"}}}, ""},
		"unknown":           {lab.Plan{Arm: lab.Arm{App: &lab.App{Name: "paint"}}}, "none of the apps of this box (editor)"},
		"two ways":          {lab.Plan{Arm: lab.Arm{App: &lab.App{Command: "x", Package: "a.b"}}}, "in one way"},
		"no way":            {lab.Plan{Arm: lab.Arm{App: &lab.App{Home: "/x"}}}, "in one way"},
		"no close":          {lab.Plan{Arm: lab.Arm{App: &lab.App{Recipe: "key Meta+R"}}}, "app.close: a recipe needs"},
		"recipe that looks": {lab.Plan{Arm: lab.Arm{App: &lab.App{Recipe: "wait still 1s", Close: "key a"}}}, "app.recipe: wait still 1s: nobody looks"},
		"bad package":       {lab.Plan{Arm: lab.Arm{App: &lab.App{Package: "x; reboot"}}}, "app.package"},
		"cold":              {lab.Plan{Arm: lab.Arm{App: editor, State: lab.StateCold}}, "state: cold: an app is started by the trial"},
		"with a browser":    {lab.Plan{Arm: lab.Arm{App: editor, Browser: &lab.Browser{Name: "chromium"}}}, "browser: the arm starts an app"},
		"begins otherwise":  {lab.Plan{Arm: lab.Arm{App: editor}, Steps: []lab.Step{{Open: "https://a.test/"}}}, "begins with launch: app"},
		"css":               {lab.Plan{Arm: lab.Arm{App: editor}, Steps: append(start, lab.Step{Click: "css #a"})}, "aim at a picture"},
		"launched twice":    {lab.Plan{Arm: lab.Arm{App: editor}, Steps: append(start, lab.Step{Launch: "app"})}, "a second launch"},
		"no app":            {lab.Plan{Arm: lab.Arm{Page: "https://a.test/", State: "app-cold"}, Steps: start}, "say which, as app: {command"},
		"page of no app":    {lab.Plan{Arm: lab.Arm{Page: "app:editor"}}, "page: "},
		"of one arm":        {lab.Plan{Arm: lab.Arm{Page: "https://a.test/"}, Treatment: &lab.Arm{App: editor}}, "treatment.app: the control opens a page"},
		"traces":            {lab.Plan{Arm: lab.Arm{App: editor}, Traces: 3}, "traces: a browser that the trial starts"},
		"users":             {lab.Plan{Arm: lab.Arm{App: editor}, Users: []lab.PlanUser{{Name: "a"}}}, "app: pages and users"},
	} {
		c.plan.Trials = 2
		got, err := Check(Request{Plan: c.plan}, Options{Scope: ScopePerson, Apps: apps})
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: Check() = %v; want an error with %q", name, err, c.says)
			continue
		}
		if err != nil {
			continue
		}
		if a := got.Cells[0].Arms[0]; !a.IsStart() || a.Browser == nil || !a.Browser.IsApp || len(got.Steps) == 0 || got.Steps[0].Launch != "app" {
			t.Errorf("%s: the arm is %+v with the steps %+v; want a program that the trial starts", name, a.Arm, got.Steps)
		}
	}
}

// The plan of a run with an app can be said again.
func TestAppAgain(t *testing.T) {
	said := lab.Plan{Trials: 2, Arm: lab.Arm{App: &lab.App{Command: "editor"}}, Treatment: &lab.Arm{App: &lab.App{Command: "other"}}}
	checked, err := Check(Request{Plan: said}, Options{Scope: ScopePerson})
	if err != nil {
		t.Fatal(err)
	}
	again := Again(checked.Plan.WithArms(checked.Plan.Arms()))
	if again.Page != "" || again.App == nil || again.Treatment == nil || again.Treatment.Page != "" || again.Treatment.App.Command != "other" {
		t.Errorf("Again() = %+v, treatment %+v; want both apps, and no page", again, again.Treatment)
	}
	if _, err := Check(Request{Plan: again}, Options{Scope: ScopePerson}); err != nil {
		t.Errorf("the plan of the run cannot be said again: %v", err)
	}
}

// A token of the scope run names apps of the configuration, and no program, folder or package.
func TestAppsOfAToken(t *testing.T) {
	for text, says := range map[string]string{
		`{"app": "editor"}`: "",
		`{"app": {"name": "editor", "viewport": "800x600"}}`:            "",
		`{"app": {"recipe": "key a", "close": "key b"}}`:                "",
		`{"app": {"command": "rm -rf /"}}`:                              "app.command: a plan of a token of the scope run",
		`{"app": "editor", "treatment": {"app": {"command": "sh"}}}`:    "treatment.app.command",
		`{"app": {"package": "com.android.settings"}}`:                  "app.package",
		`{"app": {"name": "editor", "home": "/root"}}`:                  "app.home",
		`{"app": {"command": "{home}/x"}, "steps": [{"launch":"app"}]}`: "app.command",
	} {
		var r Request
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			t.Fatal(err)
		}
		err := r.Allowed(ScopeRun)
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("Allowed(%s) = %v; want an error with %q", text, err, says)
		}
	}
}

// TestAppsOfAConfiguration: a mistake in the list is told with its place.
func TestAppsOfAConfiguration(t *testing.T) {
	for _, c := range []struct {
		apps  Apps
		field string
		says  string
	}{
		{Apps{"editor": {Command: "x"}}, "", ""},
		{Apps{"Editor": {Command: "x"}}, "", "an app's name"},
		{Apps{"a": {Name: "b"}}, ".a", "names another"},
		{Apps{"a": {Recipe: "key x"}}, ".a.close", "a recipe needs"},
		{Apps{"a": {Command: "x", Viewport: "9x9"}}, ".a.viewport", "from 100 to 4096"},
	} {
		field, err := c.apps.Check()
		if field != c.field || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("Check(%v) = %q, %v; want %q and an error with %q", c.apps, field, err, c.field, c.says)
		}
	}
}
