package recipe

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"eidetic/control/gesture"
	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// Every recipe has all that a person needs, and steps that can be carried out.
func TestRecipes(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, r := range all {
		if seen[r.Name] || r.Platform == "" || r.Browser == "" || len(r.Trust) == 0 || !strings.Contains(r.Open, "{url}") {
			t.Errorf("%q: twice, or without platform, browser, a way to trust the box or to open a URL", r.Name)
		}
		seen[r.Name] = true
		for what, steps := range map[string]string{"fresh": r.Fresh, "close": r.Close, "kiosk": r.Kiosk} {
			if _, err := gesture.Parse(steps); steps != "" && err != nil {
				t.Errorf("%s of %s: %v", what, r.Name, err)
			}
		}
	}
	r, err := Find("macos-safari")
	if err != nil {
		t.Fatal(err)
	}
	const url = `https://shop.test/?q="a;b"\c#d`
	got, err := r.Opening(url)
	if diff := cmp.Diff([]lab.Step{{Key: "Cmd+L"}, {Wait: "1s"}, {Type: url}, {Key: "Enter"}}, got); diff != "" || err != nil {
		t.Errorf("Opening() = %v; -want +got\n%s", err, diff)
	}
	if _, err := Find("amiga"); err == nil || !strings.Contains(err.Error(), "linux-chrome") {
		t.Errorf("Find() of an unknown recipe: %v; want an error that lists them", err)
	}
}

// FuzzOpening: whatever the address, it is typed as it is, and makes no step of its own.
func FuzzOpening(f *testing.F) {
	f.Add("https://a.test/?a=\"b\\\"; key Enter")
	f.Add("https://a.test/\n{url}")
	all, err := All()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, url string) {
		if len(url) > 4096 {
			return
		}
		for _, r := range all {
			plain, err := r.Opening("https://a.test/")
			if err != nil {
				t.Fatal(err)
			}
			testlab.Bounded(t, 16<<20, func() {
				if steps, err := r.Opening(url); err == nil && len(steps) != len(plain) {
					t.Errorf("%s opens %q in %d steps; want %d", r.Name, url, len(steps), len(plain))
				}
			})
		}
	})
}
