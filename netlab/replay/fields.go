package replay

import (
	"net/http"
	"strings"
	"time"

	"eidetic/internal/lab"
)

// sentField is a field of a recorded response as it was made ready for being
// sent: whatever does not depend on the request was found out once.
type sentField struct {
	lab.HeaderField
	kind fieldKind
	at   time.Time // of a date
}

// fieldKind says what is done with a field for each answer.
type fieldKind uint8

const (
	asRecorded  fieldKind = iota
	sinceThen             // a date that moves with the exchange
	sinceStart            // a date that moves with the recording
	cookieField           // an expiry may be inside
	forOrigin             // names the origin that asked then
)

// toSend makes the fields of a response ready; request is the recorded one.
func toSend(fields []lab.HeaderField, request *lab.Message) []sentField {
	out := make([]sentField, 0, len(fields))
	for _, f := range fields {
		if hopByHop(f.Name) {
			continue
		}
		s := sentField{HeaderField: f}
		switch strings.ToLower(f.Name) {
		case "date", "expires":
			s.kind = sinceThen
		case "last-modified":
			// The device sends it back in If-Modified-Since: it must not change
			// from one answer to the next.
			s.kind = sinceStart
		case "set-cookie":
			s.kind = cookieField
		case "access-control-allow-origin":
			if f.Value != "*" && f.Value == request.Get("Origin") {
				s.kind = forOrigin
			}
		}
		if s.kind == sinceThen || s.kind == sinceStart {
			var err error
			if s.at, err = http.ParseTime(f.Value); err != nil || s.at.Year() < 1990 {
				s.kind = asRecorded // "0" and "-1" mean expired, and so does 1970
			}
		}
		out = append(out, s)
	}
	return out
}

// fields returns a body's header for a request that asks now.
func (s *Session) fields(en *entry, b *body, h http.Header, shift shifter) []lab.HeaderField {
	const more = 2 // that others add
	out := make([]lab.HeaderField, 0, len(b.fields)+len(en.Response.Trailer)+more)
	for i := range b.fields {
		f := &b.fields[i]
		value := f.Value
		switch f.kind {
		case sinceThen:
			value = shift.date(value, f.at, shift.delta)
		case sinceStart:
			value = shift.date(value, f.at, shift.steady)
		case cookieField:
			value = shift.cookie(value)
		case forOrigin:
			if origin := h.Get("Origin"); origin != "" {
				value = origin
			}
		}
		out = append(out, lab.HeaderField{Name: f.Name, Value: value})
	}
	return out
}

// contentLength tells whether one of the fields is that.
func contentLength(fields []lab.HeaderField) bool {
	for i := range fields {
		if name := fields[i].Name; len(name) == len("Content-Length") && strings.EqualFold(name, "Content-Length") {
			return true
		}
	}
	return false
}

// asksForLess tells whether a request asks for less than a whole answer.
func asksForLess(h http.Header) bool {
	return h["If-None-Match"] != nil || h["If-Modified-Since"] != nil || h["Range"] != nil
}

// urlOf is r.URL without a fragment as url.URL.String would give it. Of most
// requests it stands in the request line already.
func urlOf(r *http.Request) string {
	if u := r.URL; strings.HasPrefix(r.RequestURI, "/") && u.Opaque == "" && u.User == nil && usual(r.RequestURI) && usual(u.Host) {
		return u.Scheme + "://" + u.Host + r.RequestURI
	}
	u := *r.URL
	u.Fragment, u.RawFragment = "", ""
	return u.String()
}

// usual tells whether a text has only characters that url.URL.String leaves
// as they are, in a path and in a query.
func usual(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '/', c == '-', c == '_', c == '.', c == '~', c == '?', c == '&', c == '=', c == '%', c == '+', c == ',', c == ':', c == ';', c == '@', c == '$':
		default:
			return false
		}
	}
	return true
}
