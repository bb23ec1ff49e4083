package otlp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"eidetic/internal/rigs/testlab"
)

const (
	traceHex = "0af7651916cd43dd8448eb211c80319c"
	spanHex  = "b7ad6b7169203331"
)

// ofJSON is what the Collector's file exporter writes of a span: one message on a line.
func ofJSON(service, id, parent, name string, start, end int64, code string) string {
	return fmt.Sprintf(`{"resourceSpans":[{"resource":{"attributes":[{"key":"host.name","value":{"stringValue":"h"}},{"key":"service.name","value":{"stringValue":%q}}]},`+
		`"scopeSpans":[{"scope":{},"spans":[{"traceId":%q,"spanId":%q,"parentSpanId":%q,"name":%q,"kind":2,"startTimeUnixNano":"%d","endTimeUnixNano":"%d",`+
		`"attributes":[{"key":"n","value":{"intValue":"7"}}],"status":%s}]}]}]}`, service, traceHex, id, parent, name, start, end, code)
}

// ofProtobuf is the same in protobuf.
func ofProtobuf(service string, id, parent SpanID, name string, start, end uint64, code uint64) []byte {
	part := func(b []byte, n protowire.Number, v []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), v)
	}
	fixed := func(b []byte, n protowire.Number, v uint64) []byte {
		return protowire.AppendFixed64(protowire.AppendTag(b, n, protowire.Fixed64Type), v)
	}
	var trace TraceID
	decode(trace[:], traceHex)
	value := part(nil, fieldText, []byte(service))
	attribute := part(part(nil, fieldKey, []byte(serviceName)), fieldValue, value)
	span := part(part(part(part(nil, fieldTrace, trace[:]), fieldSpan, id[:]), fieldParent, parent[:]), fieldName, []byte(name))
	span = fixed(fixed(span, fieldStart, start), fieldEnd, end)
	span = part(span, fieldStatus, protowire.AppendVarint(protowire.AppendTag(nil, fieldCode, protowire.VarintType), code))
	scope := part(nil, fieldSpans, span)
	resource := part(part(nil, fieldResource, part(nil, fieldAttributes, attribute)), fieldScopeSpans, scope)
	return part(nil, fieldResourceSpans, resource)
}

