package archive

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRulesAreKept(t *testing.T) {
	rules := []Rule{{URL: "https://a.test/*", Ignore: []string{"sid", "user.*"}}}
	path := filepath.Join(t.TempDir(), "a.wacz")
	if err := Save(path, New(nil, nil, []Page{{URL: "https://a.test/"}}, CreateOptions{Wall: time.Unix(1e9, 0)}).WithRules(rules)); err != nil {
		t.Fatal(err)
	}
	a, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(rules, a.Options().Rules); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for name, want := range map[string]bool{"sid": true, "user.session": true, "q": false, "sidx": false} {
		if got := rules[0].Ignores("https://a.test/x?sid=1", name); got != want {
			t.Errorf("Ignores(%s) = %v, want %v", name, got, want)
		}
	}
	if rules[0].Ignores("https://b.test/", "sid") {
		t.Error("Ignores for another host = true, want false")
	}
}

func TestRulesOfAFile(t *testing.T) {
	for text, says := range map[string]string{
		`[{"url":"a","ignore":["b"]}]`: "",
		`nonsense`:                     "cannot be read",
		`[{"url":"a"}]`:                "needs a URL pattern",
		`[{"url":"a","ignore":[""]}]`:  "without a name",
		"[" + strings.Repeat(`{"url":"a","ignore":["b"]},`, 1001) + "{}]": "too many",
	} {
		_, err := parseRules(text, nil)
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%.40s: %v, want %q", text, err, says)
		}
	}
}
