package plan

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"eidetic/internal/lab"
)

var update = flag.Bool("update", false, "write the table of docs/security.md anew")

// leaves lists the fields below a type by their paths, as rules name them.
func leaves(t reflect.Type, path string, seen []reflect.Type) (all []string) {
	switch {
	case t.Kind() == reflect.Pointer:
		return leaves(t.Elem(), path, seen)
	case slices.Contains(seen, t): // steps in steps
		return nil
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		return leaves(t.Elem(), path+"[]", seen)
	case t.Kind() != reflect.Struct:
		return []string{path}
	}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		at := strings.TrimPrefix(path+"."+name, ".")
		switch {
		case name == "-":
		case f.Anonymous:
			all = append(all, leaves(f.Type, path, append(seen, t))...)
		default:
			all = append(all, leaves(f.Type, at, append(seen, t))...)
		}
	}
	return all
}

// Every field of a plan has one rule that says who may say it, and every rule is of a field.
func TestEveryFieldHasARule(t *testing.T) {
	rules := map[string]int{}
	for _, rule := range ScopeRules() {
		for _, name := range rule.Fields {
			rules[strings.TrimSuffix(name, "[]")]++
		}
	}
	met := map[string]bool{}
	for _, field := range leaves(reflect.TypeFor[lab.Plan](), "", nil) {
		name := ruleFor(field)
		for rules[name] == 0 && strings.Contains(name, ".") { // such as users[].cookies[].value, of which all have the rule of the list
			name = strings.TrimSuffix(name[:strings.LastIndexByte(name, '.')], "[]")
		}
		if rules[name] != 1 {
			t.Errorf("the field %s has %d rules in ScopeRules; want 1: who may say it, and what does it reach?", field, rules[name])
		}
		met[name] = true
	}
	for name := range rules {
		if !met[name] {
			t.Errorf("ScopeRules has a rule for %s, which is no field of a plan", name)
		}
	}
}

// table is that of docs/security.md.
func table() string {
	var b strings.Builder
	b.WriteString("| field of the plan | leads to | token `run`, or a fleet's head | token `admin`, on the box itself |\n|---|---|---|---|\n")
	for _, rule := range ScopeRules() {
		b.WriteString("| `" + strings.Join(rule.Fields, "`, `") + "` | " + rule.Reaches + " | " + rule.Run + " | " + rule.Admin + " |\n")
	}
	return b.String()
}

