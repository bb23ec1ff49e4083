package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"eidetic/internal/base/bounded"
	"eidetic/internal/lab"
)

// written is the text that a request was read from; the zero value is none.
type written struct {
	file string
	text []byte
	tree *ast.File // of text; nil without one
}

// File is the file that the plan was read from, or "".
func (w written) File() string { return w.file }

// maxText bounds the text of a plan.
const maxText = 64 << 10

// ReadFile reads a plan's file, in YAML or JSON. A field that there is not, or of another type, is an error that names
// file, line and field.
func ReadFile(file string) (Request, error) {
	f, err := os.Open(file)
	if err != nil {
		return Request{}, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxText+1))
	if err != nil {
		return Request{}, err
	}
	if len(text) > maxText {
		return Request{}, fmt.Errorf("%s: more than %d KiB", file, maxText>>10)
	}
	r, err := Parse(text)
	r.file = file
	if err == nil {
		return r, nil
	}
	if other := checkForeign(bounded.UTF8(text)); other != nil {
		err = other
	} else if line, sign := bounded.OddBlank(bounded.UTF8(text)); line > 0 {
		err = fmt.Errorf("%w\nline %d has a sign that looks like a blank or like nothing (%U): write a plain blank", err, line, sign)
	}
	return r, fmt.Errorf("%s: %w", file, err)
}

// TextError says what of a text is no plan.
type TextError struct {
	Line int // from 1; 0 if it is unknown
	What string
	text string // with the lines around it
}

func (e *TextError) Error() string { return e.text }

func textError(line int, what string) error { return &TextError{line, what, what} }

// ParseForeign reads a text that somebody else has sent, without aliases: a few aliases of aliases are a text of
// gigabytes.
func ParseForeign(text []byte) (Request, error) {
	var alias *bounded.Error
	if errors.As(bounded.NoAliases(bounded.Source(text)), &alias) {
		return Request{}, textError(alias.Line, alias.What)
	}
	return Parse(text)
}

// Parse reads a plan's text, in YAML or JSON. Its error is a *TextError.
func Parse(text []byte) (r Request, err error) {
	text = bounded.Source(text)
	guarded := bounded.YAML(text, func() error {
		r, err = parse(text)
		return nil
	})
	var much *bounded.Error
	switch {
	case errors.As(guarded, &much):
		err = &TextError{much.Line, much.What, much.Error()}
	case guarded != nil:
		err = textError(0, guarded.Error())
	}
	r.text = text
	return r, err
}

func parse(text []byte) (r Request, err error) {
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return r, placed(err)
	}
	defer func() { r.tree = file }()
	if len(file.Docs) > 1 {
		return Request{}, textError(0, "more than one document: a plan is one, without --- in between")
	}
	var typed lab.Plan
	var fields map[string]any
	if err = bounded.Strict(text, &typed); err == nil {
		err = yaml.Unmarshal(text, &fields)
	}
	if err != nil && !errors.Is(err, io.EOF) { // io.EOF: a text without a value
		return Request{}, placed(err)
	}
	r, err = heldBy(typed, fields)
	var wrong *lab.FieldError
	if errors.As(err, &wrong) {
		return r, placed(&yaml.SyntaxError{Token: bounded.Place(file, wrong.Path, true), Message: err.Error()})
	}
	if err == nil {
		return r, nil
	}
	for _, t := range lexer.Tokenize(string(text)) { // JSON, as which a plan is kept, has no word for them
		if t.Type == token.InfinityType || t.Type == token.NanType {
			message := t.Value + " is no number here: write one, or leave the field out"
			return r, placed(&yaml.SyntaxError{Token: t, Message: message})
		}
	}
	return r, textError(0, err.Error())
}

