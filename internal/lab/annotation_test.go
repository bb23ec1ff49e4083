package lab

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestAnnotationCheck(t *testing.T) {
	for says, a := range map[string]Annotation{
		"op":         {Op: "draw", Text: "x"},
		"needs one":  {Op: AnnotateMark},
		"4097 bytes": {Op: AnnotateSet, Text: strings.Repeat("x", 4097)},
		"group":      {Op: AnnotateSet, Text: "x", Group: strings.Repeat("x", 101)},
		"#rrggbb":    {Op: AnnotateSet, Text: "x", Colour: "red;}"},
		"latest_ns":  {Op: AnnotateSet, Text: "x", Earliest: 2, Latest: 1},
	} {
		if err := a.Check(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("Check(%.40v) = %v, want an error that says %q", a, err, says)
		}
	}
	for _, a := range []Annotation{{Op: AnnotateSet}, {Op: AnnotateEnd}, {Op: AnnotateBegin, Text: "x", Group: "g", Colour: "#800000"}} {
		if err := a.Check(); err != nil {
			t.Errorf("Check(%v) = %v, want nil", a, err)
		}
	}
}

func TestOneLine(t *testing.T) {
	for in, want := range map[string]string{
		"  two\n lines\t":   "two lines",
		"a\u202eb\x00c\x1b": "a b c",
		"\xff<b>":           "\ufffd<b>",
		"abcdefghij":        "abcdefghij",
		"abcdefghijk":       "abcdefg…",
		"äöüäöü":            "äöü…",
	} {
		got := OneLine(in, 10)
		if got != want || !utf8.ValidString(got) || len(got) > 10 {
			t.Errorf("OneLine(%q, 10) = %q, want %q", in, got, want)
		}
	}
}
