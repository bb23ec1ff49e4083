package plan

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"eidetic/internal/lab"
)

// Scope says whose plan it is, and so what it may name.
type Scope int

// The scopes, from the least. A token of the scope run and the head of a fleet name what the box's admin has named; a
// token of the scope admin names programs and files of the box as well; the person at the command line also names files
// of links.
const (
	ScopeRun Scope = iota
	ScopeAdmin
	ScopePerson
)

// scopeAdmin is lab.Plan.Scope of a plan that a token of the scope admin has asked for, and that a smaller one may not
// ask for.
const scopeAdmin = "admin"

// ScopeOf is the scope that a box has noted in a plan.
func ScopeOf(p lab.Plan) Scope {
	if p.Scope == scopeAdmin {
		return ScopeAdmin
	}
	return ScopeRun
}

// AskedBy is the plan with the note of who asks for it, whatever it said of that itself: every plan from outside goes
// through here before it is kept.
func AskedBy(p lab.Plan, s Scope) lab.Plan {
	p.Scope, p.Opened = "", nil
	if s >= ScopeAdmin && (Request{Plan: p}).Allowed(ScopeRun) != nil {
		p.Scope = scopeAdmin
	}
	return p
}

// Opening is the plan with the note that the hosts of its pages are reached wherever they are, as on the command line
// those of the pages that a person names. Origins that somebody else named stay as they are.
func Opening(p lab.Plan, others ...string) lab.Plan {
	for _, origin := range p.Origins() {
		if host := lab.ParseURL(origin).Hostname(); !slices.Contains(others, origin) && !slices.Contains(p.Opened, host) {
			p.Opened = append(slices.Clip(p.Opened), host)
		}
	}
	return p
}

// AskedBy is the request of a bisect with that note: revisions, which take the place of marks, may name what the plan
// does not.
func (r Request) AskedBy(s Scope) Request {
	r.Plan = AskedBy(r.Plan, s)
	if s >= ScopeAdmin {
		r.Scope = scopeAdmin
	}
	return r
}

// ScopeError says that a plan names what its scope may not name. It is also a *lab.FieldError.
type ScopeError struct{ field *lab.FieldError }

func (e *ScopeError) Error() string { return e.field.Error() }

// Unwrap returns the field with its error.
func (e *ScopeError) Unwrap() error { return e.field }

// ScopeRule says of fields of the plan who may say them.
type ScopeRule struct {
	// Fields are as they are said; [] is any element of a list. Those of arms are also those of the treatment, and those
	// of browsers also those of users' browsers.
	Fields []string
	// Reaches is what a value leads to, and Run and Admin what plans of these scopes may say, all for people. The
	// command line may say everything.
	Reaches, Run, Admin string
	// refuse says why a plan of the scope run may not have a value; nil lets all pass.
	refuse func(value any) error
}

const (
	anything = "any"
	// usual is what Reaches is of a field that reaches nothing but the run itself.
	usual = "the run itself"
)

