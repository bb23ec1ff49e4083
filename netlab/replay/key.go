package replay

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"mime"
	"mime/multipart"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"eidetic/internal/lab"
	"eidetic/netlab/inject"
)

// pair is one named value of a query or a body.
type pair struct{ name, value string }

// shape is a request taken apart for matching: everything that stages compare.
type shape struct {
	method string
	url    string
	origin string // scheme://host[:port], default ports left out
	path   []string
	query  []pair // in order
	body   []pair // fields of a form, JSON or multipart body; one pair for another
	kind   string // of the body: "", "form", "json", "multipart", "bytes"
	sum    string // hex SHA-256 of the raw body, "" without one
}

// maxFields bounds the fields that a body is taken apart into.
const maxFields = 10_000

func newShape(method, rawURL string, header *lab.Message, body []byte) (*shape, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, err
	}
	s := &shape{method: method, url: rawURL, origin: originOf(u), path: segments(u.EscapedPath()), query: splitQuery(u.RawQuery)}
	if len(body) > 0 {
		s.sum = sumOf(body)
		s.kind, s.body = bodyFields(header, body)
	}
	return s, nil
}

func originOf(u *url.URL) string {
	host := strings.ToLower(u.Host)
	switch {
	case u.Scheme == "http":
		host = strings.TrimSuffix(host, ":80")
	case u.Scheme == "https":
		host = strings.TrimSuffix(host, ":443")
	}
	return u.Scheme + "://" + host
}

func segments(path string) []string {
	return strings.Split(strings.TrimPrefix(path, "/"), "/")
}

// splitQuery keeps order and repetition, and what url.ParseQuery refuses.
func splitQuery(raw string) []pair {
	if raw == "" {
		return nil
	}
	var out []pair
	for _, part := range strings.Split(raw, "&") {
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		out = append(out, pair{unescape(name), unescape(value)})
	}
	return out
}

func unescape(s string) string {
	if u, err := url.QueryUnescape(s); err == nil {
		return u
	}
	return s
}

// bodyFields takes a request body apart, so that key order, spaces and
// multipart boundaries make no difference and fields can be compared.
func bodyFields(header *lab.Message, body []byte) (string, []pair) {
	if coding := header.Get("Content-Encoding"); coding != "" {
		if r, err := inject.NewDecoder(strings.ToLower(coding), bytes.NewReader(body)); err == nil {
			if plain, err := io.ReadAll(io.LimitReader(r, 64<<20)); err == nil {
				body = plain
			}
			_ = r.Close()
		}
	}
	media, params, _ := mime.ParseMediaType(header.Get("Content-Type"))
	switch {
	case media == "application/x-www-form-urlencoded":
		return "form", splitQuery(string(body))
	case media == "multipart/form-data" && params["boundary"] != "":
		if fields, ok := multipartFields(body, params["boundary"]); ok {
			return "multipart", fields
		}
	case strings.Contains(media, "json") || media == "" || media == "text/plain":
		if fields, ok := jsonFields(body); ok {
			return "json", fields
		}
	}
	h := sha256.Sum256(body)
	return "bytes", []pair{{"", hex.EncodeToString(h[:])}}
}

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
		text, err := io.ReadAll(part)
		if err != nil {
			return nil, false
		}
		value := string(text)
		if part.FileName() != "" || len(text) > 256 {
			h := sha256.Sum256(text)
			value = part.FileName() + " " + part.Header.Get("Content-Type") + " " + hex.EncodeToString(h[:])
		}
		out = append(out, pair{part.FormName(), value})
	}
	return nil, false
}

