package lab

import (
	"encoding/json"
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
		if got, err := json.Marshal(b); err != nil || string(got) != want || b.Family() != Firefox {
			t.Errorf("%s is written as %s, %v; want %s, of the family of Firefox", text, got, err, want)
		}
	}
}
