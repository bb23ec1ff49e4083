package lab_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	. "eidetic/internal/lab"
)

// TestSecretDoesNotPrint writes a secret in every way that the program writes values, also from within other values and
// from fields that fmt reads past their methods.
func TestSecretDoesNotPrint(t *testing.T) {
	const text = "hush-hush"
	type holder struct {
		Key    Secret
		List   []Secret
		Map    map[string]Secret
		Any    any
		To     *Secret
		hidden Secret //nolint:unused // fmt prints it
	}
	s := NewSecret(text)
	h := holder{s, []Secret{s}, map[string]Secret{"k": s}, s, &s, s}
	var log bytes.Buffer
	for _, handler := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(handler).Info("it", "secret", s, "holder", h, "to", &h)
	}
	said := []string{log.String(), s.String()}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%p"} {
		said = append(said, fmt.Sprintf(verb, s), fmt.Sprintf(verb, &s), fmt.Sprintf(verb, h), fmt.Sprintf(verb, &h))
	}
	for _, encode := range []func(any) ([]byte, error){json.Marshal, yaml.Marshal} {
		out, err := encode(h)
		if err != nil || !strings.Contains(string(out), Removed) {
			t.Errorf("%s, %v; want %s in it", out, err, Removed)
		}
		said = append(said, string(out))
	}
	out, err := xml.Marshal(struct{ Key Secret }{s})
	var page bytes.Buffer
	err = errors.Join(err, template.Must(template.New("").Parse("{{.}}{{.Key}}")).Execute(&page, h), fmt.Errorf("%w %v", errors.New(""), s))
	for _, one := range append(said, string(out), page.String(), err.Error()) {
		if strings.Contains(one, "hush") || strings.Contains(one, fmt.Sprintf("%x", "hush")) {
			t.Errorf("it says the secret: %s", one)
		}
	}
}

// TestSecretIsRead reads secrets from what people and programs write, and compares them.
func TestSecretIsRead(t *testing.T) {
	type holder struct {
		Key  Secret `json:"key,omitzero" yaml:"key"`
		None Secret `json:"none,omitzero" yaml:"none"`
	}
	want := holder{Key: NewSecret("a: \"b\"\n")}
	var j, y holder
	if err := json.Unmarshal([]byte(`{"key":"a: \"b\"\n","none":""}`), &j); err != nil || !cmp.Equal(j, want) || j != want {
		t.Errorf("of JSON it is %q, %v; want %q", j.Key.Reveal(), err, want.Key.Reveal())
	}
	if err := yaml.Unmarshal([]byte("key: \"a: \\\"b\\\"\\n\"\nnone: ''\n"), &y); err != nil || y != want {
		t.Errorf("of YAML it is %q, %v; want %q", y.Key.Reveal(), err, want.Key.Reveal())
	}
	for text, want := range map[string]string{"key: 1234": "1234", "key: plain": "plain", "key: 'it''s'": "it's", "key:": "", "key: |\n  two\n": "two\n"} {
		var y holder
		if err := yaml.Unmarshal([]byte(text), &y); err != nil || y.Key.Reveal() != want {
			t.Errorf("of %q it is %q, %v; want %q", text, y.Key.Reveal(), err, want)
		}
	}
	if out, err := json.Marshal(holder{}); err != nil || string(out) != "{}" {
		t.Errorf("without secrets it is %s, %v; want {}", out, err)
	}
}