// heldBy is the request of a plan and the fields that it was read from, in which a text may be a number: "scroll: 5".
func heldBy(p lab.Plan, fields map[string]any) (Request, error) {
	r := Request{Plan: p}
	held, err := r.fields()
	if err != nil {
		return r, err
	}
	text, err := yaml.MarshalWithOptions(fields, yaml.JSON())
	if err != nil {
		return r, err
	}
	if len(fields) > 0 {
		if fields, err = objectOf(text); err != nil {
			return r, err
		}
	}
	if where, said := rounded("", fields, held); where != "" {
		return r, fieldError(where, "%s: a whole number is expected", said)
	}
	r.rest = missing(nil, nil, fields, held)
	return r, nil
}

// rounded is the first number of which the reader of YAML made a whole one, behind its path; "" without one.
func rounded(path string, value, held any) (where, said string) {
	in := func(name string, value, held any) (where, said string) {
		return rounded(strings.TrimPrefix(path+"."+name, "."), value, held)
	}
	switch value := value.(type) {
	case map[string]any:
		has, ok := held.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(value)) {
			inner, isThere := has[name]
			if !isThere {
				inner = json.Number("0") // what is left out
			}
			if where, said := in(name, value[name], inner); ok && where != "" {
				return where, said
			}
		}
	case []any:
		has, _ := held.([]any)
		for i, one := range value[:min(len(value), len(has))] {
			if where, said := in(strconv.Itoa(i), one, has[i]); where != "" {
				return where, said
			}
		}
	case json.Number:
		is, ok := held.(json.Number)
		written, err := value.Float64()
		kept, errKept := is.Float64()
		if ok && err == nil && errKept == nil && written != kept && math.Trunc(written) == kept {
			return path, value.String()
		}
	}
	return "", ""
}

// placed is an error of the YAML's reader.
func placed(err error) error {
	err = bounded.Plain(err)
	e := &TextError{What: err.Error(), text: atFault(yaml.FormatError(err, false, true))}
	var at yaml.Error
	if errors.As(err, &at) && at.GetToken() != nil {
		e.Line, e.What = at.GetToken().Position.Line, at.GetMessage()
	}
	return e
}

// Line is the line in which a field was said, such as steps[2].click, or the nearest field that it is in; 0 if none
// was.
func (w written) Line(path string) int {
	at := w.place(path, true)
	if at == nil {
		return 0
	}
	return at.Position.Line
}

// place is the token of a field, or nil; the nearest is that of the field that it is in.
func (w written) place(path string, nearest bool) *token.Token {
	return bounded.Place(w.tree, path, nearest)
}

// Excerpt shows the line of a field in the plan's file; "" if the file does not have it.
func (w written) Excerpt(path string) string {
	if w.file == "" || w.place(path, false) == nil {
		return ""
	}
	field, err := yaml.PathString("$." + path)
	if err != nil {
		return ""
	}
	lines, err := field.AnnotateSource(w.text, false)
	if err != nil {
		return ""
	}
	return atFault(string(lines))
}

// atFault leaves out the other lines of a source around the one that is marked: they may have a cookie or a password,
// and errors go to logs.
func atFault(excerpt string) string {
	var kept []string
	marked := true // what stands before the first line of the source
	for line := range strings.Lines(excerpt) {
		if number, _, is := strings.Cut(strings.TrimLeft(line, "> "), " | "); is && strings.Trim(number, "0123456789") == "" {
			marked = strings.HasPrefix(line, ">")
		}
		if marked {
			kept = append(kept, line)
		}
	}
	return strings.TrimRight(strings.Join(kept, ""), "\n")
}

// Locate adds file and line of the plan's field to an error that names one, with that field's line.
func (w written) Locate(err error) error {
	var wrong *lab.FieldError
	if w.file == "" || !errors.As(err, &wrong) {
		return err
	}
	for path := wrong.Path; path != ""; path = parent(path) { // a field that is missing is looked for in the one that it would be in
		if lines := w.Excerpt(path); lines != "" {
			return fmt.Errorf("%s:%d: %w\n%s", w.file, w.Line(path), err, lines)
		}
	}
	return fmt.Errorf("%s: %w", w.file, err)
}

// parent is the path without its last element.
func parent(path string) string { return path[:max(0, strings.LastIndexAny(path, ".["))] }