// docs/security.md has the table as it is enforced.
func TestScopesAreDocumented(t *testing.T) {
	const file, begin, end = "../../docs/security.md", "<!-- scopes -->\n", "<!-- end of scopes -->\n"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	documented, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no part between %q and %q", file, begin, end)
	}
	if *update {
		if err := os.WriteFile(file, []byte(before+begin+table()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if documented != table() {
		t.Errorf("%s has another table than ScopeRules: go test ./internal/plan -run TestScopesAreDocumented -update", file)
	}
}

// A plan names programs, files, ports and addresses of a box by its admin's scope alone, whatever way it is written.
func TestScopes(t *testing.T) {
	const page = `"page":"https://a.test/"`
	entries := Browsers{"nightly": {Command: "/opt/firefox-nightly/firefox", Profile: "/srv/shop"}}
	for _, c := range []struct {
		plan  string
		field string // that a token of the scope run may not say
	}{
		{`{` + page + `,"browser":"firefox-esr","link":"lte","users":[{"name":"a","cookies":[{"name":"a","value":"b","secure":true}],"storage":{"k":"v"}}]}`, ""},
		{`{` + page + `,"browser":{"name":"chromium","flags":["--enable-features=X"],"viewport":"412x915","scale":2,"scheme":"dark"}}`, ""},
		{`{` + page + `,"browser":{"name":"firefox","prefs":["layout.frame_rate=30"]}}`, ""},
		{`{` + page + `,"browser":"nightly","treatment":{"browser":{"name":"nightly","viewport":"412x915"}}}`, ""},
		{`{` + page + `,"screen":{"rfb":"5900","rate":30},"controls":{"rfb":"5900"},"recipe":"windows-chrome"}`, ""},
		{`{"steps":[{"open":"https://a.test/"},{"steps":[{"type":"/etc/passwd"}],"name":"x"}],"on":{"boxes":["lab-1"]}}`, ""},

		{`{` + page + `,"browser":{"command":"/bin/sh -c id"}}`, "browser.command"},
		{`{` + page + `,"browser":{"Command":"/bin/sh"}}`, "browser.command"},
		{`{` + page + `,"BROWSER":{"COMMAND":"/bin/sh"}}`, "browser.command"},
		{`{` + page + `,"treatment":{"browser":{"command":"/bin/sh"}}}`, "treatment.browser.command"},
		{`{` + page + `,"browser":{"name":"chromium","profile":"/var/lib/eidetic"}}`, "browser.profile"},
		{`{` + page + `,"browser":{"name":"nightly","profile":"/var/lib/eidetic"}}`, "browser.profile"},
		{`{` + page + `,"browser":{"name":"chromium","extensions":["/srv/x"]}}`, "browser.extensions[0]"},
		{`{` + page + `,"browser":{"name":"chromium","flags":["--hide-scrollbars","--renderer-cmd-prefix=/bin/sh"]}}`, "browser.flags[1]"},
		{`{` + page + `,"browser":{"name":"chromium","flags":["--no-sandbox"]}}`, "browser.flags[0]"},
		{`{` + page + `,"browser":{"name":"chromium","flags":["/etc/passwd"]}}`, "browser.flags[0]"},
		{`{` + page + `,"browser":{"name":"chromium","flags":["-no-sandbox"]}}`, "browser.flags[0]"},
		{`{` + page + `,"browser":{"name":"firefox","prefs":["a=b","security.sandbox.content.level=0"]}}`, "browser.prefs[1]"},
		{`{` + page + `,"screen":{"v4l2":"/dev/video0"}}`, "screen.v4l2"},
		{`{` + page + `,"screen":{"camera":"/dev/video0"}}`, "screen.camera"},
		{`{` + page + `,"screen":{"x11":":0"}}`, "screen.x11"},
		{`{` + page + `,"screen":{"scrcpy":"auto"}}`, "screen.scrcpy"},
		{`{` + page + `,"screen":{"rfb":"127.0.0.1:5900"}}`, "screen.rfb"},
		{`{` + page + `,"controls":{"rfb":"10.0.0.1:22"}}`, "controls.rfb"},
		{`{` + page + `,"controls":{"ch9329":"/dev/ttyS0"}}`, "controls.ch9329"},
		{`{` + page + `,"controls":{"gadget":"auto"}}`, "controls.gadget"},
		{`{` + page + `,"controls":{"adb":"auto"}}`, "controls.adb"},
		{`{` + page + `,"controls":{"x11":":0"}}`, "controls.x11"},
	} {
		var r Request
		if err := json.Unmarshal([]byte(c.plan), &r); err != nil {
			t.Fatal(err)
		}
		var beyond *ScopeError
		var wrong *lab.FieldError
		_, err := Check(r, Options{Browsers: entries})
		switch {
		case c.field == "" && err != nil:
			t.Errorf("%s: Check() of the scope run = %v; want nil", c.plan, err)
		case c.field != "" && (!errors.As(err, &beyond) || !errors.As(err, &wrong) || !strings.EqualFold(wrong.Path, c.field) || !strings.Contains(err.Error(), "admin")):
			t.Errorf("%s: Check() of the scope run = %v; want a ScopeError of %s that says who may", c.plan, err, c.field)
		}
		if _, err := Check(r, Options{Scope: ScopeAdmin, Browsers: entries}); err != nil {
			t.Errorf("%s: Check() of the scope admin = %v; want nil", c.plan, err)
		}
		// What a plan says of its scope itself counts for nothing.
		forged := r.Plan
		forged.Scope = "admin"
		if kept := AskedBy(forged, ScopeRun); ScopeOf(kept) != ScopeRun || kept.Scope != "" {
			t.Errorf("%s: AskedBy(run) of a plan that says admin has the scope %q; want none", c.plan, kept.Scope)
		}
		if kept := AskedBy(r.Plan, ScopeAdmin); (ScopeOf(kept) == ScopeAdmin) != (c.field != "") {
			t.Errorf("%s: AskedBy(admin) has the scope %q; want it noted where it is needed alone", c.plan, kept.Scope)
		}
	}
}

// A plan's browser of the configuration is that with what the plan says besides; in the plan itself its name stays.
// TestUsersBrowsers: a user's browser is as bounded as a plan's.
func TestUsersBrowsers(t *testing.T) {
	for text, want := range map[string]string{
		`{"name": "firefox-esr"}`:           "",
		`{"command": "/bin/sh"}`:            "users[1].browser.command",
		`{"name": "a", "profile": "/root"}`: "users[1].browser.profile",
	} {
		var r Request
		body := `{"page": "https://a.test/", "users": [{"name": "one"}, {"name": "two", "browser": ` + text + `}]}`
		if err := json.Unmarshal([]byte(body), &r); err != nil {
			t.Fatal(err)
		}
		err := r.Allowed(ScopeRun)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("a token of the scope run says %s: %v; want %q", text, err, want)
		}
	}
}

func TestConfiguredBrowsers(t *testing.T) {
	entries := Browsers{
		"nightly": {Command: "/opt/nightly/firefox", Profile: "/srv/shop", Prefs: []string{"a=1"}, Viewport: "800x600"},
		"shop":    {Name: lab.Chromium, Profile: "/srv/shop"},
	}
	p := lab.Plan{Arm: lab.Arm{Page: "https://a.test/", Browser: &lab.Browser{Name: "nightly", Prefs: []string{"b=2"}}}}
	p.Treatment = &lab.Arm{Browser: &lab.Browser{Name: "shop", Viewport: "412x915"}}
	c, err := Check(Request{Plan: p}, Options{Browsers: entries})
	if err != nil {
		t.Fatal(err)
	}
	control, treatment := c.Cells[0].Arms[0], c.Cells[0].Arms[1]
	if b := control.Browser; b.Command != "/opt/nightly/firefox" || b.Profile != "/srv/shop" || !slices.Equal(b.Prefs, []string{"a=1", "b=2"}) ||
		b.Family() != lab.Firefox || b.String() != "nightly profile shop a=1 b=2 viewport 800x600" || control.Screen.X != 800 {
		t.Errorf("the control's browser is %+v (%s) on %v; want what the configuration says, and b=2", b, b, control.Screen)
	}
	if b := treatment.Browser; b.Name != lab.Chromium || b.Profile != "/srv/shop" || b.Entry != "shop" || treatment.Screen.X != 412 {
		t.Errorf("the treatment's browser is %+v on %v; want the configuration's with another viewport", b, treatment.Screen)
	}
	if kept, err := json.Marshal(c.Plan); err != nil || strings.Contains(string(kept), "/opt/nightly") || strings.Contains(string(kept), "/srv/shop") {
		t.Errorf("the plan that is kept is %s, %v; want the names alone", kept, err)
	}
	again, err := c.WithArchives(func(_, name string) (string, error) { return name, nil })
	if err != nil || again.Cells[0].Arms[0].Browser.Command != "/opt/nightly/firefox" {
		t.Errorf("WithArchives() = a browser %v, %v; want that of the configuration", again.Cells[0].Arms[0].Browser, err)
	}
	if _, err := Check(Request{Plan: p}, Options{}); err == nil || !strings.Contains(err.Error(), `"nightly" is none of`) {
		t.Errorf("Check() where no browser is configured = %v; want an error that names it", err)
	}
	p.Steps = []lab.Step{{Open: "https://a.test/"}, {Click: "css #a"}}
	if _, err := Check(Request{Plan: p}, Options{Elsewhere: true}); err != nil {
		t.Errorf("Check() of the head of a fleet = %v; want nil: each box knows its own", err)
	}
	for name, b := range map[string]lab.Browser{
		"chromium": {Command: "/x"}, "Nightly": {Command: "/x"}, "a b": {Command: "/x"}, "both": {Command: "/x", Name: lab.Firefox}, "none": {},
		"loop": {Name: "loop"}, "prefs": {Name: lab.Chromium, Prefs: []string{"a=1"}}, "wide": {Name: lab.Chromium, Viewport: "9x9"},
		"many": {Name: lab.Chromium, Flags: slices.Repeat([]string{"--x"}, 51)},
	} {
		if _, err := (Browsers{name: b}).Check(); err == nil {
			t.Errorf("Browsers.Check() of %s: %+v = nil; want an error", name, b)
		}
	}
	if field, err := entries.Check(); err != nil {
		t.Errorf("Browsers.Check() = %s, %v; want nil", field, err)
	}
}
