package bounded

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"eidetic/internal/rigs/testlab"
)

// mostYAML is what the reading of a text of up to 64 KiB may allocate.
const mostYAML = 400 << 20

func read(text string) error {
	var v any
	return YAML([]byte(text), func() error { return yaml.Unmarshal([]byte(text), &v) })
}

// TestYAML: a text that the library makes gigabytes of is refused with its line before, and what people write is read.
func TestYAML(t *testing.T) {
	if err := YAML(nil, func() error { panic("of a reader") }); !errors.Is(err, ErrNoYAML) {
		t.Errorf("YAML() of a reader that panics = %v; want %v", err, ErrNoYAML)
	}
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	laughs := "a: &a [x, x, x]\n"
	for c := 'b'; c < 'm'; c++ {
		laughs += fmt.Sprintf("%c: &%[1]c [*%c, *%[2]c, *%[2]c]\n", c, c-1)
	}
	for _, text := range []string{
		"page: " + nested(30_000), "{\"a\":\n" + nested(200) + "}", strings.Repeat("{a: ", 300), strings.Repeat("- ", 300) + "x", strings.Repeat("? ", 300) + "x",
		"x: " + strings.Repeat("&a ", 300) + "x", "x: " + strings.Repeat("!!a ", 300) + "x", "x: [" + strings.Repeat("1,", 30_000) + "]", laughs,
		func() string {
			var b strings.Builder
			for i := range 100 {
				b.WriteString(strings.Repeat(" ", i) + "a:\n")
			}
			return b.String()
		}(),
	} {
		testlab.Bounded(t, mostYAML, func() {
			var much *Error
			if err := read(text); !errors.As(err, &much) || much.Line < 1 {
				t.Errorf("YAML(%.60q) = %v; want an error with its line", text, err)
			}
		})
	}
	for _, text := range []string{
		"", "a: 1", "page: " + nested(MaxDepth-1), "a: &a {b: 1}\nc: *a\nd: *a\n", strings.Repeat("- a: {b: [1, 2]}\n  c:\n  - d\n", 700),
		"x: [" + strings.Repeat("!!str a, ", 200) + "]", strings.Repeat("- &x a\n", 200), `{"a": [` + strings.Repeat(`{"b": 1},`, 1000) + `{"b": 1}]}`,
	} {
		if err := read(text); err != nil {
			t.Errorf("YAML(%.60q) = %v; want nil", text, err)
		}
	}
}

// TestJSON: a text that is nested deeply, or has values without number, is refused before it is decoded.
func TestJSON(t *testing.T) {
	var v any
	for _, text := range []string{
		strings.Repeat("[", 4500) + strings.Repeat("]", 4500), "\n" + strings.Repeat(`{"a":`, 60) + "1" + strings.Repeat("}", 60), "[" + strings.Repeat("{},", maxValues) + "{}]",
	} {
		var much *Error
		testlab.Bounded(t, 16<<20, func() {
			if err := JSON([]byte(text), &v); !errors.As(err, &much) || much.Line < 1 {
				t.Errorf("JSON(%.60q) = %v; want an error with its line", text, err)
			}
		})
	}
	for text, want := range map[string]string{
		`["[[[\"", 1`: "line 1: the text ends before its JSON does", "": "line 1: the text ends before its JSON does",
		"{\n  # about\n}": "line 2: '#' does not belong there in JSON", "<!doctype html>": "line 1: '<' does not belong there in JSON",
		"\n{} ü": "line 2: 'ü' does not belong there in JSON", "[1,]": "line 1: ']' does not belong there in JSON",
	} {
		if err := JSON([]byte(text), &v); err == nil || err.Error() != want {
			t.Errorf("JSON(%q) = %v; want %q", text, err, want)
		}
	}
	var number struct{ A int }
	if err := JSON([]byte(`{"a": "x"}`), &number); err == nil || strings.Contains(err.Error(), "Go") {
		t.Errorf("JSON() of a text in place of a number = %v; want an error without words of Go", err)
	}
	if err := JSON([]byte(`{"a": "`+strings.Repeat("[{,", 2*maxValues)+`"}`), &v); err != nil {
		t.Errorf("JSON() of a text with brackets in a string = %v; want nil", err)
	}
}

// FuzzYAML looks for a text that is within the bounds and takes more memory or time than it should all the same.
func FuzzYAML(f *testing.F) {
	for _, text := range []string{
		"a: [1, {b: c}]\nd:\n- &e f\n- *e\n", "? a\n: b", "- - - x", "--- !!map {a: b}\n...\n", "a: |\n b\nc: >-\n d\n", `{"a": [1]}`, "<<: {a: 1}", "a: b: c", "\t- x",
	} {
		f.Add(text, uint8(1), "")
		f.Add(text, uint8(200), "\n")
	}
	f.Fuzz(func(t *testing.T, part string, times uint8, between string) {
		if len(part) > 4096 || len(between) > 16 {
			return
		}
		text := strings.Repeat(part+between, int(times))
		if len(text) > 64<<10 {
			return
		}
		testlab.Bounded(t, mostYAML, func() { _ = read(text) })
	})
}