// TestRead: the same spans in JSON, one message or many, and in protobuf, with and without lengths.
func TestRead(t *testing.T) {
	var trace TraceID
	decode(trace[:], traceHex)
	parent, one, two := SpanID{}, SpanID{1}, SpanID{2}
	decode(parent[:], spanHex)
	want := []Span{
		{Trace: trace, ID: one, Parent: parent, Service: "shop", Name: "GET /", Start: 1000, End: 5000, Failed: true},
		{Trace: trace, ID: two, Parent: one, Service: "stock", Name: "look", Start: 2000, End: 3000},
	}
	first, second := ofJSON("shop", "0100000000000000", spanHex, "GET /", 1000, 5000, `{"code":2}`), ofJSON("stock", "0200000000000000", "0100000000000000", "look", 2000, 3000, `{}`)
	a, b := ofProtobuf("shop", one, parent, "GET /", 1000, 5000, 2), ofProtobuf("stock", two, one, "look", 2000, 3000, 1)
	framed := func(messages ...[]byte) (out []byte) {
		for _, m := range messages {
			out = append(binary.BigEndian.AppendUint32(out, uint32(len(m))), m...)
		}
		return out
	}
	for name, text := range map[string]string{
		"lines": first + "\n" + second + "\n", "a list": "\ufeff [" + first + "," + second + "]", "protobuf": string(a) + string(b), "framed protobuf": string(framed(a, b)),
		"Tempo's API": strings.ReplaceAll(first+second, "resourceSpans", "batches"), "Tempo's API 2": `{"trace":` + first + `}{"trace":` + second + "}",
		"names of protobuf": strings.NewReplacer("resourceSpans", "resource_spans", "scopeSpans", "scope_spans", "traceId", "trace_id", "spanId", "span_id",
			"parentSpanId", "parent_span_id", "startTimeUnixNano", "start_time_unix_nano", "endTimeUnixNano", "end_time_unix_nano", "stringValue", "string_value").
			Replace(first + second),
		"one that has not ended":                      first + second + strings.Replace(ofJSON("x", "0300000000000000", "", "y", 5, 6, "{}"), `"6"`, "null", 1),
		"one that has no time, and one without an ID": first + second + ofJSON("x", "0300000000000000", "", "y", 0, 0, "{}") + ofJSON("x", "", "", "y", 5, 6, "{}"),
	} {
		var got []Span
		left, err := Read(strings.NewReader(text), func(s Span) { got = append(got, s) })
		if diff := cmp.Diff(want, got); diff != "" || err != nil || (left != 0) != strings.HasPrefix(name, "one") {
			t.Errorf("%s: %d left, %v (-want +got):\n%s", name, left, err, diff)
		}
	}
	for says, text := range map[string]string{
		"it is empty": "", "nested more than": strings.Repeat(`{"a":`, 60) + "1" + strings.Repeat("}", 60), "message 2": first + "{", "it is no OTLP": "hello, world",
		"message 1: it has 1 bytes, and 0 are there": "\x00\x00\x00\x01", "message 2: the file ends within it: it has 9 bytes, and 3 are there": string(framed(a)) + "\x00\x00\x00\x09abc",
		"message 2: the file ends within it": string(framed(a)) + "\x00", "ns since 1970": strings.Replace(first, `"1000"`, `"soon"`, 1), "get all of the file": first[:40],
		"it is no JSON": "{\n  resource: {}\n}", "prints for people": `{"Name":"x","SpanContext":{"TraceID":"a"}}`, "the protocol has not": "\xfd7zXZ\x00",
		"it is of Jaeger's API": `{"data":[{"traceID":"a","spans":[{"operationName":"x"}]}]}`, "gunzip": "\x1f\x8b\x08\x00",
		"it is Zipkin's": `[{"traceId":"a","id":"b","timestamp":1}]`, "no spans of OTLP": `{}`, "it has logs": `{"resourceLogs":[]}`,
		"no list": "[" + first + "]" + second, "a text stands where fields": `{"resourceSpans":[{"resource":"shop"}]}`,
	} {
		if _, err := Read(strings.NewReader(text), func(Span) {}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("Read(%.30q) = %v, want an error that says %q", text, err, says)
		}
	}
}

// TestCutOff: what is whole of a file that ends within a message is read.
func TestCutOff(t *testing.T) {
	first := ofJSON("shop", "0100000000000000", "", "GET /", 1000, 5000, `{}`)
	one := ofProtobuf("shop", SpanID{1}, SpanID{}, "GET /", 1000, 5000, 1)
	framed := append(binary.BigEndian.AppendUint32(nil, uint32(len(one))), one...)
	for name, text := range map[string]string{
		"lines": first + "\n" + first[:50], "a list": "[" + first + ",", "framed": string(framed) + string(framed[:20]), "in a length": string(framed) + "\x00",
	} {
		n := 0
		if _, err := Read(strings.NewReader(text), func(Span) { n++ }); n != 1 || !errors.Is(err, ErrCut) || !strings.Contains(err.Error(), "message 2") {
			t.Errorf("%s: %d spans, %v; want the one, and ErrCut of message 2", name, n, err)
		}
	}
}

// endless is a text, and then another again and again.
func endless(head, again string) io.Reader {
	return io.MultiReader(strings.NewReader(head), &repeated{text: again})
}

type repeated struct {
	text string
	at   int
}

func (r *repeated) Read(b []byte) (int, error) {
	n := copy(b, r.text[r.at:])
	r.at = (r.at + n) % len(r.text)
	return n, nil
}

