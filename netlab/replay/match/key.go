package match

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"eidetic/internal/lab"
)

// Header is the header of a request: http.Header and *lab.Message have it.
type Header interface {
	// Get returns the first value of a field, or "".
	Get(name string) string
}

// Request is a request taken apart for matching: everything that stages compare.
type Request struct {
	method string
	url    string
	origin string // scheme://host[:port], default ports left out
	path   []string
	query  []pair // in order
	body   []pair // fields of a form, JSON or multipart body; one pair for another
	kind   string // of the body: "", "form", "json", "multipart", "bytes"
	sum    string // hex SHA-256 of the raw body, "" without one
	called string // see calledBy
	bytes  []byte // the begin of a decoded body without fields
	size   int    // of that body

	// queryByName and bodyByName are query and body, sorted by name; pairs of one
	// name stay in order.
	queryByName, bodyByName []pair
}

// pair is one named value of a query or a body.
type pair struct{ name, value string }

// NewRequest takes a request apart. rawURL is absolute; of the header only what describes the body, and names what is
// called, is used.
func NewRequest(method, rawURL string, header Header, body []byte) *Request {
	u := lab.ParseURL(rawURL)
	r := &Request{method: method, url: rawURL, origin: u.Origin(), path: segments(u.Path)}
	r.query = nestedFields(withoutClock(splitQuery(u.Query)))
	if len(body) > 0 {
		r.sum = BodySum(body)
		var decoded []byte
		if r.kind, r.body, decoded = bodyFields(header, body, r.sum); r.kind == "bytes" {
			r.bytes, r.size = bytes.Clone(decoded[:min(len(decoded), mostCompared)]), len(decoded)
		}
	}
	r.queryByName, r.bodyByName = sortedByName(r.query), sortedByName(r.body)
	r.called = calledBy(header, r)
	return r
}

// segments splits a path. Clients differ in what they escape, so a segment is compared as the text that it stands for.
func segments(path string) []string {
	list := strings.Split(strings.TrimPrefix(path, "/"), "/")
	if strings.Contains(path, "%") {
		for i, s := range list {
			if plain, err := url.PathUnescape(s); err == nil && !strings.Contains(plain, "/") {
				list[i] = plain
			}
		}
	}
	return list
}

// splitQuery keeps order and repetition, and what url.ParseQuery refuses.
func splitQuery(raw string) []pair {
	if raw == "" {
		return nil
	}
	out := make([]pair, 0, strings.Count(raw, "&")+1)
	for part := range strings.SplitSeq(raw, "&") {
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		out = append(out, pair{unescape(name), unescape(value)})
	}
	return out
}

// withoutClock removes the parameter t from a request of Engine.IO (the transport of socket.io),
// where it is a clock in base 36 or 64 that defeats caches: its form says nothing, but the
// protocol does (github.com/socketio/engine.io-protocol, "t").
func withoutClock(query []pair) []pair {
	has := func(name string) bool { return slices.ContainsFunc(query, func(p pair) bool { return p.name == name }) }
	if !has("EIO") || !has("transport") {
		return query
	}
	return slices.DeleteFunc(query, func(p pair) bool { return p.name == "t" })
}

func unescape(s string) string {
	if u, err := url.QueryUnescape(s); err == nil {
		return u
	}
	return s
}

// sortedByName returns pairs by name. It returns pairs themselves if they are
// sorted already.
func sortedByName(pairs []pair) []pair {
	byName := func(a, b pair) int { return strings.Compare(a.name, b.name) }
	if slices.IsSortedFunc(pairs, byName) {
		return pairs
	}
	sorted := slices.Clone(pairs)
	slices.SortStableFunc(sorted, byName)
	return sorted
}

// BodySum returns the hex SHA-256 of a request's body, or "" without one.
func BodySum(body []byte) string {
	if len(body) == 0 {
		return ""
	}
	h := sha256.Sum256(body)
	return hex.EncodeToString(h[:])
}

// appendExactKey appends what is equal for requests that are the same in method,
// URL and body bytes.
func appendExactKey(b []byte, method, url, bodySum string) []byte {
	b = lab.AppendURLKey(append(append(b, method...), ' '), url)
	if bodySum != "" {
		b = append(append(b, ' '), bodySum...)
	}
	return b
}

func (r *Request) exactKey() string {
	return string(appendExactKey(nil, r.method, r.url, r.sum))
}

// appendNormalKey appends what is equal for requests that differ in volatile parts
// only: values of time and chance, parameters that do not matter, the order of
// parameters with different names and of JSON keys, multipart boundaries.
func (r *Request) appendNormalKey(b []byte, ignored *Ignored) []byte {
	b = append(append(append(b, r.method...), ' '), r.origin...)
	for i, p := range r.path {
		if ignored.passes(r, i) {
			p = "*"
		}
		b = append(append(b, '/'), p...)
	}
	b = append(b, '?')
	var clocks map[string]bool
	if len(r.query)+len(r.body) > 0 {
		clocks = ignored.clocksOf(r)
	}
	if len(r.query) > 0 {
		var idle, numbers, functions map[string]bool
		if len(ignored.idle)+len(ignored.numbers)+len(ignored.functions) > 0 { // place is not cheap
			place := r.place()
			idle, numbers, functions = ignored.idle[place], ignored.numbers[place], ignored.functions[place]
		}
		b = appendPairs(b, r.queryByName, func(p pair) bool {
			return idle[p.name] || functions[p.name] && isNumbered(p.value) || p.isVolatile() && !numbers[p.name] || ignored.byRule(r.url, p.name) ||
				len(clocks) > 0 && isReading(clocks, "query "+p.name, p.value)
		})
	}
	if r.kind != "" {
		b = appendPairs(append(append(append(b, ' '), r.kind...), ' '), r.bodyByName, func(p pair) bool {
			return p.isVolatile() || r.isCallID(p) || ignored.byRule(r.url, strings.TrimPrefix(p.name, ".")) ||
				len(clocks) > 0 && isReading(clocks, "body "+p.name, p.value)
		})
	}
	return b
}

