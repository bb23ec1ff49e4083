// Package bounded reads YAML and JSON from outside. The libraries make a tree of a text, which takes a thousand times
// its size if the text is nested deeply enough, and nothing ends them; so the text is counted before, in one pass.
//
// A text and the library's call that reads it flow in; an error flows out, which says what is too much and where.
package bounded

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"
)

// What a text may have. Plans and configurations are nested six deep and have hundreds of values.
const (
	MaxDepth  = 50
	maxTokens = 12_000  // of YAML: words and signs
	maxValues = 500_000 // of JSON
	// maxExpanded bounds the tokens of a text whose aliases are written out.
	maxExpanded = 100_000
)

// ErrNoYAML is returned where the reader of YAML panics, as it does at a few texts that are no YAML.
var ErrNoYAML = errors.New("the text cannot be read as YAML") // constant

// Error says what of a text is too much.
type Error struct {
	Line int // from 1
	What string
}

func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.What) }

// YAML has a text read, if it is within the bounds.
func YAML(text []byte, read func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = ErrNoYAML
		}
	}()
	if err := checkSigns(text); err != nil {
		return err
	}
	if err := checkYAML(string(text)); err != nil {
		return err
	}
	return Plain(read())
}

// Plain is an error of a reader of YAML or JSON without words of Go: "cannot unmarshal string into Go struct field
// Config.Virtual of type bool" becomes "a text stands where true or false is expected". Its place in the text stays.
func Plain(err error) error {
	var wrong *yaml.TypeError
	var large *yaml.OverflowError
	var node *yaml.UnexpectedNodeTypeError
	var inJSON *json.UnmarshalTypeError
	var syntax *yaml.SyntaxError
	switch {
	case errors.As(err, &syntax) && strings.Contains(syntax.Message, "found character '\t'"):
		return &yaml.SyntaxError{Token: syntax.Token, Message: "a tab stands where blanks are expected: YAML is indented by blanks"}
	case errors.As(err, &syntax) && plainSyntax(syntax.Message) != "":
		return &yaml.SyntaxError{Token: syntax.Token, Message: plainSyntax(syntax.Message)}
	case errors.As(err, &wrong):
		return &yaml.SyntaxError{Token: wrong.Token, Message: misplaced(ofType(wrong.SrcType), ofType(wrong.DstType))}
	case errors.As(err, &large):
		return &yaml.SyntaxError{Token: large.Token, Message: large.SrcNum + " is out of range"}
	case errors.As(err, &node):
		return &yaml.SyntaxError{Token: node.Token, Message: misplaced(ofNode(node.Actual), ofNode(node.Expected))}
	case errors.As(err, &inJSON):
		value, _, _ := strings.Cut(inJSON.Value, " ") // "number 1.5"
		text := misplaced(ofJSON(value), ofType(inJSON.Type))
		if inJSON.Field != "" {
			text = inJSON.Field + ": " + text
		}
		return errors.New(text)
	}
	return err
}

// plainSyntax is a message of the reader of YAML in the words of those who write it; "" for one that is plain.
func plainSyntax(message string) string {
	for _, m := range []struct{ of, plain string }{
		{"unexpected key name", "a blank is missing behind a colon (NAME: VALUE), or the field below is indented otherwise than those beside it"},
		{"mapping value is not allowed", "a field (NAME: VALUE) stands within a value: indent the line below as the fields beside it, or put a text with a colon in quotes"},
		{"could not find end character of double-quoted", "a text in double quotes has no end"},
		{"could not find end character of single-quoted", "a text in single quotes has no end"},
		{"could not find flow map content", "{ begins fields: put a text that begins so in quotes"},
		{"is a reserved character", "a text that begins with @ or ` stands in quotes"},
		{"could not find alias", "* begins an alias (an anchor's name): put a text that begins so in quotes"},
	} {
		if strings.Contains(message, m.of) {
			return m.plain
		}
	}
	return ""
}

// ofJSON is what package json calls a value.
func ofJSON(value string) string {
	return cmp.Or(map[string]string{
		"number": oneNumber, "string": oneText, "bool": oneBool, "array": oneList, "object": manyFields,
	}[value], value)
}

// misplaced says what a text has at a place, and what belongs there.
func misplaced(what, expected string) string {
	if what == expected {
		return expected + " is expected, as it is, without a tag (!!) before it"
	}
	of := func(what string) (stand, is string) {
		if what == manyFields {
			return "stand", "are"
		}
		return "stands", "is"
	}
	stand, _ := of(what)
	_, is := of(expected)
	return fmt.Sprintf("%s %s where %s %s expected", what, stand, expected, is)
}

const (
	manyFields = "fields (NAME: VALUE)"
	oneList    = "a list"
	oneText    = "a text"
	oneNumber  = "a number"
	wholeOne   = "a whole number"
	oneBool    = "true or false"
)

// ofType is what a value of a type is in YAML.
func ofType(t reflect.Type) string {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == nil:
		return "nothing"
	case t == reflect.TypeFor[time.Duration]():
		return "a duration such as 30s"
	case t.Kind() == reflect.Bool:
		return oneBool
	case t.Kind() == reflect.String:
		return oneText
	case t.Kind() == reflect.Float64, t.Kind() == reflect.Float32:
		return oneNumber
	case t.Kind() >= reflect.Int && t.Kind() <= reflect.Uint64:
		return wholeOne
	case t.Kind() == reflect.Slice, t.Kind() == reflect.Array:
		return oneList
	}
	return manyFields
}

