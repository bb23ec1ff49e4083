// Package otlp reads the traces of back ends, and joins them to the requests that they served. In flow files of the
// OpenTelemetry Protocol (opentelemetry-proto, trace/v1 and collector/trace/v1), which anyone may have written: its
// JSON, one message or many after each other as the Collector's file exporter writes them, or its protobuf, as one
// message or as many with their lengths before them. In flow the requests, each with the ID that it was given in the
// field traceparent (W3C Trace Context); out flow the spans of each, with bounds of when they began after the request.
package otlp

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"eidetic/internal/base/bounded"
	"eidetic/internal/lab"
)

// Bounds of a file; docs/timeline.md has them. bounded.JSON has those of what a message of JSON holds.
const (
	maxFile    = 256 << 20
	maxMessage = 32 << 20
	maxName    = 300  // bytes of a name
	latest     = 4e18 // ns since 1970: the end of the century
)

// smaller says what to do about a message that is too large, as errLarge does of one with more than maxMessage.
const smaller = "have the exporter write smaller batches"

// ErrCut is returned behind whole messages for a file that ends within one: a Collector may still be writing it.
var ErrCut = errors.New("the file ends within it") // constant

var errLarge = fmt.Errorf("it has more than %d MiB: %s", maxMessage>>20, smaller) // constant

// TraceID and SpanID tell traces and spans apart; the zero value is none.
type (
	TraceID [16]byte
	SpanID  [8]byte
)

// Span is one of a back end's.
type Span struct {
	Trace         TraceID
	ID, Parent    SpanID
	Service, Name string
	Start, End    int64 // ns since 1970, by the clock of the service's machine
	Failed        bool
}

// Traceparent reads the field of a request; false for what is none.
func Traceparent(field string) (trace TraceID, parent SpanID, ok bool) {
	parts := strings.Split(strings.TrimSpace(field), "-")
	if len(parts) < 4 || len(parts[0]) != 2 || parts[0] == "ff" || !decode(trace[:], parts[1]) || !decode(parent[:], parts[2]) {
		return TraceID{}, SpanID{}, false
	}
	return trace, parent, trace != TraceID{} && parent != SpanID{}
}

func decode(to []byte, text string) bool {
	if len(text) != 2*len(to) {
		return false
	}
	_, err := hex.Decode(to, []byte(text))
	return err == nil
}

// Read calls take with each span of a file. Spans without an ID or a time are counted and left out.
func Read(r io.Reader, take func(Span)) (left int, err error) {
	limited := &io.LimitedReader{R: r, N: maxFile + 1}
	in := bufio.NewReader(limited)
	add := func(s Span) {
		if s.Trace == (TraceID{}) || s.ID == (SpanID{}) || s.Start <= 0 || s.End > latest || s.End < s.Start || s.End-s.Start > 86400e9 {
			left++
			return
		}
		s.Service, s.Name = lab.OneLine(s.Service, maxName), lab.OneLine(s.Name, maxName)
		take(s)
	}
	first, err := peek(in)
	head, _ := in.Peek(4) // there may be less
	switch packed := bounded.Packed(head); {
	case err != nil:
		return 0, err
	case packed != nil:
		return 0, packed
	case first == '{' || first == '[':
		err = readJSON(in, first == '[', add)
	default:
		err = readProtobuf(in, first, add)
	}
	if limited.N <= 0 {
		err = fmt.Errorf("it has more than %d MiB: give the part of the run", maxFile>>20)
	}
	return left, err
}

// peek is the first byte that is no blank of JSON; what comes before it is read. A line break is none: with its byte a
// message of protobuf begins.
func peek(in *bufio.Reader) (byte, error) {
	head, err := in.Peek(64)
	if len(head) == 0 {
		if errors.Is(err, io.EOF) {
			err = errors.New("it is empty")
		}
		return 0, err
	}
	if rest := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\ufeff")), " \t\r"); len(rest) > 0 && (rest[0] == '{' || rest[0] == '[') {
		_, err := in.Discard(len(head) - len(rest))
		return rest[0], err
	}
	return head[0], nil
}

// The messages of the protocol, as far as they are read. The names are those of its JSON.
type (
	message struct {
		Resources []resourceSpans `json:"resourceSpans"`
		Batches   []resourceSpans `json:"batches"` // Grafana Tempo
		Trace     *struct {       // Grafana Tempo, version 2 of its API
			Resources []resourceSpans `json:"resourceSpans"`
		} `json:"trace"`
	}
	resourceSpans struct {
		Resource struct {
			Attributes []attribute `json:"attributes"`
		} `json:"resource"`
		Scopes []scopeSpans `json:"scopeSpans"`
		Older  []scopeSpans `json:"instrumentationLibrarySpans"`
	}
	scopeSpans struct {
		Spans []jsonSpan `json:"spans"`
	}
	attribute struct {
		Key   string `json:"key"`
		Value struct {
			Text string `json:"stringValue"`
		} `json:"value"`
	}
	jsonSpan struct {
		Trace  string `json:"traceId"`
		ID     string `json:"spanId"`
		Parent string `json:"parentSpanId"`
		Name   string `json:"name"`
		Start  number `json:"startTimeUnixNano"`
		End    number `json:"endTimeUnixNano"`
		Status struct {
			Code json.RawMessage `json:"code"`
		} `json:"status"`
	}
)

// number is one of 64 bits, which JSON has as a text.
type number int64

