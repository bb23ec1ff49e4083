package replay

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"eidetic/internal/rigs/testlab"
)

// TestLabel: the name that a page gives lab.done() arrives, whatever the page sends.
func TestLabel(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"a name", `{"name":"cart shown","at_ms":812.5}`, "cart shown"},
		{"letters of any script", `{"name":"Einkaufswagen für 名前 ✓"}`, "Einkaufswagen für 名前 ✓"},
		{"none", `{"name":"","at_ms":1}`, ""},
		{"control characters", `{"name":"a\u0000\u001b[31mb\r\nc\t\u007fd"}`, "a [31mb c d"},
		{"text that turns around", `{"name":"\u202egnp.exe\u2066"}`, "gnp.exe"},
		{"half a surrogate pair", `{"name":"a\ud800b"}`, "a\ufffdb"},
		{"only white space", `{"name":" \u00a0\u2003\n"}`, ""},
		{"too long", `{"name":"` + strings.Repeat("é", 101) + `"}`, strings.Repeat("é", 99) + "…"},
		{"just not too long", `{"name":"` + strings.Repeat("é", 100) + `"}`, strings.Repeat("é", 100)},
		{"a name that is no text", `{"name":{"a":1}}`, ""},
		{"another document", `[]`, ""},
		{"not JSON", `name=cart`, ""},
		{"nothing", ``, ""},
	} {
		if got := (Annotation{Name: "done", Body: []byte(c.body)}).Label(); got != c.want {
			t.Errorf("%s: Label() of %q = %q, want %q", c.name, c.body, got, c.want)
		}
	}
}

// FuzzLabel: whatever a page posts, its label is short and can be printed.
func FuzzLabel(f *testing.F) {
	f.Add([]byte(`{"name":"cart shown","at_ms":812.5}`))
	f.Add([]byte(`{"name":"\u202e\u0000` + strings.Repeat("x", 300) + `"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		defer testlab.Input(t)()
		label := Annotation{Body: body}.Label()
		if n := utf8.RuneCountInString(label); n > labelMost || !utf8.ValidString(label) {
			t.Errorf("Label() has %d runes, valid UTF-8: %v; want at most %d", n, utf8.ValidString(label), labelMost)
		}
		for _, r := range label {
			if !unicode.IsPrint(r) {
				t.Errorf("Label() = %q holds %U, which cannot be printed", label, r)
			}
		}
	})
}