// ofNode is what a node of a text is.
func ofNode(t ast.NodeType) string {
	switch t {
	case ast.MappingType, ast.MappingValueType, ast.MappingKeyType:
		return manyFields
	case ast.SequenceType:
		return oneList
	case ast.StringType, ast.LiteralType:
		return oneText
	case ast.IntegerType:
		return wholeOne
	case ast.FloatType:
		return oneNumber
	case ast.BoolType:
		return oneBool
	case ast.NullType:
		return "nothing"
	}
	return strings.ToLower(t.YAMLName())
}

// NoAliases returns an *Error for a text of YAML that has aliases: a few of aliases of aliases are a text of gigabytes,
// and what strangers send needs none.
func NoAliases(text []byte) error {
	for _, t := range lexer.Tokenize(string(text)) {
		if t.Type == token.AliasType {
			return &Error{t.Position.Line, "an alias (*) is not read here: write out what it stands for"}
		}
	}
	return nil
}

func checkYAML(text string) error {
	tokens := lexer.Tokenize(text)
	if len(tokens) > maxTokens {
		return &Error{tokens[maxTokens].Position.Line, fmt.Sprintf("the text has more than %d words and signs", maxTokens)}
	}
	var n nesting
	aliases := 0
	for _, t := range tokens {
		if n.add(t) > MaxDepth {
			return &Error{t.Position.Line, fmt.Sprintf("the text is nested more than %d deep", MaxDepth)}
		}
		if t.Type == token.OctetIntegerType && !strings.Contains(t.Value, "o") {
			return &Error{t.Position.Line, fmt.Sprintf("%s is another number to some readers of YAML, because of the 0 before it: leave that "+
				"out, or put a text in quotes", t.Value)}
		}
		if t.Type != token.AliasType {
			continue
		}
		// n aliases multiply a text most if they stand in lists of three, each of which is named by the next.
		aliases++
		if float64(len(tokens))*math.Pow(3, float64(aliases)/3) > maxExpanded {
			return &Error{t.Position.Line, "too many aliases (*): write out what they stand for"}
		}
	}
	return nil
}

// nesting follows how deep a text of YAML is nested.
type nesting struct {
	columns []int // of the lists and objects that are open by their indentation
	flow    int   // brackets that are open
	marks   int   // anchors and tags in a row: each is a node around the next
}

// add follows a token, and returns how deep it is.
func (n *nesting) add(t *token.Token) int {
	switch isName := t.Prev != nil && t.Prev.Type == token.AnchorType; {
	case t.Type == token.AnchorType, t.Type == token.TagType:
		n.marks++
	case !isName:
		n.marks = 0
	}
	switch t.Type {
	case token.SequenceStartType, token.MappingStartType:
		n.flow++
	case token.SequenceEndType, token.MappingEndType:
		n.flow = max(0, n.flow-1)
	case token.SequenceEntryType, token.MappingKeyType:
		n.open(t.Position.Column)
	case token.MappingValueType:
		column := t.Position.Column
		if p := t.Prev; p != nil && p.Position.Line == t.Position.Line && p.Indicator == token.NotIndicator {
			column = p.Position.Column
		}
		n.open(column)
	case token.DocumentHeaderType, token.DocumentEndType:
		*n = nesting{}
	}
	return len(n.columns) + n.flow + n.marks
}

// open begins a list or an object, or another element of one, at a column.
func (n *nesting) open(column int) {
	if n.flow > 0 {
		return
	}
	for len(n.columns) > 0 && n.columns[len(n.columns)-1] >= column {
		n.columns = n.columns[:len(n.columns)-1]
	}
	n.columns = append(n.columns, column)
}

// JSON decodes a text that is within the bounds. Its errors are without words of Go.
func JSON(text []byte, into any) error {
	if err := checkJSON(text); err != nil {
		return err
	}
	err := json.Unmarshal(text, into)
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return Plain(err)
	}
	at := min(max(int(syntax.Offset), 0), len(text))
	if rest := bytes.TrimSpace(text[max(at-1, 0):]); len(rest) > 0 && !strings.HasPrefix(syntax.Error(), "unexpected end") {
		sign, _ := utf8.DecodeRune(rest)
		return &Error{lineOf(text, max(at-1, 0)), fmt.Sprintf("%q does not belong there in JSON", sign)}
	}
	return &Error{lineOf(text, at), "the text ends before its JSON does"}
}

func checkJSON(text []byte) error {
	depth, values, quoted := 0, 1, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
		case quoted:
		case c == '[', c == '{':
			depth++
			values++
		case c == ']', c == '}':
			depth--
		case c == ',':
			values++
		}
		switch {
		case depth > MaxDepth:
			return &Error{lineOf(text, i), fmt.Sprintf("the text is nested more than %d deep", MaxDepth)}
		case values > maxValues:
			return &Error{lineOf(text, i), fmt.Sprintf("the text has more than %d values", maxValues)}
		}
	}
	return nil
}

// lineOf is the line of a byte.
func lineOf(text []byte, at int) int { return 1 + strings.Count(string(text[:at]), "\n") }
