package match

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"hash"
	"io"
	"mime"
	"mime/multipart"
	"slices"
	"strconv"
	"strings"

	"eidetic/netlab/inject"
)

// Bounds of what a request's body is taken apart into, since 64 KB of gzip can hold
// millions of fields. A body that exceeds them is compared as one value.
const (
	maxFields = 10_000
	// maxParsed bounds the bytes of a body, and those of all field names of nested JSON.
	maxParsed = 4 << 20
	// maxDecoded bounds the bytes that a body is decoded to.
	maxDecoded = 64 << 20
	// mostCompared bounds the bytes of a body without fields that are kept to tell how similar it is.
	mostCompared = 16 << 10
	// maxText bounds a multipart value that is kept as text; a longer one is kept
	// as its SHA-256.
	maxText = 256
)

// bodyFields takes a request body apart, so that key order, spaces and multipart
// boundaries make no difference and fields can be compared. sum is BodySum of the
// body. Recorded requests and those of the device are both taken apart here. decoded is the body without its content
// coding; nil for one that is too large.
func bodyFields(header Header, body []byte, sum string) (kind string, fields []pair, decoded []byte) {
	coding := header.Get("Content-Encoding")
	if coding == "" && bytes.HasPrefix(body, []byte("\x1f\x8b\x08")) { // pages compress what they measure, and do not say so
		coding = "gzip"
	}
	if coding != "" {
		var complete bool
		if body, sum, complete = decodeBody(strings.ToLower(coding), body, sum); !complete {
			return "bytes", []pair{{"", sum}}, nil
		}
	}
	media, params, _ := mime.ParseMediaType(header.Get("Content-Type"))
	ok := false
	switch {
	case isMultipart(media, params): // of any size, since large parts become their SHA-256
		kind = "multipart"
		if fields, ok = multipartFields(body, params["boundary"], maxParsed, 0); ok {
			fields = nestedFields(fields)
		}
	case len(body) > maxParsed:
	case media == "application/x-www-form-urlencoded" && !isJSON(body): // the type that scripts send JSON with by mistake
		if kind = "form"; bytes.Count(body, []byte("&")) < maxFields {
			fields, ok = nestedFields(splitQuery(string(body))), true
		}
	default:
		kind = "json"
		if fields, ok = jsonFields(body); !ok {
			kind = "lines"
			fields, ok = jsonLines(body)
		}
	}
	if !ok {
		return "bytes", []pair{{"", sum}}, body
	}
	return kind, fields, body
}

// decodeBody undoes a content coding and returns the decoded body with its SHA-256.
// complete is false for a body that decodes to more than maxParsed: then only the
// SHA-256 is returned. A body that does not decode is returned as it is.
func decodeBody(coding string, coded []byte, sum string) (body []byte, decodedSum string, complete bool) {
	r, err := inject.NewServerDecoder(coding, bytes.NewReader(coded))
	if err != nil {
		return coded, sum, true
	}
	defer r.Close()
	var decoded bytes.Buffer
	if _, err := decoded.ReadFrom(io.LimitReader(r, maxParsed+1)); err != nil {
		return coded, sum, true
	}
	h := sha256.New()
	h.Write(decoded.Bytes())
	if decoded.Len() <= maxParsed {
		return decoded.Bytes(), hexOf(h), true
	}
	if _, err := io.CopyN(h, r, max(min(maxDecoded, inject.MaxDecoded(int64(len(coded))))-maxParsed, 0)); err != io.EOF {
		return nil, sum, false
	}
	return nil, hexOf(h), false
}

func hexOf(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }

func isMultipart(media string, params map[string]string) bool {
	return strings.HasPrefix(media, "multipart/") && params["boundary"] != ""
}

// multipartFields takes the parts of a form, of a batch of requests (multipart/mixed), or of an upload
// (multipart/related). Parts without a name are called by their number. room bounds the bytes of parts that are looked
// into: JSON, also as a file, which is how scripts give it a type, and parts that have parts.
func multipartFields(body []byte, boundary string, room, depth int) ([]pair, bool) {
	const deepest = 3
	r := multipart.NewReader(bytes.NewReader(body), boundary)
	var out []pair
	for len(out) < maxFields {
		part, err := r.NextRawPart()
		if err == io.EOF {
			return out, true
		}
		if err != nil {
			return nil, false
		}
		h := sha256.New()
		read := func(most int) []byte {
			var text []byte
			if err == nil {
				text, err = io.ReadAll(io.TeeReader(io.LimitReader(part, int64(most)), h))
			}
			return text
		}
		name, kind := cmp.Or(part.FormName(), strconv.Itoa(len(out))), part.Header.Get("Content-Type")
		media, params, _ := mime.ParseMediaType(kind)
		text, isText := read(maxText+1), false
		if isNested := isMultipart(media, params) && depth < deepest; isNested || mayBeJSON(text) {
			text = append(text, read(max(0, room-len(text)))...)
			room -= len(text)
			if isNested {
				if inner, ok := multipartFields(text, params["boundary"], room, depth+1); ok && err == nil {
					for _, p := range inner {
						out = append(out, pair{name + "." + p.name, p.value})
					}
					continue
				}
			}
			isText = isJSON(text)
		}
		if err != nil {
			return nil, false
		}
		rest := int64(0)
		if len(text) > maxText { // else it has ended
			if rest, err = io.Copy(h, part); err != nil {
				return nil, false
			}
		}
		value := string(text)
		if isText := isText || part.FileName() == "" && len(text) <= maxText; !isText || rest > 0 {
			value = part.FileName() + " " + kind + " " + hexOf(h)
		}
		out = append(out, pair{name, value})
	}
	return nil, false
}

