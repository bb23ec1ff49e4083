package lab

import (
	"encoding/json"
	"testing"
)

// TestApp: an app is written as it was said, described for people, and stands for a page in reports.
func TestApp(t *testing.T) {
	for _, c := range []struct{ text, said, page string }{
		{`"editor"`, "editor", "app:editor"},
		{`{"command":"/usr/bin/mousepad --new","home":"/srv/a/home"}`, "/usr/bin/mousepad --new home home", "app:mousepad"},
		{`{"package":"org.example.notes/.Main"}`, "org.example.notes/.Main", "app:org.example.notes"},
		{`{"recipe":"key Meta+R; type \"note pad\"; key Enter","close":"key Alt+F4"}`, `key Meta+R; type "note pad"; key Enter`, "app:note-pad"},
	} {
		var a App
		if err := json.Unmarshal([]byte(c.text), &a); err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(a)
		if string(again) != c.text || err != nil {
			t.Errorf("%s is written as %s, %v", c.text, again, err)
		}
		if a.String() != c.said || a.page() != c.page || !IsAppPage(a.page()) {
			t.Errorf("%s: String() = %q, page() = %q; want %q, %q", c.text, a.String(), a.page(), c.said, c.page)
		}
	}
	if err := json.Unmarshal([]byte(`{"comand":"x"}`), new(App)); err == nil {
		t.Error("an unknown field of an app is read")
	}
}