// TestReadBounds: a file that is larger than a file or a message may be is refused with the bound that docs/timeline.md
// has, and one of empty spans without number, of two or three bytes each, takes no more memory than a message has.
func TestReadBounds(t *testing.T) {
	const most = 5 * maxMessage // what a buffer that grows to a message takes in all
	document, err := os.ReadFile("../../../docs/timeline.md")
	if want := fmt.Sprintf("A file may have %d MiB, and a message %d MiB", maxFile>>20, maxMessage>>20); err != nil || !strings.Contains(string(document), want) {
		t.Errorf("docs/timeline.md does not say %q: %v", want, err)
	}
	part := func(n protowire.Number, v []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, n, protowire.BytesType), v)
	}
	long, fields := strings.Repeat("x", 1<<20), strings.Repeat("\x28\x01", 8<<10)
	tooMany := strings.Repeat("{},", 5_000_000) + "{}]"
	for _, tt := range []struct {
		name string
		file io.Reader
		says string
	}{
		{"a file", endless("", "\x00\x10\x00\x04\x0a\x80\x80\x40"+long), "it has more than 256 MiB"},
		{"a message of JSON", endless(`{"a":"`, long), "message 1: it has more than 32 MiB"},
		{"a message of a list", endless(`[{},{"a":"`, long), "message 2: it has more than 32 MiB"},
		{"a list that has no end", endless("[", strings.Repeat(" ", 1<<20)), "message 1: it has more than 32 MiB"},
		{"a message of protobuf", endless("", fields), "it has more than 32 MiB"},
		{"a message of protobuf with its length", endless("\x03\x00\x00\x00", long), "message 1: it has more than 32 MiB"},
		{"spans of JSON", strings.NewReader(`{"resourceSpans":[{"scopeSpans":[{"spans":[` + tooMany + "}]}]}"), "values: have the exporter"},
		{"attributes of JSON", strings.NewReader(`{"resourceSpans":[{"resource":{"attributes":[` + tooMany + "}}]}"), "values: have the exporter"},
		{"spans of protobuf", bytes.NewReader(part(fieldResourceSpans, part(fieldScopeSpans, bytes.Repeat(part(fieldSpans, nil), 5_000_000)))), ""},
		{"scopes of protobuf", bytes.NewReader(part(fieldResourceSpans, bytes.Repeat(part(fieldScopeSpans, nil), 5_000_000))), ""},
	} {
		testlab.Bounded(t, most, func() {
			if _, err := Read(tt.file, func(Span) {}); (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%s: Read() = %v, want an error that says %q", tt.name, err, tt.says)
			}
		})
	}
}

// TestTraceparent: the field as the standard has it, with what later versions may add.
func TestTraceparent(t *testing.T) {
	for field, want := range map[string]bool{
		"00-" + traceHex + "-" + spanHex + "-01": true, " 01-" + traceHex + "-" + spanHex + "-01-more": true, "ff-" + traceHex + "-" + spanHex + "-01": false,
		"00-" + strings.Repeat("0", 32) + "-" + spanHex + "-01": false, "00-" + traceHex + "-" + strings.Repeat("0", 16) + "-01": false, "": false, "00-x-y-01": false,
	} {
		if _, _, ok := Traceparent(field); ok != want {
			t.Errorf("Traceparent(%q) is read: %t, want %t", field, ok, want)
		}
	}
}

