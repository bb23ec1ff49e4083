// Package otlp reads the traces of back ends, and joins them to the requests that they served. In flow files of the
// OpenTelemetry Protocol (opentelemetry-proto, trace/v1 and collector/trace/v1), which anyone may have written: its
// JSON, one message or many after each other as the Collector's file exporter writes them, or its protobuf, as one
// message or as many with their lengths before them. In flow the requests, each with the ID that it was given in the
// field traceparent (W3C Trace Context); out flow the spans of each, with bounds of when they began after the request.
package otlp

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"eidetic/internal/lab"
)

// Bounds of a file.
const (
	maxFile  = 256 << 20
	maxValue = 32 << 20 // bytes of one message
	maxDepth = 40       // of JSON; the protocol's own is about ten
	maxName  = 300      // bytes of a name
	latest   = 4e18     // ns since 1970: the end of the century
)

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
	switch {
	case err != nil:
		return 0, err
	case first == '{' || first == '[':
		err = readJSON(in, add)
	default:
		err = readProtobuf(in, add)
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
	v, err := strconv.ParseInt(strings.Trim(string(b), `"`), 10, 64)
	if err != nil {
		return fmt.Errorf("time %.40s: ns since 1970", b)
	}
	*n = number(v)
	return nil
}

func readJSON(in io.Reader, add func(Span)) error {
	guard := &depthGuard{r: in}
	d := json.NewDecoder(guard)
	for n := 1; ; n++ {
		guard.left = maxValue
		var raw json.RawMessage
		err := d.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("message %d: %w", n, err)
		}
		list := []json.RawMessage{raw}
		if raw[0] == '[' {
			if err := json.Unmarshal(raw, &list); err != nil {
				return fmt.Errorf("message %d: %w", n, err)
			}
		}
		for _, raw := range list {
			var m message
			if err := json.Unmarshal(raw, &m); err != nil {
				return fmt.Errorf("message %d: %w", n, err)
			}
			m.each(add)
		}
	}
}

func (m message) each(add func(Span)) {
	for _, r := range m.Resources {
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

// depthGuard ends a text that is nested deeper than the protocol is, or whose message is too large.
type depthGuard struct {
	r        io.Reader
	left     int // bytes of this message
	depth    int
	inString bool
	escaped  bool
}

func (g *depthGuard) Read(b []byte) (int, error) {
	if g.left <= 0 {
		return 0, fmt.Errorf("it has more than %d MiB", maxValue>>20)
	}
	n, err := g.r.Read(b[:min(len(b), g.left)])
	g.left -= n
	for _, c := range b[:n] {
		switch {
		case g.escaped:
			g.escaped = false
		case g.inString && c == '\\':
			g.escaped = true
		case c == '"':
			g.inString = !g.inString
		case g.inString:
		case c == '{' || c == '[':
			if g.depth++; g.depth > maxDepth {
				return 0, fmt.Errorf("it is nested more than %d deep", maxDepth)
			}
		case c == '}' || c == ']':
			g.depth--
		}
	}
	return n, err
}