// TestPlain: what stands in the wrong place is said in words of the text, with its place, and not in those of Go.
func TestPlain(t *testing.T) {
	type config struct {
		Truth  bool
		Number *int
		Share  float64
		Text   string
		List   []string
		Limit  time.Duration
		Inner  struct{ A int8 }
	}
	for text, want := range map[string]string{
		"truth: maybe":      "[1:8] a text stands where true or false is expected",
		"\nnumber: many":    "[2:9] a text stands where a whole number is expected",
		"share: [1]":        "[1:8] a list stands where a number is expected",
		"text: {a: 1}":      "[1:7] fields (NAME: VALUE) stand where a text is expected",
		"list: 3":           "[1:7] a whole number stands where a list is expected",
		"inner: true":       "[1:8] true or false stands where fields (NAME: VALUE) are expected",
		"inner:\n  a: 1000": "[2:6] 1000 is out of range",
		"number: !!int '3'": "[1:9] a whole number is expected, as it is, without a tag (!!) before it",
		"text:b\nshare: 1":  "[1:1] a blank is missing behind a colon (NAME: VALUE), or the field below is indented otherwise than those beside it",
		"text: a: b":        "[1:7] a field (NAME: VALUE) stands within a value: indent the line below as the fields beside it, or put a text with a colon in quotes",
		"\nnumber: 010":     "line 2: 010 is another number to some readers of YAML, because of the 0 before it: leave that out, or put a text in quotes",
		"number: 0o10":      "",
		"text: '010'":       "",
		"number: 0":         "",
		"text: \"a":         "[1:7] a text in double quotes has no end",
		"text: 'a":          "[1:7] a text in single quotes has no end",
		"text: {{ a }}":     "[1:8] { begins fields: put a text that begins so in quotes",
		"text: @a":          "[1:7] a text that begins with @ or ` stands in quotes",
		"text: *a":          "[1:8] * begins an alias (an anchor's name): put a text that begins so in quotes",
		"limit: {}":         "[1:8] fields (NAME: VALUE) stand where a duration such as 30s is expected",
	} {
		var c config
		err := YAML([]byte(text), func() error { return yaml.UnmarshalWithOptions([]byte(text), &c, yaml.Strict()) })
		if (err == nil) != (want == "") || err != nil && yaml.FormatError(err, false, false) != want {
			t.Errorf("YAML(%q) = %v; want %q", text, err, want)
		}
	}
	var c config
	err := Plain(json.Unmarshal([]byte(`{"Inner":{"A":"x"}}`), &c))
	if err == nil || err.Error() != "Inner.A: a text stands where a whole number is expected" {
		t.Errorf("Plain() of JSON = %v", err)
	}
	if other := errors.New("x"); Plain(other) != other || Plain(nil) != nil {
		t.Error("Plain() changes other errors")
	}
}

// TestStrict: a field that there is not is told with the one that may have been meant.
func TestStrict(t *testing.T) {
	type inner struct {
		Over  float64 `json:"over_ms,omitempty"`
		Steps []inner `json:"steps"`
	}
	type Base struct {
		Link string `json:"link"`
	}
	type config struct {
		Base   `yaml:",inline"`
		Trials int             `json:"trials"`
		Traces bool            `json:"traces"`
		Limit  *float64        `json:"limit_s"`
		Steps  []*inner        `json:"steps"`
		Named  map[string]Base `yaml:"named"`
		Hidden int             `json:"-"`
	}
	for text, want := range map[string]string{
		"trails: 3":                       `[1:1] unknown field "trails": did you mean trials?`,
		"Limit-S: 3":                      `[1:1] unknown field "Limit-S": did you mean limit_s?`,
		"steps:\n- steps:\n  - overMs: 1": `[3:5] unknown field "overMs": did you mean over_ms?`,
		"named: {a: {linc: x}}":           `[1:13] unknown field "linc": did you mean link?`,
		"over_ms: 3":                      `[1:1] unknown field "over_ms": there is a field of this name, but not here; check its indentation`,
		"colour: red":                     `[1:1] unknown field "colour"`,
		"hidden: 1":                       `[1:1] unknown field "hidden"`,
		"trials: 3":                       "",
	} {
		var c config
		err := Strict([]byte(text), &c)
		if (err == nil) != (want == "") || err != nil && yaml.FormatError(err, false, false) != want {
			t.Errorf("Strict(%q) = %v; want %q", text, err, want)
		}
	}
}
