package replay

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

	"eidetic/internal/lab"
	"eidetic/netlab/inject"
)

// What a request's body is taken apart into is bounded, since 64 KB of gzip
// can hold millions of fields. A body with more is compared as a whole.
const (
	maxFields = 10_000
	// maxApart bounds the bytes, and those of all names that nested JSON has.
	maxApart = 4 << 20
	// maxPlain bounds what a content coding is undone for.
	maxPlain = 64 << 20
	// maxText is how long a value may be that differences are shown of.
	maxText = 256
)

// bodyFields takes a request body apart, so that key order, spaces and
// multipart boundaries make no difference and fields can be compared; sum is
// the body's. A recorded body and one that is asked with pass here alike.
func bodyFields(header *lab.Message, body []byte, sum string) (kind string, fields []pair) {
	if coding := header.Get("Content-Encoding"); coding != "" {
		var whole bool
		if body, sum, whole = plainBody(strings.ToLower(coding), body, sum); !whole {
			return "bytes", []pair{{"", sum}}
		}
	}
	media, params, _ := mime.ParseMediaType(header.Get("Content-Type"))
	ok := false
	switch {
	case media == "multipart/form-data" && params["boundary"] != "": // its large parts stay in one piece
		kind = "multipart"
		fields, ok = multipartFields(body, params["boundary"])
	case len(body) > maxApart:
	case media == "application/x-www-form-urlencoded":
		if kind = "form"; bytes.Count(body, []byte("&")) < maxFields {
			fields, ok = splitQuery(string(body)), true
		}
	case strings.Contains(media, "json") || media == "" || media == "text/plain":
		kind = "json"
		fields, ok = jsonFields(body)
	}
	if !ok {
		return "bytes", []pair{{"", sum}}
	}
	return kind, fields
}

// plainBody undoes a content coding and returns the SHA-256 of what comes out.
// Of what is longer than maxApart there is only that; what does not decode, or
// to too much, stays as it is.
func plainBody(coding string, coded []byte, sum string) (body []byte, plainSum string, whole bool) {
	r, err := inject.NewDecoder(coding, bytes.NewReader(coded))
	if err != nil {
		return coded, sum, true
	}
	defer r.Close()
	var plain bytes.Buffer
	if _, err := plain.ReadFrom(io.LimitReader(r, maxApart+1)); err != nil {
		return coded, sum, true
	}
	h := sha256.New()
	h.Write(plain.Bytes())
	if plain.Len() <= maxApart {
		return plain.Bytes(), hexOf(h), true
	}
	if _, err := io.CopyN(h, r, maxPlain-maxApart); err != io.EOF {
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

// jsonFields flattens a JSON value: {"a":[1]} is a.0 = 1.
func jsonFields(body []byte) ([]pair, bool) {
	body = bytes.TrimSpace(body)
	if len(body) == 0 || body[0] != '{' && body[0] != '[' || jsonValues(body) > 2*maxFields {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, false
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, false // JSON lines, or something behind it
	}
	f := flattener{room: maxApart}
	if f.flatten("", v); f.room < 0 || len(f.out) >= maxFields {
		return nil, false
	}
	slices.SortFunc(f.out, func(a, b pair) int { return cmp.Compare(a.name, b.name) })
	return f.out, true
}

// jsonValues is no less than the number of values in a JSON text, to be known
// before each of them takes memory.
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

// flattener collects fields until there are too many, or names have used up
// the room: each level repeats those above it.
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
		add(v)
	case json.Number:
		add(v.String())
	case bool:
		add(strconv.FormatBool(v))
	case nil:
		add("null")
	}
}

// inner flattens a value within the one that is called name.
func (f *flattener) inner(name, key string, v any) {
	if f.room -= len(name) + 1 + len(key); f.room < 0 || len(f.out) >= maxFields {
		return
	}
	f.flatten(name+"."+key, v)
}