// UnmarshalJSON implements json.Unmarshaler.
func (n *number) UnmarshalJSON(b []byte) error {
	if text := string(b); text == "null" || text == `""` {
		return nil // of a span that has not ended
	}
	v, err := strconv.ParseInt(strings.Trim(string(b), `"`), 10, 64)
	if err != nil {
		return fmt.Errorf("time %.40s: ns since 1970", b)
	}
	*n = number(v)
	return nil
}

// readJSON reads messages one after the other, or lists of them.
func readJSON(in io.Reader, lists bool, add func(Span)) error {
	left := &io.LimitedReader{R: in, N: maxMessage} // of a message
	d := json.NewDecoder(left)
	n := 1
	isOurs, what := false, ""
	next := func() error {
		var text json.RawMessage
		if err := d.Decode(&text); err != nil {
			return err
		}
		if what == "" {
			what = otherOf(text)
		}
		text = camelled(text)
		var m message
		var much *bounded.Error
		if err := bounded.JSON(text, &m); errors.As(err, &much) {
			return fmt.Errorf("%w: %s", err, smaller)
		} else if err != nil {
			return err
		}
		isOurs = isOurs || m.Resources != nil || m.Batches != nil || m.Trace != nil
		m.each(add)
		n, left.N = n+1, maxMessage
		return nil
	}
	list := func() error {
		if begin, err := d.Token(); err != nil || begin != json.Delim('[') {
			return cmp.Or(err, errors.New("what follows a list is no list"))
		}
		for d.More() {
			if err := next(); err != nil {
				return noEnd(err)
			}
		}
		_, err := d.Token()
		return noEnd(err)
	}
	read := next
	if lists {
		read = list
	}
	for {
		switch err := read(); {
		case err == nil:
		case left.N <= 0:
			return fmt.Errorf("message %d: %w", n, errLarge)
		case errors.Is(err, io.EOF) && !isOurs:
			return fmt.Errorf("it has no spans of OTLP (resourceSpans)%s", what)
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, io.ErrUnexpectedEOF) && n > 1:
			return fmt.Errorf("message %d: %w", n, ErrCut)
		case errors.Is(err, io.ErrUnexpectedEOF):
			return errors.New("message 1: the file ends within it: get all of the file")
		case errors.As(err, new(*json.SyntaxError)):
			return fmt.Errorf("message %d: it is no JSON (%w): have the program or the Collector (otlphttp, file) export OTLP", n, err)
		default:
			return fmt.Errorf("message %d: %w", n, err)
		}
	}
}

// otherOf says what a message of something else is, and what to do; "" if that is not known.
func otherOf(text []byte) string {
	has := func(names ...string) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return !bytes.Contains(text, []byte(`"`+name+`"`)) })
	}
	const export = ", have the program or the Collector (otlphttp, file) export OTLP"
	switch {
	case has("traceID", "operationName"):
		return ": it is of Jaeger's API" + export + ", or ask Jaeger's /api/v3/traces/ID"
	case has("traceId", "id", "timestamp"), has("traceId", "localEndpoint"):
		return ": it is Zipkin's" + export
	case has("SpanContext", "TraceID"), has("context", "trace_id", "start_time"):
		return ": it is what an exporter prints for people (console, stdout)" + export
	case has("traceEvents"):
		return ": it is a trace of a browser (Trace Event Format)"
	case has("resourceLogs"), has("resource_logs"):
		return ": it has logs"
	case has("resourceMetrics"), has("resource_metrics"):
		return ": it has metrics"
	}
	return ""
}

// camelled is a message with the names of fields as the protocol's JSON has them: some exporters write those of its
// protobuf, and the JSON of protobuf takes both.
func camelled(text []byte) []byte {
	if !bytes.Contains(text, []byte(`_spans"`)) {
		return text
	}
	for snake, camel := range map[string]string{
		"resource_spans": "resourceSpans", "scope_spans": "scopeSpans", "instrumentation_library_spans": "instrumentationLibrarySpans",
		"string_value": "stringValue", "trace_id": "traceId", "span_id": "spanId", "parent_span_id": "parentSpanId",
		"start_time_unix_nano": "startTimeUnixNano", "end_time_unix_nano": "endTimeUnixNano",
	} {
		text = bytes.ReplaceAll(text, []byte(`"`+snake+`"`), []byte(`"`+camel+`"`))
	}
	return text
}

// noEnd is an error where the text may not end.
func noEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (m message) each(add func(Span)) {
	all := append(m.Resources, m.Batches...)
	if m.Trace != nil {
		all = append(all, m.Trace.Resources...)
	}
	for _, r := range all {
		service := ""
		for _, a := range r.Resource.Attributes {
			if a.Key == serviceName {
				service = a.Value.Text
			}
		}
		for _, scope := range append(r.Scopes, r.Older...) {
			for _, s := range scope.Spans {
				one := Span{Service: service, Name: s.Name, Start: int64(s.Start), End: int64(s.End), Failed: isFailure(s.Status.Code)}
				if !identify(one.Trace[:], s.Trace) || !identify(one.ID[:], s.ID) {
					one.Trace = TraceID{} // no span
				}
				identify(one.Parent[:], s.Parent)
				add(one)
			}
		}
	}
}

// identify reads an ID: the protocol's JSON has it in hexadecimal, protobuf's own in base64.
func identify(to []byte, text string) bool {
	if decode(to, text) {
		return true
	}
	b, err := base64.StdEncoding.DecodeString(text)
	return err == nil && len(b) == len(to) && copy(to, b) > 0
}

// serviceName is the attribute that names a service (OpenTelemetry's semantic conventions).
const serviceName = "service.name"

func isFailure(code json.RawMessage) bool {
	return string(code) == "2" || string(code) == `"STATUS_CODE_ERROR"`
}
