package hid_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"eidetic/control/hid"
	"eidetic/internal/rigs/testlab"
)

// TestComposeAgreesWithX: what a layout types by the compose key is what X's own table makes of the same keys, and text
// that neither the keys nor that table can type is refused.
func TestComposeAgreesWithX(t *testing.T) {
	const table = "/usr/share/X11/locale/en_US.UTF-8/Compose" // of libx11-data, which every X program brings
	text, err := os.ReadFile(table)
	testlab.Need(t, err == nil, "the file "+table)
	names := map[string]string{
		"apostrophe": "'", "grave": "`", "asciicircum": "^", "quotedbl": `"`, "asciitilde": "~", "comma": ",", "slash": "/", "less": "<", "greater": ">",
		"exclam": "!", "question": "?", "equal": "=", "minus": "-", "period": ".", "plus": "+", "colon": ":",
	}
	theirs := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^<Multi_key> ((?:<\w+> ?){2,3})\s*: "(.)"`).FindAllStringSubmatch(string(text), -1) {
		keys := ""
		for _, name := range strings.FieldsFunc(m[1], func(r rune) bool { return strings.ContainsRune("<> ", r) }) {
			if long, ok := names[name]; ok {
				name = long
			}
			keys += name
		}
		theirs[keys] = m[2]
	}
	for character, sequence := range hid.Sequences() {
		if got := theirs[sequence]; got != string(character) {
			t.Errorf("X types %q by compose and %q; want %q", got, sequence, character)
		}
	}
	l, err := hid.NewLayout("us+compose")
	if err != nil || l.Name != "us+compose" {
		t.Fatal(l, err)
	}
	plain, _ := hid.NewLayout("us")
	for _, r := range "éÿñ€—" {
		strokes, err := l.Strokes(r)
		if err != nil || len(strokes) < 3 {
			t.Errorf("Strokes(%q) = %v, %v; want the compose key and two more", r, strokes, err)
		}
		if _, err := plain.Strokes(r); err == nil {
			t.Errorf("without the compose key %q is typed", r)
		}
	}
	if strokes, err := l.Strokes('a'); err != nil || len(strokes) != 1 {
		t.Errorf("Strokes('a') = %v, %v; want its key alone", strokes, err)
	}
	if _, err := l.Strokes('漢'); err == nil {
		t.Error("a character that no compose key types is not refused")
	}
	if german, err := hid.NewLayout("de+compose"); err != nil {
		t.Error(err)
	} else if strokes, err := german.Strokes('ë'); err != nil || len(strokes) != 3 {
		t.Errorf("a German keyboard: Strokes('ë') = %v, %v", strokes, err)
	}
}
