package export

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestPlainJSON: wherever a text is cut into writes, no order to a terminal comes out, and the same is meant.
func TestPlainJSON(t *testing.T) {
	want := map[string]string{"a\u009b2J": "\x1b]0;x\x07\x7f\u202e\u2066\U000e0067 ä漢😀\u200d\t", "plain": "ok"}
	text, err := json.MarshalIndent(want, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	whole := ""
	for cut := range len(text) {
		var out strings.Builder
		w := PlainJSON(&out)
		for _, part := range [][]byte{text[:cut], text[cut:]} {
			if n, err := w.Write(part); n != len(part) || err != nil {
				t.Fatalf("Write() = %d, %v; want %d, nil", n, err, len(part))
			}
		}
		got := map[string]string{}
		if err := json.Unmarshal([]byte(out.String()), &got); err != nil || len(got) != 2 || got["a\u009b2J"] != want["a\u009b2J"] {
			t.Fatalf("cut at %d: %q, %v; want what was written", cut, out.String(), err)
		}
		if strings.ContainsAny(out.String(), "\x1b\x07\x7f\u009b\u202e\u2066\U000e0067") || !strings.Contains(out.String(), "ä漢😀\u200d") {
			t.Fatalf("cut at %d: %q; want escapes for what a terminal obeys, and nothing else", cut, out.String())
		}
		if whole == "" {
			whole = out.String()
		} else if out.String() != whole {
			t.Fatalf("cut at %d: %q; want %q", cut, out.String(), whole)
		}
	}
}
