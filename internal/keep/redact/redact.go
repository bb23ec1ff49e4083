// Package redact removes secrets from what leaves the box for others to read: configurations,
// logs and states. In go texts that may hold tokens, passwords, cookies and addresses with
// credentials; the same texts come out with [Removed] in the places of these.
//
// It works by names (password, token, cookie …) and by shapes (a URL's user and query, an
// Authorization header, the box's own tokens). A secret in prose without a name is not
// recognised: callers that know secrets pass them to [New].
package redact

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"eidetic/internal/base/bounded"
	"eidetic/internal/lab"
	"github.com/goccy/go-yaml"
)

// Removed stands where a secret was.
const Removed = lab.Removed

// Redactor removes secrets. It may be used from any goroutine.
type Redactor struct {
	known   []string
	mu      sync.Mutex
	queries map[string]int // those that were removed, numbered
}

// shortest is the length from which on a known secret is looked for: a shorter one is in every text.
const shortest = 6

// New returns a redactor that also removes these texts wherever they are.
func New(known ...string) *Redactor {
	known = slices.DeleteFunc(slices.Clone(known), func(s string) bool { return len(s) < shortest })
	slices.SortFunc(known, func(a, b string) int { return len(b) - len(a) }) // one may be a part of another
	return &Redactor{known: slices.Compact(known), queries: map[string]int{}}
}

// secretName matches names of fields whose values are secrets; type is what a journey types.
var secretName = regexp.MustCompile(`(?i)pass(word|phrase|wd)?$|secret|token|cookie|authorization|api[_-]?key|private[_-]?key|psk$|credential|^storage$|^inject$|^files$|^qr$|^type$`) // constant

// IsSecret says whether a field of this name holds a secret.
func IsSecret(name string) bool { return secretName.MatchString(name) }

// shapes are what secrets look like in texts; the first group stays, the rest is replaced.
var shapes = []*regexp.Regexp{ // constant
	regexp.MustCompile(`(-----BEGIN [A-Z ]*PRIVATE KEY-----)[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`),
	regexp.MustCompile(`(?i)(\b(?:set-)?cookie\b"?\s*[:=]\s*"?)[^"\n]+`),
	regexp.MustCompile(`(?i)(\bauthorization\b"?\s*[:=]\s*"?(?:(?:bearer|basic)\s+)?)[^\s",;]+`),
	regexp.MustCompile(`(?i)(\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{8,}`),
	regexp.MustCompile(`(?i)([A-Za-z0-9_-]*(?:password|passphrase|passwd|secret|token|api[_-]?key|psk)"?\s*[:=]\s*"?)[^\s",;&}]+`),
	regexp.MustCompile(`(\beid_)[a-z2-7]{8,}`),
	regexp.MustCompile(`(WIFI:[^\s"]*?\bP:)[^;\s"]*`),
	regexp.MustCompile(`(?i)(\b[a-z][a-z0-9+.-]*://)[^/?#\s"<>]*@`), // a password may have an @ and an apostrophe
	regexp.MustCompile(`(?i)(\b[a-z][a-z0-9+.-]*://[^\s"<>?#]*\?)[^\s"<>]+`),
	regexp.MustCompile(`(?i)(\b[a-z][a-z0-9+.-]*://[^\s"<>?#]*#)[^\s"<>]+`),
}

// Text removes secrets from a text.
func (r *Redactor) Text(s string) string {
	for _, secret := range r.known {
		s = strings.ReplaceAll(s, secret, Removed)
	}
	for _, shape := range shapes {
		s = shape.ReplaceAllString(s, "${1}"+Removed)
	}
	return s
}

// JSON removes secrets from a value that can be encoded as JSON, and encodes it.
func (r *Redactor) JSON(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var plain any
	if err := json.Unmarshal(text, &plain); err != nil {
		return nil, err
	}
	return json.MarshalIndent(r.value("", plain), "", " ")
}

// value removes secrets from a decoded value.
func (r *Redactor) value(name string, v any) any {
	if IsSecret(name) && v != nil && v != false && v != true {
		return Removed
	}
	switch v := v.(type) {
	case string:
		return r.Text(v)
	case []any:
		for i := range v {
			v[i] = r.value("", v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = r.value(key, v[key])
		}
	}
	return v
}

// YAML returns a configuration without the values of secret fields, which are empty instead,
// and says which they were. Comments are gone, since anything may be in them.
func YAML(text []byte) (clean []byte, removed []string, err error) {
	text = bounded.Source(text)
	var all yaml.MapSlice
	if err := bounded.YAML(text, func() error { return yaml.UnmarshalWithOptions(text, &all, yaml.UseOrderedMap()) }); err != nil {
		return nil, nil, errors.New("it is not YAML with fields") // the error would quote it
	}
	if len(all) == 0 {
		return nil, nil, nil
	}
	var empty func(path string, v any) any
	empty = func(path string, v any) any {
		switch v := v.(type) {
		case yaml.MapSlice:
			for i, item := range v {
				name := fmt.Sprint(item.Key)
				at := strings.TrimPrefix(path+"."+name, ".")
				switch s, isText := item.Value.(string); {
				case IsSecret(name) && s != "", IsSecret(name) && !isText && item.Value != nil:
					v[i].Value = ""
					removed = append(removed, at)
				default:
					v[i].Value = empty(at, item.Value)
				}
			}
		case []any:
			for i := range v {
				v[i] = empty(fmt.Sprintf("%s[%d]", path, i), v[i])
			}
		}
		return v
	}
	empty("", all)
	clean, err = yaml.Marshal(all)
	return clean, removed, err
}