func (r *Request) normalKey(ignored *Ignored) string {
	return string(r.appendNormalKey(nil, ignored))
}

// bucketKey is equal for requests that can be similar at all: similarity is 0 for
// two requests with different ones.
func (r *Request) bucketKey() string {
	return fmt.Sprintf("%s %s %d %s %q", r.method, r.origin, len(r.path), r.kind, extension(r.path[len(r.path)-1]))
}

// pathKey is equal for requests of one path, in whatever case, and whatever else differs.
func (r *Request) pathKey() string { return strings.ToLower(strings.Join(r.path, "/")) }

// appendPairs appends the pairs that matter of a list that is sorted by name. Values of one name
// stay in their order, which may count: a=2&a=1 is not a=1&a=2.
func appendPairs(b []byte, byName []pair, isIgnored func(pair) bool) []byte {
	for _, p := range byName {
		if isIgnored(p) {
			continue
		}
		b = strconv.AppendQuote(append(strconv.AppendQuote(b, p.name), '='), p.value)
		b = append(b, '&')
	}
	return b
}

// isVolatile tells a parameter whose value says nothing about what is asked.
func (p pair) isVolatile() bool {
	switch strings.ToLower(p.name[strings.LastIndexByte(p.name, '.')+1:]) {
	case "_", "cb", "cachebust", "cachebuster", "cache_buster", "nocache", "no_cache", "rnd", "rand", "random", "_t", "_ts", "ts",
		"timestamp", "ord", "correlator", "nonce", "oauth_nonce", "oauth_timestamp", "oauth_signature", "x-amz-date", "x-amz-signature",
		"x-goog-date", "x-goog-signature":
		return true
	case "r", "t", "z":
		return len(p.value) >= 6 && strings.Trim(p.value, "0123456789.") == "" || isEpoch36(p.value) && hasDigit(p.value)
	}
	if p.value == "" { // some pages defeat caches with a time that has no name
		return isVolatile(p.name) || isEpoch36(p.name) && hasDigit(p.name) // a word has none
	}
	return isVolatile(p.value)
}

func hasDigit(v string) bool { return strings.ContainsAny(v, "0123456789") }

// isEpoch36 tells epoch milliseconds of 2017 to 2039 in base 36, as of Date.now().toString(36), or words of that form.
func isEpoch36(v string) bool {
	if len(v) != 8 || strings.ToLower(v) != v {
		return false
	}
	ms, err := strconv.ParseInt(v, 36, 64)
	return err == nil && ms > 1.5e12 && ms < 2.2e12
}

// isVolatile tells values of time and chance by their form: epoch seconds and
// milliseconds, with or without a fraction, dates with a fraction of a second, Math.random, UUIDs, jQuery's callback
// names.
func isVolatile(v string) bool {
	switch {
	case len(v) < 10 || len(v) > 64:
		return false
	case strings.HasPrefix(v, "0.") && len(v) >= 12 && isDigits(v[2:]):
		return true
	case isEpoch(v), isISOTime(v):
		return true
	case isDigits(v):
		return (len(v) == 10 || len(v) == 13 || len(v) == 16) && v[0] >= '1' && v[0] <= '3'
	case isUUID(v):
		return true
	case strings.HasPrefix(v, "jQuery") || strings.HasPrefix(v, "jsonp"):
		return strings.Trim(v[5:], "0123456789_yp") == ""
	}
	return false
}

// isEpoch tells epoch seconds and milliseconds with a fraction, as of performance.timeOrigin + performance.now().
func isEpoch(v string) bool {
	whole, part, ok := strings.Cut(v, ".")
	return ok && (len(whole) == 10 || len(whole) == 13) && whole[0] >= '1' && whole[0] <= '3' && isDigits(whole) && isDigits(part)
}

// isISOTime tells a time to a part of a second as a clock gives it (Date.toISOString): 2026-05-06T07:08:09.123Z. One of
// a whole minute may be a choice from a calendar.
func isISOTime(v string) bool {
	const form = "0000-00-00T00:00:00.000"
	if len(v) <= len(form) || strings.HasPrefix(v[len("0000-00-00T00:00"):], ":00.000") {
		return false
	}
	for i := range form {
		if isDigit := v[i] >= '0' && v[i] <= '9'; isDigit != (form[i] == '0') || !isDigit && v[i] != form[i] {
			return false
		}
	}
	zone := strings.TrimLeft(v[len(form):], "0123456789")
	return zone == "Z" || len(zone) == len("+00:00") && (zone[0] == '+' || zone[0] == '-' || zone[0] == ' ')
}

func isUUID(v string) bool {
	return len(v) == 36 && v[8] == '-' && v[13] == '-' && v[18] == '-' && v[23] == '-' && strings.Trim(v, "0123456789abcdefABCDEF-") == ""
}

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
