package suite

import (
	"strings"
	"testing"
	"time"

	"eidetic/internal/rigs/testlab"
)

// TestShippedSuites: the suites of the program are read, with all their plans, and compare more than one browser.
func TestShippedSuites(t *testing.T) {
	for _, name := range Shipped() {
		s, err := Open(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if s.Name != name || len(s.Browsers) < 2 {
			t.Errorf("%s: suite %q of %q; want its file's name, and two browsers", name, s.Name, s.Browsers)
		}
		if again, err := Open(name); err != nil || again != s { // each list of suites opens all
			t.Errorf("%s is read anew each time (%v)", name, err)
		}
		of := New(s, "", s.Browsers, 0, 1, time.Time{})
		if again, err := of.Source(); err != nil || again != s { // series of releases open as many as there are results
			t.Errorf("%s is read anew for each result (%v)", name, err)
		}
		of.Text += "# another\n"
		if other, err := of.Source(); err != nil || other.SHA256() == s.SHA256() {
			t.Errorf("a result of a suite that is called %s has the program's own (%v)", name, err)
		}
	}
}

const small = `suite: small
trials: 2
browsers: [chromium, firefox-esr]
entries:
  - name: one
    type: load
    visual: load/speed_index_ms
    interactive: load/first_feedback_ms
    plan:
      steps: [{name: load, open: "https://www.shop.test/suite/article"}]
`

// TestErrorsOfSuites: what is wrong with a suite is told with its line and its field.
func TestErrorsOfSuites(t *testing.T) {
	plain, err := Parse("f.yaml", []byte(small))
	if err != nil {
		t.Fatal(err)
	}
	if marked, err := Parse("f.yaml", []byte("\ufeff"+small)); err != nil || marked.SHA256() != plain.SHA256() {
		t.Errorf("Parse() of a suite with a byte order mark: %v; want the same suite", err)
	}
	for _, c := range []struct{ old, new, want string }{
		{"suite: small", "suite: Small one", "f.yaml:1: suite: "},
		{"trials: 2", "trials: -1", "f.yaml:2: trials: -1"},
		{"trials: 2", "tirals: 2", "f.yaml:2: unknown field \"tirals\": did you mean trials?"},
		{"[chromium, firefox-esr]", "[chromium, chromium]", "f.yaml:3: browsers: "},
		{"name: one", "name: ../one", "f.yaml:5: entries[0].name: "},
		{"load/speed_index_ms", "load/wrong", "f.yaml:7: entries[0].visual: "},
		{"load/speed_index_ms", "load/movement_x_px", "f.yaml:7: entries[0].visual: "},
		{"name: load, open", "name: load, opens", "f.yaml:10: entries[0].plan.steps[0].opens: "},
		{"plan:", "archive_sha256: abc\n    plan:", "f.yaml:9: entries[0].archive_sha256: "},
		{"plan:", "draw: fast\n    plan:", "f.yaml:9: entries[0].draw: "},
		{"load/speed_index_ms", "'measure:'", "f.yaml:7: entries[0].visual: after measure:"},
		{"load/speed_index_ms", "measure:done", "entries[0].plan: a mark that begins with measure:"},
		{"plan:", "weight: .inf\n    plan:", "f.yaml:9: entries[0].weight: "},
		{"plan:", "truth: [{metric: load/speed_index_ms, is: 1, within: 1, over: two}]\n    plan:", "f.yaml:9: entries[0].truth[0].over: "},
		{"      steps:", "      browser: chromium\n      steps:", "entries[0].plan: treatment, pages, users and browser"},
		{"      steps: [{name: load", "      seed: &a 1\n      trials: *a\n      steps: [{name: load", "f.yaml:11: an alias"},
	} {
		text := strings.Replace(small, c.old, c.new, 1)
		if text == small {
			t.Fatalf("%q is not in the suite", c.old)
		}
		if _, err := Parse("f.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: error %v; want %q", c.new, err, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(small))
	for _, name := range Shipped() {
		text, err := shipped.ReadFile("suites/" + name + ".yaml")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte("entries: [[[[]]]]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer testlab.Input(t)()
		s, err := Parse("fuzzed", text)
		if err != nil {
			return
		}
		for i := range s.Entries {
			if _, err := s.PlanOf(i, nil, 1, 1); err != nil {
				t.Errorf("entry %d of a suite that was read has no plan: %v", i, err)
			}
		}
	})
}
