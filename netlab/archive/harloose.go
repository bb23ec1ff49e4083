package archive

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What exporters write where HAR 1.2 asks for something else.

// harPairList is a list of names and values: of objects, pairs or lines, an object, or lines of text. What cannot be
// read of it is a pair without a name.
type harPairList []harPair

// UnmarshalJSON implements json.Unmarshaler.
func (l *harPairList) UnmarshalJSON(raw []byte) error {
	*l = nil
	switch raw[0] {
	case '{':
		return l.readObject(raw)
	case '"':
		var text string
		err := json.Unmarshal(raw, &text)
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" {
				*l = append(*l, pairOfLine(line))
			}
		}
		return err
	case '[':
		var list []json.RawMessage
		err := json.Unmarshal(raw, &list)
		for _, element := range list {
			if string(element) != "null" {
				*l = append(*l, pairOf(element))
			}
		}
		return err
	}
	return nil
}

// readObject reads an object, whose order is kept.
func (l *harPairList) readObject(raw []byte) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	if _, err := d.Token(); err != nil {
		return err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		*l = append(*l, harPair{fmt.Sprint(name), textOf(value)})
	}
	return nil
}

func pairOf(raw []byte) (p harPair) {
	switch raw[0] {
	case '{':
		var loose struct{ Name, Key, Value json.RawMessage }
		if json.Unmarshal(raw, &loose) == nil {
			p = harPair{textOf(loose.Name) + textOf(loose.Key), textOf(loose.Value)}
		}
	case '[':
		var two []json.RawMessage
		if json.Unmarshal(raw, &two) == nil && len(two) == 2 {
			p = harPair{textOf(two[0]), textOf(two[1])}
		}
	case '"':
		p = pairOfLine(textOf(raw))
	}
	return p
}

func pairOfLine(line string) harPair {
	name, value, found := strings.Cut(line, ":")
	if !found {
		return harPair{}
	}
	return harPair{name, strings.TrimSpace(value)}
}

// textOf is a text or number as it is written, several as several lines, and what else it is as nothing.
func textOf(raw []byte) string {
	var one harScalar
	var list []string
	if json.Unmarshal(raw, &list) == nil {
		return strings.Join(list, "\n")
	}
	if json.Unmarshal(raw, &one) != nil {
		return ""
	}
	return string(one)
}

// isUnread tells that of fields some cannot be read.
func (l harPairList) isUnread() bool {
	return slices.ContainsFunc(l, func(p harPair) bool { return p.Name == "" })
}

// isText tells the names of an encoding that is none.
func isText(encoding string) bool {
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "utf-8", "utf8", "text", "plain", "none", "identity", "raw":
		return true
	}
	return false
}

func isBase64(encoding string) bool { return strings.EqualFold(strings.TrimSpace(encoding), "base64") }

// fromBase64 decodes both alphabets, with and without padding, blanks, and the head of a data URL.
func fromBase64(text string) ([]byte, error) {
	if b, err := base64.StdEncoding.DecodeString(text); err == nil { // which passes over line ends
		return b, nil
	}
	if strings.HasPrefix(strings.TrimSpace(text), "[") { // the pieces of a body with a content coding, as Polly.JS keeps them
		return fromPieces(text)
	}
	if rest, ok := strings.CutPrefix(text, "data:"); ok {
		_, text, _ = strings.Cut(rest, ",")
	}
	text = strings.NewReplacer(" ", "", "\t", "", "\r", "", "\n", "", "-", "+", "_", "/").Replace(text)
	return base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
}

// fromPieces decodes a JSON list of texts in Base64, each on its own, one after the other. There may be millions.
func fromPieces(text string) ([]byte, error) {
	inner, isOpen := strings.CutPrefix(strings.TrimSpace(text), "[")
	inner, isClosed := strings.CutSuffix(inner, "]")
	if !isOpen || !isClosed {
		return nil, errors.New("a list of pieces that does not end")
	}
	if inner = strings.TrimSpace(strings.ReplaceAll(inner, `\/`, "/")); inner == "" {
		return nil, nil
	}
	whole := make([]byte, 0, base64.StdEncoding.DecodedLen(len(inner)))
	for piece := range strings.SplitSeq(inner, ",") {
		piece = strings.TrimSpace(piece)
		if len(piece) < 2 || piece[0] != '"' || piece[len(piece)-1] != '"' {
			return nil, fmt.Errorf("a list of pieces with %.20q in it", piece)
		}
		var err error
		if whole, err = base64.StdEncoding.AppendDecode(whole, []byte(piece[1:len(piece)-1])); err != nil {
			return nil, err
		}
	}
	return whole, nil
}

// harTime reads a date, or the seconds or milliseconds since 1970. A date without a zone is taken as UTC.
func harTime(text string) time.Time {
	text = strings.TrimSpace(text)
	if inner, ok := strings.CutPrefix(text, "/Date("); ok { // .NET
		text = inner[:len(inner)-len(strings.TrimLeft(inner, "-0123456789"))]
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		const latest = 1e11 // in seconds; in milliseconds, it is in 1973
		if n > latest {
			n /= 1000
		}
		return sane(time.UnixMilli(int64(1000 * min(max(n, -latest), latest))))
	}
	text, _, _ = strings.Cut(text, " (") // the zone's name in a script's text
	for _, layout := range []string{
		time.RFC3339Nano, "2006-01-02T15:04:05.999999999-0700", "2006-01-02T15:04:05", "2006-01-02T15:04Z07:00",
		"2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05 Z07:00", "2006-01-02 15:04:05 -0700", "2006-01-02 15:04:05 MST", "2006-01-02 15:04:05",
		"Mon Jan 2 2006 15:04:05 MST-0700", time.ANSIC, http.TimeFormat, time.RFC1123Z,
	} {
		if t, err := time.Parse(layout, text); err == nil {
			return sane(t)
		}
	}
	return time.Time{}
}

// errDamaged marks an element whose JSON is damaged, though its end can be found.
var errDamaged = errors.New("its JSON is damaged") // constant

// mendJSON returns a text with what exporters write that is no JSON: NaN, a comma too many, and bytes in texts that
// have to be escaped.
func mendJSON(raw []byte) []byte {
	var out bytes.Buffer
	out.Grow(len(raw) + len(raw)/8)
	inText := false
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		switch {
		case inText && c == '\\' && i+1 < len(raw):
			if i++; !strings.ContainsRune(`"\/bfnrtu`, rune(raw[i])) {
				out.WriteByte('\\')
			}
			out.WriteByte(c)
			c = raw[i]
		case inText && c < ' ':
			fmt.Fprintf(&out, `\u%04x`, c)
			continue
		case c == '"':
			inText = !inText
		case inText:
		case c == ',':
			if rest := bytes.TrimLeft(raw[i+1:], " \t\r\n"); len(rest) > 0 && (rest[0] == '}' || rest[0] == ']') {
				continue
			}
		default:
			if n := noNumber(raw[i:]); n > 0 {
				out.WriteString("null")
				i += n - 1
				continue
			}
		}
		out.WriteByte(c)
	}
	return out.Bytes()
}

// noNumber is the length of the word for no number that raw begins with.
func noNumber(raw []byte) int {
	for _, word := range []string{"NaN", "Infinity", "-Infinity", "undefined"} {
		if bytes.HasPrefix(raw, []byte(word)) {
			return len(word)
		}
	}
	return 0
}
