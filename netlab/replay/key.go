package replay

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"eidetic/internal/lab"
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

func newShape(method, rawURL string, header *lab.Message, body []byte) (*shape, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, err
	}
	s := &shape{method: method, url: rawURL, origin: originOf(u), path: segments(u.EscapedPath()), query: splitQuery(u.RawQuery)}
	if len(body) > 0 {
		s.sum = sumOf(body)
		s.kind, s.body = bodyFields(header, body, s.sum)
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
func (s *shape) normalKey(l *learned) string { return string(s.appendNormalKey(nil, l)) }

func (s *shape) appendNormalKey(b []byte, l *learned) []byte {
	b = append(append(append(b, s.method...), ' '), s.origin...)
	for _, p := range s.path {
		if volatile(p) {
			p = "*"
		}
		b = append(append(b, '/'), p...)
	}
	b = append(b, '?')
	if len(s.query) > 0 {
		idle := l.idle[s.place()]
		b = append(b, normalPairs(s.query, func(name string) bool { return idle[name] || l.ruled(s.url, name) })...)
	}
	if s.kind != "" {
		b = append(append(append(append(b, ' '), s.kind...), ' '), normalPairs(s.body, func(name string) bool { return l.ruled(s.url, strings.TrimPrefix(name, ".")) })...)
	}
	return b
}

func normalPairs(pairs []pair, idle func(name string) bool) string {
	var out []string
	for _, p := range pairs {
		if p.volatile() || idle(p.name) {
			continue
		}
		text := append(strconv.AppendQuote(make([]byte, 0, len(p.name)+len(p.value)+8), p.name), '=')
		out = append(out, string(strconv.AppendQuote(text, p.value)))
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
