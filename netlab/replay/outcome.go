package replay

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/inject"
	"eidetic/netlab/replay/match"
)

// outcome is how a request ends: what the log says of it and what the device gets.
type outcome struct {
	match.Result
	filled  bool   // the exchange is one of the view that MissFill fills
	problem string // what went wrong on our side or at the origin, for the log
	answer  answer // what the device gets
	// stream, if set, writes what cannot be an answer, because its end is not known
	// yet: a WebSocket, or the body that an origin is still sending.
	stream func(*output)
	// breaks says that the device's connection breaks when the answer's header is due, as the origin's did.
	breaks bool
}

// answer is a complete response with its times. Durations count from the arrival of
// the request.
type answer struct {
	interim []lab.Interim
	first   time.Duration // when the header is due
	status  int
	reason  string            // of an HTTP/1.1 status line; "" for the usual one
	fields  []lab.HeaderField // trailers last, under http.TrailerPrefix
	body    []byte
	sum     string      // hex SHA-256 of body; "" when it is not known
	chunks  []lab.Chunk // when which part of body is due; nil: all of it with the header
	// truncated says why the recorded body ended early; the device then sees that
	// the answer is incomplete.
	truncated string
	why       string // it is another than the recorded one; for the log
}

// page is an answer of the box itself.
func page(status int, text string) answer {
	return answer{status: status, body: []byte(text), fields: []lab.HeaderField{
		{Name: "Content-Type", Value: "text/plain; charset=utf-8"},
		{Name: "Content-Length", Value: strconv.Itoa(len(text))},
		{Name: "Cache-Control", Value: "no-store"},
	}}
}

// refusal is the outcome of a request that cannot be read.
func refusal(err error, text string) outcome {
	return outcome{Result: match.Result{Stage: lab.StageMiss}, problem: err.Error(), answer: page(http.StatusBadRequest, text)}
}

// byBox says that the box itself answered.
func byBox() match.Result { return match.Result{Stage: lab.StageBox, Score: 1} }

// annotationName returns the name of the annotation that a page posts, if the
// request is for one.
func annotationName(r *http.Request) (name string, ok bool) {
	return strings.CutPrefix(r.URL.Path, inject.BoxPath)
}

// annotation takes what a page tells the box. tell may be nil.
func annotation(o *output, name string, tell func(Annotation)) outcome {
	const most = 64 << 10
	text, err := io.ReadAll(http.MaxBytesReader(o.w, o.r.Body, most))
	if err != nil {
		tooLarge := page(http.StatusRequestEntityTooLarge, "An annotation has at most 64 KiB.\n")
		return outcome{Result: byBox(), problem: err.Error(), answer: tooLarge}
	}
	if tell != nil {
		tell(Annotation{Time: o.line.Time, Client: o.conn.Client, URL: o.line.URL, Name: name, Body: text})
	}
	return outcome{Result: byBox(), answer: answer{
		status: http.StatusNoContent, fields: []lab.HeaderField{{Name: "Cache-Control", Value: "no-store"}},
	}}
}

// isPreflight tells a CORS preflight request (Fetch standard, 4.8).
func isPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != ""
}

// preflight answers a CORS preflight that was not recorded (browsers cache them,
// so a recording may lack them) with what it asks for.
func preflight(h http.Header) outcome {
	fields := []lab.HeaderField{
		{Name: "Access-Control-Allow-Origin", Value: h.Get("Origin")},
		{Name: "Access-Control-Allow-Methods", Value: h.Get("Access-Control-Request-Method")},
		{Name: "Access-Control-Allow-Credentials", Value: "true"},
		{Name: "Vary", Value: "Origin, Access-Control-Request-Method, Access-Control-Request-Headers"},
	}
	if v := h.Get("Access-Control-Request-Headers"); v != "" {
		fields = append(fields, lab.HeaderField{Name: "Access-Control-Allow-Headers", Value: v})
	}
	if h.Get("Access-Control-Request-Private-Network") != "" {
		fields = append(fields, lab.HeaderField{Name: "Access-Control-Allow-Private-Network", Value: "true"})
	}
	return outcome{Result: byBox(), answer: answer{status: http.StatusNoContent, fields: fields}}
}