// TestPlaced: a back end whose clocks are days away, each its own: a span lies in its request, what it asks for in it,
// and all requests together say how the clocks lie. No span is put before the request that it serves.
func TestPlaced(t *testing.T) {
	const shopAhead, stockBehind = 86400e9, -3600e9 // of the box
	var requests []Request
	var spans []Span
	for i := range int64(20) {
		r := Request{Trace: TraceID{1, byte(i)}, Parent: SpanID{9, byte(i)}, Sent: 1e18 + i*100e6, Took: 50e6}
		requests = append(requests, r)
		// It takes 20 ms and begins between 0.5 and 29.5 ms after its request; stock is asked 5 ms later, for 10 ms.
		begun := r.Sent + 5e5 + i*29e6/19
		spans = append(spans, Span{Trace: r.Trace, ID: SpanID{1, byte(i)}, Parent: r.Parent, Service: "shop", Name: "serve", Start: begun + shopAhead, End: begun + 20e6 + shopAhead},
			Span{Trace: r.Trace, ID: SpanID{2, byte(i)}, Parent: SpanID{1, byte(i)}, Service: "stock", Name: "look", Start: begun + 5e6 + stockBehind, End: begun + 15e6 + stockBehind})
	}
	j := NewJoiner(requests)
	for _, s := range spans {
		j.Add(s)
	}
	j.Add(spans[0]) // told twice
	j.Add(Span{Trace: TraceID{7}, ID: SpanID{1}, Start: 1, End: 2})
	got := j.Placed()
	if len(got) != 40 || j.Others != 1 || j.More != 0 {
		t.Fatalf("%d spans are placed, %d are of other traces; want 40 and 1", len(got), j.Others)
	}
	for _, p := range got {
		truth := int64(5e5) + int64(p.Request)*29e6/19
		within := int64(2e6)
		if p.Service == "stock" {
			truth, within = truth+5e6, 13e6 // by how much less it takes than what asks for it, and by what that is known
		}
		if p.Earliest > truth || p.Latest < truth || p.Latest-p.Earliest > within {
			t.Errorf("request %d, %s: %d to %d µs after it was sent, want bounds of at most %d µs around %d", p.Request, p.Service, p.Earliest/1e3, p.Latest/1e3, within/1e3, truth/1e3)
		}
	}
	// A service's clock that was set in between is known less well, and still about.
	j = NewJoiner(requests[:2])
	late := spans[2]
	late.Start, late.End = late.Start+1e12, late.End+1e12
	for _, s := range []Span{spans[0], late} {
		j.Add(s)
	}
	if got := j.Placed(); len(got) != 2 || got[0].Earliest < 0 || got[1].Latest-got[1].Earliest < 900e9 {
		t.Errorf("with a clock that was set: %+v", got)
	}
	// What is said of it does not depend on the order of requests, and no request makes it narrower than where it was.
	j = NewJoiner(requests[:3])
	for i := range 3 {
		jumped := spans[2*i]
		jumped.Start, jumped.End = jumped.Start+int64(i)*1e12, jumped.End+int64(i)*1e12
		j.Add(jumped)
	}
	for range 20 {
		for i, p := range j.Placed() {
			if truth := int64(5e5) + int64(i)*29e6/19; p.Request != i || p.Earliest > truth || p.Latest < truth {
				t.Fatalf("with a clock that was set twice, request %d is at %d to %d µs, want bounds around %d", p.Request, p.Earliest/1e3, p.Latest/1e3, truth/1e3)
			}
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(ofJSON("shop", "0100000000000000", spanHex, "GET /", 1000, 5000, `{"code":2}`)))
	f.Add(ofProtobuf("shop", SpanID{1}, SpanID{2}, "GET /", 1000, 5000, 2))
	f.Add([]byte("\x00\x00\x00\x02\x0a\x00"))
	f.Add([]byte(`[{"resourceSpans":[{}]},{}]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer testlab.Input(t)()
		j := NewJoiner([]Request{{Trace: TraceID{1}, Parent: SpanID{1}, Sent: 5, Took: 7}})
		_, _ = Read(bytes.NewReader(b), func(s Span) { // what is wrong is an error
			if s.Start <= 0 || s.End < s.Start || len(s.Name) > maxName || len(s.Service) > maxName {
				t.Errorf("%+v was read", s)
			}
			s.Trace = TraceID{1}
			j.Add(s)
		})
		for _, p := range j.Placed() {
			if p.Latest < p.Earliest {
				t.Errorf("%+v", p)
			}
		}
	})
}
