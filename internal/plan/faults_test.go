package plan

import (
	"slices"
	"strings"
	"testing"
)

// All faults of a plan are told at once, each at its field, and none twice.
func TestFaults(t *testing.T) {
	for _, c := range []struct{ yaml, want string }{
		{"page: https://a.test/", ""},
		{"page: foo\nlink: frobnet\nbrowser: netscape\ntrials: 0", "trials link browser page"},
		{"page: foo\nlink: frobnet\nbrowser: netscape\ntreatment: {match: loose}", "link browser page"},
		{"page: https://a.test/\ntreatment: {link: frobnet, page: foo}", "treatment.link treatment.page"},
		{"page: https://a.test/\nbrowser: {name: netscape}\nsteps: [{open: 'https://a.test/'}, {click: '50%,'}, {scroll: 5, end: stil 1s}, {key: Foo}]",
			"steps[1].click steps[2].end steps[3].key browser"},
		{"page: https://a.test/\nlink: frobnet\nmargin_percent: 3\nlooks: 2", "looks link"},
		{"page: https://a.test/\nbrowser: {command: /bin/sh}\nlink: frobnet", "browser.command link"},
		{"steps: [{click: '5%,5%'}]", "steps[0] page"},
		{"pages: [{page: foo}, {page: https://b.test/}, {page: bar}]", "pages[0].page pages[2].page"},
	} {
		r, err := ParseForeign([]byte(c.yaml))
		if err != nil {
			t.Fatalf("%s: %v", c.yaml, err)
		}
		var got []string
		for _, f := range Faults(r, Options{}) {
			got = append(got, f.Path)
		}
		want := strings.Fields(c.want)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("Faults(%q) are at %q; want %q", c.yaml, got, want)
		}
		if _, err := Check(r, Options{}); (err == nil) != (len(got) == 0) {
			t.Errorf("Check(%q) = %v, with faults at %q", c.yaml, err, got)
		}
	}
}
