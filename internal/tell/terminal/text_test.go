package terminal

import (
	"strings"
	"testing"
)

func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"plain ä 漢\n\ttext": "plain ä 漢\n\ttext", "\x1b[2J": `\x1b[2J`, "a\x9bb": `a\x9bb`, "a\u009bb": `a\u009bb`, "\r\x00\x7f": `\r\x00\x7f`,
		"\u202eevil": `\u202eevil`, "\ufffd": "\ufffd",
	} {
		want = strings.ReplaceAll(want, `\r`, `\x0d`)
		if got := Visible(text); got != want {
			t.Errorf("visible(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestPlain(t *testing.T) {
	long := Plain(strings.Repeat("x", maxPlain+1))
	if want := maxPlain + len("…"); len(long) != want {
		t.Errorf("Plain() of a long text has %d bytes; want %d", len(long), want)
	}
	if got, want := Plain("a\r\nb\u202e\x1b[2J"), "a  b\uFFFD\uFFFD[2J"; got != want {
		t.Errorf("Plain() = %q; want %q", got, want)
	}
}
