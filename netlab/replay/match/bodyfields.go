package match

import (
	"bytes"
	"cmp"
	"crypto/sha256"
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
	// maxText bounds a multipart value that is kept as text; a longer one is kept
	// as its SHA-256.
	maxText = 256
)

// bodyFields takes a request body apart, so that key order, spaces and multipart
// boundaries make no difference and fields can be compared. sum is BodySum of the
// body. Recorded requests and those of the device are both taken apart here.
func bodyFields(header Header, body []byte, sum string) (kind string, fields []pair) {
	if coding := header.Get("Content-Encoding"); coding != "" {
		var complete bool
		if body, sum, complete = decodeBody(strings.ToLower(coding), body, sum); !complete {
			return "bytes", []pair{{"", sum}}
		}
	}
	media, params, _ := mime.ParseMediaType(header.Get("Content-Type"))
	ok := false
	switch {
	case media == "multipart/form-data" && params["boundary"] != "": // of any size, since large parts become their SHA-256
		kind = "multipart"
		if fields, ok = multipartFields(body, params["boundary"]); ok {
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
		return "bytes", []pair{{"", sum}}
	}
	return kind, fields
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

func multipartFields(body []byte, boundary string) ([]pair, bool) {
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
		text, err := io.ReadAll(io.TeeReader(io.LimitReader(part, maxText+1), h))
		if err != nil {
			return nil, false
		}
		value := string(text)
		if part.FileName() != "" || len(text) > maxText {
			if _, err := io.Copy(h, part); err != nil {
				return nil, false
			}
			value = part.FileName() + " " + part.Header.Get("Content-Type") + " " + hexOf(h)
		}
		out = append(out, pair{part.FormName(), value})
	}
	return nil, false
}

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
	if len(text) < 2 || text[0] != '{' && text[0] != '[' {
		return false
	}
	v, ok := decodeJSON([]byte(text))
	if ok {
		f.flatten(name, v)
	}
	return ok
}

// inner flattens the value that has a key inside the value called name.
func (f *flattener) inner(name, key string, v any) {
	if f.room -= len(name) + 1 + len(key); f.room < 0 || len(f.out) >= maxFields {
		return
	}
	f.flatten(name+"."+key, v)
}
