package plan

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// A plan stays as it was said: a zero is another thing than a field that was left out, and an unknown one is told.
func TestRequestIsAsItWasSaid(t *testing.T) {
	for _, text := range []string{
		`{}`, `{"trials":0}`, `{"page":"https://a.test/","treatment":{}}`, `{"treatment":{"link":""}}`, `{"seed":18446744073709551615}`,
		`{"steps":[{"click":"1,1","pings":0},{"key":"a"}]}`, `{"browser":"firefox"}`, `{"a.b":{"c":[1,2]},"trails":3}`, `{"trials":"ten"}`,
		`{"measure":{},"pages":[]}`, `{"page":null}`,
	} {
		var r Request
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			t.Fatal(err)
		}
		if got, err := json.Marshal(r); err != nil || string(got) != text {
			t.Errorf("%s is written as %s, %v", text, got, err)
		}
	}
	for text, path := range map[string]string{
		`{"trials":0}`: "trials", `{"trails":3}`: "trails", `{"trials":"ten"}`: "trials", `{"steps":[{"key":"a","pings":0}]}`: "steps[0].pings",
		`{"treatment":{"match":"x"}}`: "treatment.match", `{"a.b":1}`: "a.b",
	} {
		if got := request(t, text).Problems(); len(got) != 1 || got[0].Path != path {
			t.Errorf("Problems() of %s = %v; want one of %s", text, got, path)
		}
	}
	// Names that are no fields stay as they are, also those of fields elsewhere.
	named := request(t, `{"page":"https://a.test/","users":[{"name":"a","storage":{"app":"x","browser":"y"}}],"paths":{"app":["b"]}}`)
	if got := named.Problems(); len(got) > 0 {
		t.Errorf("Problems() of keys called app and browser = %v; want none", got)
	}
	if err := named.Allowed(ScopeRun); err != nil {
		t.Errorf("Allowed() of keys called app and browser = %v; want nil", err)
	}
	if err := json.Unmarshal([]byte(`[1]`), &Request{}); !errors.Is(err, errNoObject) {
		t.Errorf("a list is read with %v; want errNoObject", err)
	}
}

// Flags go before the file, and a change replaces, merges and removes as RFC 7396 says.
func TestSetAndWith(t *testing.T) {
	r, err := Parse([]byte("page: https://a.test/\ntrials: 0\ntreatment:\n  link: 3g\n"))
	err = errors.Join(err, r.Set("link", "lte"), r.Set("treatment.page", "https://b.test/"), r.Set("browser", "firefox"))
	const want = `{"browser":"firefox","link":"lte","page":"https://a.test/","treatment":{"link":"3g","page":"https://b.test/"},"trials":0}`
	if got, more := json.Marshal(r); err != nil || more != nil || string(got) != want || !r.Compares() {
		t.Errorf("Set() makes %s, %v %v; want %s", got, err, more, want)
	}
	r, err = r.With(request(t, `{"trials":null,"treatment":{"page":null,"link":"4g"},"margin_percent":0}`))
	const changed = `{"browser":"firefox","link":"lte","margin_percent":0,"page":"https://a.test/","treatment":{"link":"4g"}}`
	if got, more := json.Marshal(r); err != nil || more != nil || string(got) != changed {
		t.Errorf("With() makes %s, %v %v; want %s", got, err, more, changed)
	}
}

// TestFractionsAreNotCutOff: a whole number is not made of another one without a word.
func TestFractionsAreNotCutOff(t *testing.T) {
	for text, want := range map[string]string{
		"page: https://a.test/\ntrials: 3.9": "trials: 3.9: a whole number", "page: https://a.test/\ntrials: 0.5": "trials: 0.5: a whole number",
		"steps: [{open: https://a.test/}, {click: x, repeat: 2.5}]": "steps.1.repeat: 2.5: a whole number",
		"page: https://a.test/\nstill_s: .inf":                      "[2:10] .inf is no number here",
		"page: https://a.test/\nseed: 1\ntrials: 3.5":               "[3:1] trials: 3.5",
		"page: https://a.test/\ntrials: 3.0\nstill_s: 1.5\nseed: 7": "", "page: https://a.test/\nmargin_percent: 0.5": "",
	} {
		if _, err := Parse([]byte(text)); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q) = %v; want %q", text, err, want)
		}
	}
}

