package replay

import (
	"net/http"
	"strings"
	"time"

	"eidetic/internal/lab"
)

// preparedField is a field of a recorded response, ready to be sent: everything that
// does not depend on the request was found out once.
type preparedField struct {
	lab.HeaderField
	change fieldChange
	at     time.Time // the date of changeWithExchange and changeWithRecording
}

// fieldChange says how a field's value changes from the recording to an answer.
type fieldChange uint8

const (
	unchanged           fieldChange = iota
	changeWithExchange              // a date that moves with the exchange
	changeWithRecording             // a date that moves with the recording
	changeCookie                    // an expiry may be inside
	changeOrigin                    // the value is the origin that asked then
)

// prepareFields makes the fields of a response ready; request is the recorded one.
func prepareFields(fields []lab.HeaderField, request *lab.Message) []preparedField {
	out := make([]preparedField, 0, len(fields))
	for _, f := range fields {
		if isHopByHop(f.Name) {
			continue
		}
		p := preparedField{HeaderField: f}
		switch strings.ToLower(f.Name) {
		case "date", "expires", "retry-after":
			p.change = changeWithExchange
		case "last-modified":
			// The device sends this date back in If-Modified-Since, so it must not
			// change from one answer to the next.
			p.change = changeWithRecording
		case "set-cookie":
			p.change = changeCookie
		case "access-control-allow-origin":
			if f.Value != "*" && f.Value == request.Get("Origin") {
				p.change = changeOrigin
			}
		}
		if p.change == changeWithExchange || p.change == changeWithRecording {
			var err error
			if p.at, err = http.ParseTime(f.Value); err != nil {
				p.at, err = looseTime(f.Value)
			}
			if err != nil || p.at.Year() < 1990 {
				p.change = unchanged // "0" and "-1" mean expired, and so does 1970
			}
		}
		out = append(out, p)
	}
	return out
}

// fields returns a body's header for a request that arrives now.
func (s *Session) fields(en *entry, b *body, h http.Header, shift shifter) []lab.HeaderField {
	const more = 2 // that callers add
	out := make([]lab.HeaderField, 0, len(b.fields)+len(en.Response.Trailer)+more)
	for i := range b.fields {
		f := &b.fields[i]
		value := f.Value
		switch f.change {
		case changeWithExchange:
			value = shift.date(value, f.at, shift.delta)
		case changeWithRecording:
			value = shift.date(value, f.at, shift.steady)
		case changeCookie:
			value = shift.cookie(value)
		case changeOrigin:
			if origin := h.Get("Origin"); origin != "" {
				value = origin
			}
		}
		out = append(out, lab.HeaderField{Name: f.Name, Value: value})
	}
	return out
}

// hasContentLength tells whether one of the fields is a Content-Length.
func hasContentLength(fields []lab.HeaderField) bool {
	for i := range fields {
		if name := fields[i].Name; len(name) == len("Content-Length") && strings.EqualFold(name, "Content-Length") {
			return true
		}
	}
	return false
}

// urlOf returns the address of a request with the bytes of its request line.
func urlOf(r *http.Request) string {
	if target := r.RequestURI; strings.HasPrefix(target, "/") {
		target, _, _ = strings.Cut(target, "#")
		return r.URL.Scheme + "://" + r.URL.Host + target
	}
	return lab.ParseURL(r.URL.String()).Sent()
}