// mayBeJSON tells a text that begins like a JSON object or list.
func mayBeJSON(text []byte) bool { return len(text) > 1 && (text[0] == '{' || text[0] == '[') }

// jsonFields flattens a JSON value: {"a":[1]} is a.0 = 1. So are values that are JSON in a text.
func jsonFields(body []byte) ([]pair, bool) {
	v, ok := decodeJSON(body)
	if !ok {
		return nil, false
	}
	f := flattener{room: maxParsed}
	if f.flatten("", v); f.room < 0 || len(f.out) >= maxFields {
		return nil, false
	}
	slices.SortFunc(f.out, func(a, b pair) int { return cmp.Compare(a.name, b.name) })
	return f.out, true
}

// jsonLines flattens JSON values, each on a line of its own, as collectors of logs take them: a of the second is 1.a.
func jsonLines(body []byte) ([]pair, bool) {
	if bytes.IndexByte(body, '\n') < 0 {
		return nil, false
	}
	f := flattener{room: maxParsed}
	n, values := 0, 0
	for line := range bytes.Lines(body) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if values += jsonValues(line); values > 2*maxFields {
			return nil, false
		}
		v, ok := decodeJSON(line)
		if !ok {
			return nil, false
		}
		f.inner("", strconv.Itoa(n), v)
		n++
	}
	if n < 2 || f.room < 0 || len(f.out) >= maxFields {
		return nil, false
	}
	slices.SortFunc(f.out, func(a, b pair) int { return cmp.Compare(a.name, b.name) })
	return f.out, true
}

// isJSON tells a body that is a JSON object or array.
func isJSON(body []byte) bool {
	_, ok := decodeJSON(body)
	return ok
}

// decodeJSON reads an object or an array, unless it has too many values.
func decodeJSON(text []byte) (v any, ok bool) {
	text = bytes.TrimSpace(text)
	if len(text) == 0 || text[0] != '{' && text[0] != '[' || jsonValues(text) > 2*maxFields {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, false
	}
	_, err := d.Token()
	return v, err == io.EOF // else JSON lines, or other text behind the value
}

// jsonValues returns an upper bound of the number of values in a JSON text, so that
// it can be refused before the values take memory.
func jsonValues(text []byte) int {
	n, quoted := 1, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ',' || c == '[' || c == '{'):
			n++
		case quoted && c == '\\':
			i++
		}
	}
	return n
}

// flattener collects fields until there are too many of them, or until their names
// have used up the room: the name of each level repeats those above it.
type flattener struct {
	out  []pair
	room int
}

func (f *flattener) flatten(name string, v any) {
	add := func(value string) { f.out = append(f.out, pair{name, value}) }
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			add("{}")
		}
		for k, inner := range v {
			f.inner(name, k, inner)
		}
	case []any:
		if len(v) == 0 {
			add("[]")
		}
		for i, inner := range v {
			f.inner(name, strconv.Itoa(i), inner)
		}
	case string:
		if !f.nested(name, v) {
			add(v)
		}
	case json.Number:
		add(v.String())
	case bool:
		add(strconv.FormatBool(v))
	case nil:
		add("null")
	}
}

// nested flattens a text that is JSON itself.
func (f *flattener) nested(name, text string) bool {
	inner := nestedJSON(text)
	if inner == nil {
		return false
	}
	v, ok := decodeJSON(inner)
	if ok {
		f.flatten(name, v)
	}
	return ok
}

// nestedJSON returns what may be a JSON object or list in a text, or nil: the text itself, or what it is the Base64 of,
// in either alphabet, as pages pack what they measure into a value of a query.
func nestedJSON(text string) []byte {
	if len(text) > 1 && (text[0] == '{' || text[0] == '[') {
		return []byte(text)
	}
	// The first byte makes the first character and a part of the second, which says whether JSON may follow.
	switch {
	case len(text) > 4 && text[0] == 'e' && strings.IndexByte("wy3", text[1]) >= 0: // {
	case len(text) > 4 && text[0] == 'W' && strings.IndexByte("wyz123", text[1]) >= 0: // [
	default:
		return nil
	}
	plain := strings.NewReplacer("-", "+", "_", "/", " ", "+").Replace(strings.TrimRight(text, "="))
	inner, err := base64.RawStdEncoding.DecodeString(plain)
	if err != nil {
		return nil
	}
	return inner
}

// inner flattens the value that has a key inside the value called name.
func (f *flattener) inner(name, key string, v any) {
	if f.room -= len(name) + 1 + len(key); f.room < 0 || len(f.out) >= maxFields {
		return
	}
	f.flatten(name+"."+key, v)
}