// An error of a field has file and line, also where the field is missing or was set by a flag.
func TestLocate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plan.yaml")
	write := func(text string) (Request, error) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return ReadFile(file)
	}
	r, err := write("page: https://a.test/\nsteps:\n  - open: https://a.test/\n  - click: there\n")
	if err != nil {
		t.Fatal(err)
	}
	_, err = Check(r, Options{})
	if got := r.Locate(err).Error(); !strings.HasPrefix(got, file+":4: steps[1].click: target") || !strings.Contains(got, "4 |   - click: there") {
		t.Errorf("Locate() = %q; want file, line and the line itself", got)
	}
	for path, line := range map[string]int{"steps[1].end": 4, "link": 0, "steps": 2} {
		if got := r.Line(path); got != line {
			t.Errorf("Line(%s) = %d; want %d", path, got, line)
		}
	}
	r, err = write("users: [{name: a, storage: {card: hush}}]\npage: there\n")
	if err != nil {
		t.Fatal(err)
	}
	_, err = Check(r, Options{})
	_, text := write("users: [{name: a, storage: {card: hush}}]\ntrials: many\n")
	for _, err := range []error{r.Locate(err), text} {
		if got := err.Error(); !strings.Contains(got, "2 | ") || strings.Contains(got, "hush") {
			t.Errorf("the error is %q; want the line at fault, and no other line of the plan", got)
		}
	}
	if got := r.Locate(&lab.FieldError{Path: "link", Err: errNoObject}).Error(); !strings.HasPrefix(got, file+": link: ") {
		t.Errorf("Locate() of a field that is not in the file = %q; want the file", got)
	}
	for text, says := range map[string]string{"trails: 3": `unknown field "trails"`, "trials: many": "[1:9]", "a: 1\n---\nb: 2": "more than one document"} {
		if _, err := write(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("ReadFile(%q) = %v; want %q", text, err, says)
		}
	}
	for name, text := range map[string]string{ // of Windows
		"directives": "%YAML 1.2\n---\npage: https://a.test/\nlink: lte\n...\n", "UTF-8 with a mark": "\ufeffpage: https://a.test/\r\nlink: lte\r\n", "JSON with a mark": "\ufeff{\"page\": \"https://a.test/\",\n\"link\": \"lte\"}",
		"UTF-16": "\xff\xfe" + strings.Join(strings.Split("page: https://a.test/\nlink: lte\n", ""), "\x00") + "\x00",
	} {
		if r, err := write(text); err != nil || r.Page != "https://a.test/" || r.Link != "lte" || r.Line("link") != 2+2*strings.Count(name, "directives") {
			t.Errorf("%s: page %q, link %q in line %d, %v; want those of the file", name, r.Page, r.Link, r.Line("link"), err)
		}
	}
	for text, says := range map[string]string{
		"page: https://a.test/\nname: gr\xf6\xdfe\n": "line 2: it is no UTF-8", "page: https://a.test/\x00\n": "line 1: it has a control character (U+0000)",
		"page: https://a.test/\nsteps:\n\t- wait: still\n": "YAML is indented by blanks", "link: lte\npage:\u00a0https://a.test/\n": "line 2 has a sign that looks like a blank or like nothing (U+00A0)",
	} {
		if _, err := write(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("ReadFile(%q) = %v; want %q", text, err, says)
		}
	}
	for text, says := range map[string]string{
		`{"title": "cart", "steps": [{"type": "navigate", "url": "https://a.test/"}]}`:                          "DevTools Recorder",
		"import { test, expect } from '@playwright/test';\ntest('a', async ({ page }) => {\n});\n":              "a test of Playwright",
		"module.exports = async function(context, commands) {\n  await commands.measure.start('a');\n};\n":      "browsertime",
		"setEventName\tcart\nnavigate\thttps://a.test/\n":                                                       "WebPageTest",
		`{"id": "x", "version": "2.0", "name": "a", "tests": [{"id": "y", "commands": [{"command": "open"}]}]}`: "Selenium IDE",
	} {
		if _, err := write(text); err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "docs/scenarios.md") {
			t.Errorf("ReadFile(%q) = %v; want that it is of %s", text, err, says)
		}
	}
	if _, err := ParseForeign([]byte("a: &a [x]\npage: *a\n")); err == nil || !strings.Contains(err.Error(), "alias") {
		t.Errorf("ParseForeign() of an alias = %v; want an error", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"", "page: https://a.test/\ntrials: 3", "{\"page\": 1}", "treatment: {link: lte}", "treatment: null", "? x\n: y", "a: &a [*a]", "{",
		"steps:\n - open: x\n   steps: [{click: 1}]", "? [a]\n: b", "seed: 1e999", "trials: .nan", "steps:\n !00000 00",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 4096 {
			return
		}
		var r Request
		var err error
		testlab.Bounded(t, 256<<20, func() { r, err = ParseForeign(text) })
		if err != nil {
			return
		}
		said, err := json.Marshal(r)
		if err != nil {
			t.Fatalf("%q cannot be sent: %v", text, err)
		}
		if again, err := json.Marshal(request(t, string(said))); err != nil || len(again) != len(said) {
			t.Errorf("%q is sent as %s, and read as %s, %v", text, said, again, err)
		}
		for _, field := range []string{"page", "steps[0].click", "treatment.link", "steps[0"} {
			if line := r.Line(field); line < 0 || line > strings.Count(string(text), "\n")+2 {
				t.Errorf("%q: %s is in line %d", text, field, line)
			}
		}
		_ = r.Set("treatment.link", "lte")
	})
}
