package plan

import (
	"encoding/json"
	"strings"
	"testing"

	"eidetic/internal/lab"
)

// A browser that cannot be started is refused with its field; the arms have the size of its screen.
func TestCheckBrowser(t *testing.T) {
	for text, say := range map[string]string{
		`"chromium"`: "", `{"name": "firefox", "scale": 2}`: "", `{"command": "/opt/firefox/firefox", "profile": "/p"}`: "",
		`{"name": "chromium", "viewport": "412x915", "extensions": ["/srv/blocker"]}`: "",

		`{"naem": "x"}`:                                "browser",
		`"safari"`:                                     "browser: \"safari\" is none of chromium",
		`{"name": "firefox", "command": "x"}`:          "not both",
		`{"name": "chromium", "prefs": ["a=b"]}`:       "browser.prefs: only Firefox",
		`{"name": "firefox", "prefs": ["a"]}`:          "write NAME=VALUE",
		`{"name": "firefox", "scheme": "red"}`:         "browser",
		`{"name": "chromium", "viewport": "wide"}`:     "browser",
		`{"name": "chromium", "viewport": "10x900"}`:   "browser.viewport: \"10x900\": write WIDTHxHEIGHT, each side from 100",
		`{"name": "chromium", "viewport": "9000x900"}`: "to 4096 pixels",
		`{"name": "firefox", "extensions": ["/x"]}`:    "browser.extensions: only Chromium",
		`{"command": " "}`:                             "browser.command: it is empty",
		`{}`:                                           "give it a name",
	} {
		var r Request
		if err := json.Unmarshal([]byte(`{"page":"https://a.test/","browser":`+text+`}`), &r); err != nil {
			t.Fatal(err)
		}
		c, err := Check(r, Options{Scope: ScopeAdmin})
		if (err == nil) != (say == "") || err != nil && !strings.Contains(err.Error(), say) {
			t.Errorf("browser %s: Check() = %v; want an error with %q", text, err, say)
		}
		if strings.Contains(text, "412x915") && (err != nil || c.Cells[0].Arms[0].Screen.X != 412 || c.Cells[0].Arms[0].Screen.Y != 915) {
			t.Errorf("browser %s: Check() = %+v, %v; want a screen of 412 × 915", text, c.Cells, err)
		}
	}
	if got := (&lab.Browser{Name: lab.Chromium, Viewport: "412x915", Extensions: []string{"/srv/blocker"}}).String(); got != "chromium viewport 412x915 extension blocker" {
		t.Errorf("String() = %q", got)
	}
}
