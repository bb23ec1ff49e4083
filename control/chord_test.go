package control

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"eidetic/internal/rigs/testlab"
)

func TestParseChord(t *testing.T) {
	tests := []struct {
		in   string
		want Chord
		err  string
	}{
		{"Ctrl+L", Chord{[]Modifier{Ctrl}, "l"}, ""},
		{"l", Chord{nil, "l"}, ""},
		{"L", Chord{nil, "L"}, ""},
		{"F5", Chord{nil, "F5"}, ""},
		{"f24", Chord{nil, "F24"}, ""},
		{"Return", Chord{nil, "Enter"}, ""},
		{"left", Chord{nil, "ArrowLeft"}, ""},
		{"ctrl+shift+Tab", Chord{[]Modifier{Ctrl, Shift}, "Tab"}, ""},
		{"Cmd+Space", Chord{[]Modifier{Meta}, "Space"}, ""},
		{" ", Chord{nil, "Space"}, ""},
		{"+", Chord{nil, "+"}, ""},
		{"Ctrl++", Chord{[]Modifier{Ctrl}, "+"}, ""},
		{"é", Chord{nil, "é"}, ""},
		{"", Chord{}, "no key"},
		{"F25", Chord{}, "no key"},
		{"Hyper+x", Chord{}, `"Hyper" is not a modifier`},
		{"Ctrl+Control+x", Chord{}, "named twice"},
		{"\n", Chord{}, "name the key"},
		{"\xff", Chord{}, "not UTF-8"},
		{strings.Repeat("Ctrl+", 100), Chord{}, "too long"},
	}
	for _, tt := range tests {
		got, err := ParseChord(tt.in)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%q: error %v, want one with %q", tt.in, err, tt.err)
			}
			continue
		}
		if d := cmp.Diff(tt.want, got); d != "" || err != nil {
			t.Errorf("%q: %v %s", tt.in, err, d)
		}
	}
}

// FuzzParseChord: what is understood can be written and read again.
func FuzzParseChord(f *testing.F) {
	for _, s := range []string{"Ctrl+L", "+", "Ctrl++", "alt+F4", "é", "", "Shift+", "++"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		defer testlab.Input(t)()
		c, err := ParseChord(s)
		if err != nil {
			return
		}
		again, err := ParseChord(c.String())
		if d := cmp.Diff(c, again); d != "" || err != nil {
			t.Fatalf("%q → %q: %v %s", s, c, err, d)
		}
	})
}

// TestTextOfOthers: a text of macOS or Windows has the characters of a keyboard.
func TestTextOfOthers(t *testing.T) {
	for text, want := range map[string]string{"Mu\u0308ller, e\u0301t\u00e9": "M\u00fcller, \u00e9t\u00e9", "a\r\nb\r\n": "a\nb\n", "a\rb": "a\rb"} {
		if got, err := CheckText(text); err != nil || string(got) != want {
			t.Errorf("CheckText(%q) = %q, %v; want %q", text, string(got), err, want)
		}
	}
	if c, err := ParseChord("Ctrl+u\u0308"); err != nil || c.Key != "\u00fc" {
		t.Errorf("ParseChord() of a letter and its accent = %q, %v; want one letter", c.Key, err)
	}
}