// letRead lets a page of another origin read the answer to a request that no page made: of a crawler, which names no
// origin, so that many servers do not say whom they allow. Browsers would refuse the page its fonts and data.
func (a *answer) letRead(en *entry, h http.Header) {
	of, answered := lab.Message{Header: en.Request.Header}, lab.Message{Header: a.fields}
	origin, site := h.Get("Origin"), h.Get("Sec-Fetch-Site")
	isPages := of.Get("Origin") != "" || of.Get("Sec-Fetch-Mode") != ""
	if origin == "" || site == "same-origin" || isPages || answered.Get("Access-Control-Allow-Origin") != "" {
		return
	}
	a.fields = append(a.fields, lab.HeaderField{Name: "Access-Control-Allow-Origin", Value: origin},
		lab.HeaderField{Name: "Access-Control-Allow-Credentials", Value: "true"})
	a.why = "the recorded request named no origin, as of a crawler: this page's may read the answer"
}

// beacon answers what nobody recorded and no script reads, such as what a page tells of a slow load.
func beacon() outcome {
	out := outcome{Result: byBox(), answer: answer{status: http.StatusNoContent}}
	out.Why = "it was not recorded, and the page cannot read the answer"
	return out
}

// notOfPage refuses what nobody recorded and the page under test has nothing to do with.
func notOfPage(who string) outcome {
	out := outcome{Result: byBox(), answer: page(http.StatusNotFound, "This request is not in the archive.\n")}
	out.Why = "it was not recorded, and " + who + ", not the page"
	return out
}

// maxRequestBody bounds what a device may send in one request.
const maxRequestBody = 256 << 20

// readBody reads the request's body and notes its SHA-256 in the log line.
func (o *output) readBody() ([]byte, error) {
	if o.r.Body == nil || o.r.Body == http.NoBody {
		return nil, nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(o.w, o.r.Body, maxRequestBody))
	if err != nil {
		return nil, fmt.Errorf("read the request's body: %w", err)
	}
	o.line.RequestSHA256 = match.BodySum(body)
	return body, nil
}

// deliver writes an outcome to the device and into the log line.
func (o *output) deliver(out outcome) {
	line := &o.line
	line.Stage, line.Score, line.Differs, line.RunnerUp, line.Why = out.Stage, out.Score, out.Differs, out.RunnerUp, out.Why
	line.Filled, line.Error, line.Rule = out.filled, out.problem, out.Rule
	if out.Entry != nil {
		line.Exchange = out.Entry.ID
	}
	switch {
	case out.stream != nil:
		out.stream(o)
	case out.breaks:
		if err := o.wait(out.answer.first); err != nil {
			o.aborted(err)
			return
		}
		o.incomplete = true
	default:
		o.send(out.answer)
	}
}

// send writes an answer at its times.
func (o *output) send(a answer) {
	for _, i := range a.interim {
		if err := o.wait(i.At); err != nil {
			o.aborted(err)
			return
		}
		o.interim(i)
	}
	if err := o.wait(a.first); err != nil {
		o.aborted(err)
		return
	}
	o.header(a.status, a.reason, a.fields)
	if o.r.Method == http.MethodHead || !bodyAllowed(a.status) {
		return
	}
	if len(a.body) > 0 && !hasContentLength(a.fields) {
		o.flush() // else net/http counts a short body and sends a Content-Length
	}
	if len(a.chunks) > 0 {
		o.timed(a.body, a.chunks)
	} else {
		o.body(a.body)
	}
	o.line.BodySHA256 = a.sum
	if a.sum == "" || o.line.Bytes != int64(len(a.body)) {
		o.line.BodySHA256 = hexSum(a.body[:o.line.Bytes])
	}
	if a.truncated != "" && !o.line.Aborted {
		o.incomplete = true
		if a.truncated == lab.Disconnected {
			o.line.Why = cmp.Or(o.line.Why, cutWhy)
		} else {
			o.line.Error = "the recorded body was cut off (" + a.truncated + ")"
		}
	}
}

// wait returns when it is due after the request's arrival, or when the device goes
// away.
func (o *output) wait(due time.Duration) error {
	return waitUntil(o.r.Context(), o.clock, o.line.Time.Add(due))
}