// jsonFields flattens a JSON value: {"a":[1]} is a.0 = 1.
func jsonFields(body []byte) ([]pair, bool) {
	body = bytes.TrimSpace(body)
	if len(body) == 0 || body[0] != '{' && body[0] != '[' {
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
	out := flatten(nil, "", v)
	if len(out) >= maxFields {
		return nil, false
	}
	slices.SortFunc(out, func(a, b pair) int { return cmp.Compare(a.name, b.name) })
	return out, true
}

func flatten(out []pair, name string, v any) []pair {
	if len(out) >= maxFields {
		return out
	}
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			return append(out, pair{name, "{}"})
		}
		for k, inner := range v {
			out = flatten(out, name+"."+k, inner)
		}
	case []any:
		if len(v) == 0 {
			return append(out, pair{name, "[]"})
		}
		for i, inner := range v {
			out = flatten(out, name+"."+strconv.Itoa(i), inner)
		}
	case string:
		return append(out, pair{name, v})
	case json.Number:
		return append(out, pair{name, v.String()})
	case bool:
		return append(out, pair{name, strconv.FormatBool(v)})
	case nil:
		return append(out, pair{name, "null"})
	}
	return out
}

// exactKey is equal for requests that are the same in method, URL and body bytes.
func (s *shape) exactKey() string { return string(appendExactKey(nil, s.method, s.url, s.sum)) }

func appendExactKey(b []byte, method, url, sum string) []byte {
	b = append(append(append(b, method...), ' '), url...)
	if sum != "" {
		b = append(append(b, ' '), sum...)
	}
	return b
}

// sumOf is the hex SHA-256 of a request's body, or "" without one.
func sumOf(body []byte) string {
	if len(body) == 0 {
		return ""
	}
	h := sha256.Sum256(body)
	return hex.EncodeToString(h[:])
}

// normalKey is equal for requests that differ in volatile parts only: values
// of time and chance, parameters that the recording shows not to matter, the
// order of parameters and JSON keys, multipart boundaries.
func (s *shape) normalKey(l *learned) string {
	var b strings.Builder
	b.WriteString(s.method + " " + s.origin)
	for _, p := range s.path {
		if volatile(p) {
			p = "*"
		}
		b.WriteString("/" + p)
	}
	idle := l.idle[s.place()]
	b.WriteString("?" + normalPairs(s.query, func(name string) bool { return idle[name] || l.ruled(s.url, name) }))
	if s.kind != "" {
		b.WriteString(" " + s.kind + " " + normalPairs(s.body, func(name string) bool { return l.ruled(s.url, strings.TrimPrefix(name, ".")) }))
	}
	return b.String()
}

func normalPairs(pairs []pair, idle func(name string) bool) string {
	out := make([]string, 0, len(pairs))
	for _, p := range pairs {
		if p.volatile() || idle(p.name) {
			continue
		}
		out = append(out, strconv.Quote(p.name)+"="+strconv.Quote(p.value))
	}
	slices.Sort(out)
	return strings.Join(out, "&")
}

// volatile tells a parameter whose value says nothing about what is asked.
func (p pair) volatile() bool {
	switch strings.ToLower(p.name[strings.LastIndexByte(p.name, '.')+1:]) {
	case "_", "cb", "cachebust", "cachebuster", "cache_buster", "nocache", "no_cache", "rnd", "rand", "random", "_t", "_ts", "ts", "timestamp", "ord", "correlator":
		return true
	case "r", "t", "z":
		return len(p.value) >= 6 && strings.Trim(p.value, "0123456789.") == ""
	}
	return volatile(p.value)
}

// volatile tells values of time and chance by their form: epoch seconds and
// milliseconds, Math.random, UUIDs, jQuery's callback names.
func volatile(v string) bool {
	switch {
	case len(v) < 10 || len(v) > 64:
		return false
	case strings.HasPrefix(v, "0.") && len(v) >= 12 && digits(v[2:]):
		return true
	case digits(v):
		return (len(v) == 10 || len(v) == 13 || len(v) == 16) && v[0] >= '1' && v[0] <= '3'
	case len(v) == 36 && v[8] == '-' && v[13] == '-' && v[18] == '-' && v[23] == '-':
		return strings.Trim(v, "0123456789abcdefABCDEF-") == ""
	case strings.HasPrefix(v, "jQuery") || strings.HasPrefix(v, "jsonp"):
		return strings.Trim(v[5:], "0123456789_yp") == ""
	}
	return false
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