// ScopeRules is the table of all fields of a plan.
func ScopeRules() []ScopeRule {
	return []ScopeRule{
		{Fields: words("name trials timing miss still_s limit_s seed tolerance_ms expect_blank on_dialog looks margin_percent margins_percent primary budgets tags paths find covariates " +
			"recordings warmups traces trace_all conditions.battery_min_percent conditions.battery_max_c conditions.thermal conditions.power " +
			"conditions.refresh_hz conditions.processor_max_c conditions.signal_min_dbm conditions.air_busy_max_percent conditions.wait_s " +
			"link match state process"), Reaches: usual + "; a trace file of `link`",
			Run: "any, and no trace file", Admin: "any, and no trace file"},
		{Fields: words("measure.metrics measure.guards measure.steps measure.regions measure.ignore measure.tolerance measure.unique_pixels " +
			"measure.luma_step measure.refresh_hz measure.zoom measure.blank measure.known_images measure.quiet_s measure.frame_codes " +
			"measure.page_marks measure.machine_hz measure.messages measure.level measure.traceparent"), Reaches: usual, Run: anything, Admin: anything},
		{Fields: words("device recipe"), Reaches: "a device of the box, and what is known of it, by name", Run: "names", Admin: "names"},
		{Fields: words("page pages[].page pages[].treatment.page steps[].open steps[].launch"),
			Reaches: "an origin, while a page is recorded; a device's own browser, which reaches the box alone",
			Run:     "what the box may reach: public addresses, others with `network.allow_private`", Admin: "the same, and the pages' own hosts where only this machine reaches the panel"},
		{Fields: words("archive pages[].archive pages[].treatment.archive"), Reaches: "a recording of the box", Run: "names", Admin: "names"},
		{Fields: words("files inject steps[].replay steps[].choose"), Reaches: "files that are sent with the plan", Run: "names of these", Admin: "names of these"},
		{Fields: words("steps[].name steps[].tags steps[].click steps[].move steps[].type steps[].key steps[].scroll steps[].drag steps[].pan steps[].pinch steps[].rotate " +
			"steps[].fingers steps[].wait " +
			"steps[].idle steps[].mark steps[].repeat steps[].at steps[].button steps[].over_ms steps[].rate_hz steps[].late_ms steps[].pings " +
			"steps[].echo steps[].region steps[].window steps[].end steps[].limit_s steps[].mask"),
			Reaches: "the device's screen and input", Run: anything, Admin: anything},
		{Fields: words("pages[].name pages[].weight pages[].tags pages[].margin_percent pages[].margins_percent users[].name users[].weight users[].viewport"), Reaches: usual, Run: anything, Admin: anything},
		{Fields: words("users[].cookies users[].storage"), Reaches: "credentials of the plan's own pages, which are in `run.json` of the run",
			Run: anything, Admin: anything},
		{Fields: words("browser.scale browser.viewport browser.scheme browser.draw browser.input_method"), Reaches: usual, Run: anything, Admin: anything},
		{Fields: words("browser.name"), Reaches: "a program of the box, with its profile and files",
			Run: "chromium, firefox, firefox-esr, and what `browsers:` of the configuration names", Admin: "the same"},
		{Fields: words("browser.command"), Reaches: "a program of the box", Run: "no", Admin: anything, refuse: never("a program", "browser")},
		{Fields: words("app.name"), Reaches: "a program of the box or of its device, with its files",
			Run: "what `apps:` of the configuration names", Admin: "the same"},
		{Fields: words("app.command app.home app.package"), Reaches: "a program of the box or of its device, and files of the box", Run: "no",
			Admin: anything, refuse: never("a program or a folder", "app")},
		{Fields: words("app.recipe app.close"), Reaches: "the device's input", Run: anything, Admin: anything},
		{Fields: words("app.viewport app.input_method"), Reaches: usual, Run: anything, Admin: anything},
		{Fields: words("browser.profile browser.extensions[]"), Reaches: "files of the box", Run: "no", Admin: anything, refuse: never("a folder", "browser")},
		{Fields: words("browser.flags[]"), Reaches: "programs and files of the box, and the browser's sandbox",
			Run: "those of " + strings.Join(harmlessFlags(), ", "), Admin: anything, refuse: refuseFlag},
		{Fields: words("browser.prefs[]"), Reaches: "the browser's sandbox",
			Run: "none that begins with " + strings.Join(powerfulPrefs(), ", "), Admin: anything, refuse: refusePref},
		{Fields: words("screen.v4l2 screen.camera screen.x11 screen.scrcpy screen.server controls.gadget controls.ch9329 controls.adb controls.server " +
			"controls.x11"),
			Reaches: "a screen, camera or port of the box, and a file for a phone", Run: "no: what `devices:` of the configuration names, by `device`", Admin: anything,
			refuse: refusePart},
		{Fields: words("screen.rfb controls.rfb"), Reaches: "a VNC server: of the device, or at any address", Run: "a port of the device",
			Admin: anything, refuse: refuseServer},
		{Fields: words("screen.format screen.size screen.rate screen.edid screen.set screen.latency_ms screen.through controls.layout controls.screen " +
			"controls.baud controls.relative controls.gain controls.touch"), Reaches: usual, Run: anything, Admin: anything},
		{Fields: words("on.boxes on.labels on.each on.priority"), Reaches: "boxes of a fleet, on its head", Run: anything, Admin: anything},
		{Fields: words("from live scope opened"), Reaches: "what the box itself notes, and `appliance demo --live`", Run: "no", Admin: "no"},
	}
}

func words(text string) []string { return strings.Fields(text) }

// howToName says what to do instead, where the configuration has a list of what a field names.
func howToName(field string) string {
	return fmt.Sprintf("the box's admin puts it under %ss: in its configuration, as NAME: {…}, and the plan says %s: NAME; "+
		"only a token of the scope admin, on the box itself, sends it as it is", field, field)
}

func never(what, field string) func(any) error {
	return func(any) error {
		return fmt.Errorf("a plan of a token of the scope run, or of the head of a fleet, does not name %s of the box: %s", what, howToName(field))
	}
}

