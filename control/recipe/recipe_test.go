package recipe

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"eidetic/control/gesture"
	"eidetic/internal/lab"
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
