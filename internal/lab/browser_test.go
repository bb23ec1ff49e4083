package lab

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestBrowserIsANameOrAnObject(t *testing.T) {
	for text, want := range map[string]string{
		`"firefox-esr"`: `"firefox-esr"`,
		`{"command": "/opt/firefox/firefox", "profile": "/p"}`: `{"command":"/opt/firefox/firefox","profile":"/p"}`,
		`{"name": "firefox", "scale": 2}`:                      `{"name":"firefox","scale":2}`,
	} {
		var b Browser
		if err := json.Unmarshal([]byte(text), &b); err != nil {
			t.Fatal(err)
		}
		if got, err := json.Marshal(b); err != nil || string(got) != want || b.Check() != nil || b.Family() != Firefox {
			t.Errorf("%s is written as %s, %v; want %s, of the family of Firefox", text, got, err, want)
		}
	}
	for text, say := range map[string]string{
		`{"naem": "x"}`:                          "naem",
		`"safari"`:                               "none of chromium",
		`{"name": "firefox", "command": "x"}`:    "not both",
		`{"name": "chromium", "prefs": ["a=b"]}`: "only Firefox",
		`{"name": "firefox", "scheme": "red"}`:   "neither light nor dark",
		`{}`:                                     "give it a name",
	} {
		var b Browser
		err := json.Unmarshal([]byte(text), &b)
		if err == nil {
			err = b.Check()
		}
		if err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%s: %v; want %q", text, err, say)
		}
	}
}

func TestBrowserArms(t *testing.T) {
	b := Browser{Name: Chromium, Viewport: "412x915", Extensions: []string{"/srv/blocker"}}
	size, err := b.Size()
	if err != nil || size.X != 412 || size.Y != 915 || b.Check() != nil || b.String() != "chromium viewport 412x915 extension blocker" {
		t.Errorf("%q: size %v, %v, %v", b.String(), size, err, b.Check())
	}
	for says, b := range map[string]Browser{
		"WIDTHxHEIGHT":   {Name: Chromium, Viewport: "wide"},
		"from 100":       {Name: Chromium, Viewport: "10x900"},
		"only Chromium":  {Name: Firefox, Extensions: []string{"/x"}},
		"to 4096 pixels": {Name: Chromium, Viewport: "9000x900"},
	} {
		if err := b.Check(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v; want %q", b, err, says)
		}
	}
}