// harmlessFlags are those of Chromium that choose what a page can do, and neither a program, a file nor an address.
func harmlessFlags() []string {
	return []string{
		"--enable-features", "--disable-features", "--enable-blink-features", "--disable-blink-features", "--blink-settings",
		"--force-prefers-reduced-motion", "--force-dark-mode", "--hide-scrollbars", "--disable-smooth-scrolling", "--incognito",
	}
}

func refuseFlag(value any) error {
	name, _, _ := strings.Cut(fmt.Sprint(value), "=")
	if slices.Contains(harmlessFlags(), name) {
		return nil
	}
	return fmt.Errorf("a plan of a token of the scope run, or of the head of a fleet, has of flags only %s, and not %.60q: %s",
		strings.Join(harmlessFlags(), ", "), name, howToName("browser"))
}

// powerfulPrefs begin the names of Firefox's preferences that switch its sandbox off, have it read files, or let others
// steer it.
func powerfulPrefs() []string {
	return []string{
		"security.sandbox.", "security.fileuri.", "autoadmin.", "general.config.", "browser.tabs.remote.", "fission.", "dom.ipc.",
		"extensions.", "xpinstall.", "devtools.", "remote.", "marionette.",
	}
}

func refusePref(value any) error {
	for _, begin := range powerfulPrefs() {
		if strings.HasPrefix(fmt.Sprint(value), begin) {
			return fmt.Errorf("a plan of a token of the scope run, or of the head of a fleet, has no preference of %s…: %s", begin, howToName("browser"))
		}
	}
	return nil
}

// errPart refuses parts of devices that a plan names itself.
var errPart = errors.New("a plan of a token of the scope run, or of the head of a fleet, does not name screens, ports or addresses of the box: " + // constant
	"its admin gives them to a device under devices: in its configuration, and the plan says device: NAME; " +
	"only a token of the scope admin, on the box itself, sends them as they are")

func refusePart(any) error { return errPart }

func refuseServer(value any) error {
	if IsPort(fmt.Sprint(value)) {
		return nil
	}
	return errPart
}

// Allowed returns an error, a *ScopeError, for what a plan says that its scope may not say. A field without a rule may
// be said by nobody but the person at the command line.
func (r Request) Allowed(s Scope) error {
	if s >= ScopeAdmin {
		return nil
	}
	fields, err := r.fields()
	if err != nil {
		return &ScopeError{&lab.FieldError{Path: "plan", Err: err}}
	}
	rules := map[string]ScopeRule{}
	for _, rule := range ScopeRules() {
		for _, name := range rule.Fields {
			rules[name] = rule
		}
	}
	if wrong := refusedIn(rules, "", plainPlan(fields)); wrong != nil {
		return &ScopeError{wrong}
	}
	return nil
}

// refusedIn goes through a value of the plan at a path.
func refusedIn(rules map[string]ScopeRule, path string, value any) *lab.FieldError {
	if value == nil || value == "" { // nothing, or, in a patch, what is removed
		return nil
	}
	if rule, ok := rules[ruleFor(path)]; ok {
		if rule.refuse == nil {
			return nil
		}
		if err := rule.refuse(value); err != nil {
			return &lab.FieldError{Path: path, Err: err}
		}
		return nil
	}
	switch v := value.(type) {
	case map[string]any:
		for _, name := range sortedKeys(v) {
			at := name
			if path != "" {
				at = path + "." + name
			}
			if wrong := refusedIn(rules, at, v[name]); wrong != nil {
				return wrong
			}
		}
		return nil
	case []any:
		for i, one := range v {
			if wrong := refusedIn(rules, fmt.Sprintf("%s[%d]", path, i), one); wrong != nil {
				return wrong
			}
		}
		return nil
	}
	return &lab.FieldError{Path: path, Err: errors.New("no plan that is sent to a box has it")}
}

func sortedKeys(fields map[string]any) []string {
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names) // so that of several the same is told each time
	return names
}

var (
	anyIndex    = regexp.MustCompile(`\[[0-9]+\]`)                    // constant
	outerFields = regexp.MustCompile(`^(pages\[\]\.)?(steps\[\]\.)+`) // constant
)

// ruleFor is the name in the table of a field at a path: steps have the same rules wherever they are, and the arms;
// JSON's names of fields are read whatever their case.
func ruleFor(path string) string {
	path = strings.ToLower(path)
	path = anyIndex.ReplaceAllString(path, "[]")
	if inner := outerFields.FindString(path); strings.HasSuffix(inner, "steps[].") {
		path = "steps[]." + path[len(inner):]
	}
	if browser, ok := strings.CutPrefix(path, "users[]."); ok && strings.HasPrefix(browser, "browser") {
		return browser
	}
	return strings.TrimPrefix(path, "treatment.")
}
