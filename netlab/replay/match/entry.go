package match

import (
	"fmt"
	"strings"

	"eidetic/internal/lab"
)

// Status codes that decide what an exchange can answer.
const (
	partialContent      = 206
	notModified         = 304
	rangeNotSatisfiable = 416
)

// Entry is one recorded exchange, ready to be compared with requests.
type Entry struct {
	*lab.Exchange
	// AskedRange is the Range field of the recorded request, or "".
	AskedRange string
	// Part is what a 206 response holds of the whole; nil for other responses.
	Part *Part

	// opening is what of the body of a call the device had said when the answer began, see lab.Exchange.Sent.
	opening []byte

	request   *Request
	answerSum string
	vary      []string // the fields that Vary names, see varyNames
	own       []pair   // what a script said in fields, see scriptFields
}

// NewEntry takes an exchange apart. answerSum is equal for equal response bodies.
func NewEntry(e *lab.Exchange, answerSum string) *Entry {
	r := NewRequest(e.Method, e.URL, &e.Request, e.Request.Body)
	en := &Entry{
		Exchange: e, AskedRange: e.Request.Get("Range"), request: r, answerSum: answerSum, vary: varyNames(e.Response.Header),
		own: scriptFields(e.Request.Header),
	}
	said := 0
	for _, p := range e.Sent {
		if p.Heard < 0 {
			said += p.Bytes
		}
	}
	en.opening = e.Request.Body[:said]
	if e.Status == partialContent {
		en.Part = parseContentRange(e.Response.Get("Content-Range"), en.AskedRange, len(e.Response.Body))
	}
	return en
}

// Origin returns scheme://host[:port] of the exchange's URL, without a default port.
func (en *Entry) Origin() string { return en.request.origin }

// describe names an exchange for the log, with its similarity.
func (en *Entry) describe(score float64) string {
	return fmt.Sprintf("%s %s (%s, %.2f)", en.Method, en.URL, en.ID, score)
}

// usable returns the entries of a list that can answer a request with this header:
// ranges that fit, no 304 for a client that has nothing cached, no truncated body
// where there is a complete one, the representation that Vary names.
func usable(list []*Entry, h Header) []*Entry {
	if len(list) == 1 && list[0].answersPlainly() && h.Get("Range") == "" {
		return list // the common case
	}
	conditional := h.Get("If-None-Match") != "" || h.Get("If-Modified-Since") != ""
	if asked := h.Get("Range"); asked != "" {
		if same := filter(list, func(en *Entry) bool { return en.AskedRange == asked && en.Truncated == "" }); len(same) > 0 {
			return same
		}
		list = filter(list, func(en *Entry) bool {
			switch en.Status {
			case partialContent:
				return en.Part.answers(asked)
			case rangeNotSatisfiable:
				return en.refuses(asked)
			}
			return true
		})
	} else {
		complete := filter(list, func(en *Entry) bool {
			return en.Status != partialContent && en.Status != rangeNotSatisfiable
		})
		if len(complete) == 0 {
			complete = filter(list, func(en *Entry) bool { return en.Part.isComplete() })
		}
		if len(complete) == 0 { // the origin answers so whatever it is asked
			complete = filter(list, func(en *Entry) bool { return en.AskedRange == "" })
		}
		list = complete
	}
	if fresh := filter(list, func(en *Entry) bool { return en.Status != notModified }); len(fresh) > 0 {
		list = fresh
	} else if !conditional { // an origin may answer so though nothing was cached
		list = filter(list, func(en *Entry) bool { return !en.isConditional() })
	}
	// What was open at the end of the recording keeps its place: it came after the complete ones. So does what failed:
	// the page may have asked again.
	list = prefer(list, func(en *Entry) bool { return en.Truncated == "" || en.IsOpen() || en.IsFailed() })
	if want := h.Get("If-Match"); want != "" { // a change of the state that was recorded with it
		list = prefer(list, func(en *Entry) bool { return en.Request.Get("If-Match") == want })
	}
	list = prefer(list, func(en *Entry) bool { return en.variesAs(h) })
	if len(list) < 2 {
		return list
	}
	for _, name := range usesOf {
		list = prefer(list, func(en *Entry) bool { return isAlike(name, en.Request.Get(name), h.Get(name)) })
	}
	return list
}

// usesOf are fields in which a browser says what it wants an answer for. Servers look at them without a word in Vary:
// they allow an origin to read an answer only where one asks, and answer a prefetch otherwise.
var usesOf = [...]string{"Origin", "Sec-Purpose", "Sec-Fetch-Dest", "X-Requested-With", "Sec-WebSocket-Protocol", "Accept"} // constant

// isAlike compares a field of two requests. Which origin asks may differ between two arms.
func isAlike(name, recorded, asked string) bool {
	if name == "Origin" {
		return (recorded == "") == (asked == "")
	}
	return strings.EqualFold(recorded, asked)
}

// isConditional tells whether the recorded request asked for a 304.
func (en *Entry) isConditional() bool {
	return en.Request.Get("If-None-Match") != "" || en.Request.Get("If-Modified-Since") != ""
}

// answersPlainly tells that usable need not look at ranges and conditions.
func (en *Entry) answersPlainly() bool {
	switch en.Status {
	case notModified, partialContent, rangeNotSatisfiable:
		return false
	}
	return true
}

func filter(list []*Entry, keep func(*Entry) bool) []*Entry {
	out := make([]*Entry, 0, len(list))
	for _, en := range list {
		if keep(en) {
			out = append(out, en)
		}
	}
	return out
}

// prefer filters unless nothing would be left.
func prefer(list []*Entry, keep func(*Entry) bool) []*Entry {
	if out := filter(list, keep); len(out) > 0 {
		return out
	}
	return list
}

// variesAs tells whether a request has the values of the recorded one in the
// fields that Vary names.
func (en *Entry) variesAs(h Header) bool {
	for _, name := range en.vary {
		if en.Request.Get(name) != h.Get(name) {
			return false
		}
	}
	return true
}

// varyNames lists the fields that Vary names, but for those that differ between
// browsers or loads without changing what is meant.
func varyNames(header []lab.HeaderField) []string {
	var out []string
	for _, f := range header {
		if !strings.EqualFold(f.Name, "Vary") {
			continue
		}
		for _, name := range strings.Split(f.Value, ",") {
			switch name = strings.ToLower(strings.TrimSpace(name)); name {
			case "", "*", "accept-encoding", "user-agent", "cookie", "referer":
			default:
				out = append(out, name)
			}
		}
	}
	return out
}
