package bounded

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// Strict decodes a text of YAML. A field that the value does not have is an error, which names the one that may have
// been meant.
func Strict(text []byte, into any) error {
	err := yaml.UnmarshalWithOptions(text, into, yaml.Strict())
	var unknown *yaml.UnknownFieldError
	if !errors.As(err, &unknown) || unknown.Token == nil {
		return err
	}
	return &yaml.SyntaxError{Token: unknown.Token, Message: unknown.Message + meant(unknown.Token.Value, fieldsOf(reflect.TypeOf(into)))}
}

// meant asks whether one of some fields was meant by a name that is none of them, if one is near enough: a third of
// its letters may differ, and case, - and _ do not count.
func meant(name string, fields []string) string {
	if len(fields) == 0 || len(name) > maxName {
		return ""
	}
	if slices.Contains(fields, name) {
		return ": there is a field of this name, but not here; check its indentation"
	}
	bare := strings.NewReplacer("-", "", "_", "")
	plain := func(s string) string { return bare.Replace(strings.ToLower(s)) }
	far := func(field string) int { return distance(plain(name), plain(field)) }
	near := slices.MinFunc(fields, func(a, b string) int { return far(a) - far(b) })
	if far(near) > len(name)/3 {
		return ""
	}
	return fmt.Sprintf(": did you mean %s?", near)
}

// maxName bounds the length of a name that is compared with others.
const maxName = 300

// fieldsOf are the names of all fields of a type, and of the types of its fields, sorted.
func fieldsOf(t reflect.Type) []string {
	names, seen := map[string]bool{}, map[reflect.Type]bool{}
	var add func(t reflect.Type)
	add = func(t reflect.Type) {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array || t.Kind() == reflect.Map {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || seen[t] {
			return
		}
		seen[t] = true
		for f := range t.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			if name == "" {
				name, _, _ = strings.Cut(f.Tag.Get("json"), ",")
			}
			if name == "-" {
				continue
			}
			if name != "" && f.IsExported() {
				names[name] = true
			}
			add(f.Type)
		}
	}
	add(t)
	return slices.Sorted(maps.Keys(names))
}

// Nearest is the name that is reached with the fewest changes of a letter.
func Nearest(name string, all []string) string {
	name = name[:min(len(name), maxName)]
	return slices.MinFunc(all, func(a, b string) int { return distance(name, a) - distance(name, b) })
}

// distance counts the letters to insert, remove, replace or swap with the next one to make b of a (optimal string
// alignment).
func distance(a, b string) int {
	last, above, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last, above, row = above, row, last
		row[0] = i + 1
		for j := range len(b) {
			changed := above[j]
			if a[i] != b[j] {
				changed++
			}
			row[j+1] = min(changed, row[j]+1, above[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], last[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
