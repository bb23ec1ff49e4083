package archive

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

// netText writes a value as mitmproxy does.
func netText(v any) string {
	text, kind := "", byte('~')
	switch v := v.(type) {
	case string:
		text, kind = v, ';'
	case []byte:
		text, kind = string(v), ','
	case int:
		text, kind = strconv.Itoa(v), '#'
	case float64:
		text, kind = strconv.FormatFloat(v, 'f', -1, 64), '^'
	case bool:
		text, kind = strconv.FormatBool(v), '!'
	case netString:
		text, kind = string(v.text), v.kind
	case []any:
		kind = ']'
		for _, one := range v {
			text += netText(one)
		}
	case fields:
		kind = '}'
		for i, one := range v {
			if name, ok := one.(string); ok && i%2 == 0 {
				text += netText(name)
				continue
			}
			text += netText(one)
		}
	}
	return fmt.Sprintf("%d:%s%c", len(text), text, kind)
}

// fields are names and values in turn.
type fields []any

// flowText is a flow whose request, response and own fields are these and more.
func flowText(request, response, own fields) string {
	head := []any{[]any{[]byte("Host"), []byte("m.test")}}
	all := fields{"version", 20, "type", "http", "error", nil,
		"request", append(fields{"method", []byte("GET"), "scheme", []byte("https"), "authority", []byte(""), "path", []byte("/a?b=1"), "host", "192.0.2.7", "port", 443,
			"http_version", []byte("HTTP/2.0"), "headers", head, "content", []byte(""), "trailers", nil, "timestamp_start", 1772359200.25}, request...),
		"server_conn", fields{"peername", []any{"192.0.2.7", 443}, "tls_version", "TLSv1.2"},
	}
	var answer any
	if response != nil {
		answer = append(fields{"status_code", 200, "reason", []byte("OK"), "http_version", []byte("HTTP/2.0"), "headers", []any{
			[]any{[]byte("Content-Type"), []byte("text/plain")}, []any{[]byte("Transfer-Encoding"), []byte("chunked")},
		}, "content", []byte("body"), "trailers", []any{[]any{[]byte("X"), []byte("y")}}, "timestamp_start", 1772359200.5, "timestamp_end", 1772359201.25}, response...)
	}
	return netText(append(append(all, "response", answer), own...))
}

func TestFlows(t *testing.T) {
	upgrade := []any{[]any{[]byte("Upgrade"), []byte("websocket")}, []any{[]byte("Sec-WebSocket-Extensions"), []byte("permessage-deflate")}}
	message := func(opcode int, isDevice bool, text string, at float64) any {
		return []any{opcode, isDevice, []byte(text), at, false, false}
	}
	text := flowText(nil, fields{}, nil) +
		flowText(fields{"path", []byte("/ws")}, fields{"status_code", 101, "headers", upgrade}, fields{"websocket", fields{
			"messages", []any{message(1, true, "hi", 1772359201), message(2, false, "\x00\x01", 1772359202)}, "closed_by_client", false, "close_code", 1000,
			"close_reason", "bye", "timestamp_end", 1772359203.0,
		}}) +
		flowText(fields{"path", []byte("/streamed")}, fields{"content", nil}, nil) +
		flowText(fields{"path", []byte("/failed")}, nil, fields{"error", fields{"msg", "Connection killed."}}) +
		flowText(fields{"path", []byte("/refused")}, nil, fields{"error", fields{"msg", "[Errno 111] Connect call failed ('192.0.2.7', 443)", "timestamp", 1772359200.75}}) +
		flowText(fields{"method", []byte("CONNECT")}, fields{}, nil) +
		netText(fields{"version", 20, "type", "tcp"}) +
		flowText(fields{"host", "", "headers", []any{}, "path", []byte("/nowhere")}, fields{}, nil)
	a := openOdd(t, text)
	got := byURL(a)
	e := got["https://m.test/a?b=1"]
	if e == nil {
		t.Fatalf("read %v; want the first flow", got)
	}
	if string(e.Response.Body) != "body" || e.Protocol != "h2" || e.TLS != "tls/1.2" || e.Server.String() != "192.0.2.7:443" || e.FirstByte != 250*time.Millisecond ||
		len(e.Chunks) != 1 || e.Chunks[0] != (lab.Chunk{At: time.Second, Bytes: 4}) || len(e.Response.Trailer) != 1 || e.Response.Get("Transfer-Encoding") != "" ||
		!e.Wall.Equal(time.Date(2026, 3, 1, 10, 0, 0, 250e6, time.UTC)) {
		t.Errorf("the first flow is %+v", e)
	}
	ws := got["https://m.test/ws"]
	if ws == nil || len(ws.Socket) != 3 || !ws.Socket[0].Device || string(ws.Socket[1].Data) != "\x82\x02\x00\x01" || !ws.OriginClosed ||
		string(ws.Socket[2].Data) != "\x88\x05\x03\xe8bye" || ws.Socket[1].At != 1750*time.Millisecond || ws.Response.Get("Sec-WebSocket-Extensions") != "" {
		t.Errorf("the WebSocket is %+v", ws)
	}
	if e := got["https://m.test/streamed"]; e == nil || e.Truncated == "" {
		t.Errorf("the body that was not kept is %+v; want it cut off", e)
	}
	if e := got["https://m.test/refused"]; e == nil || !e.IsFailed() || e.FirstByte != 500*time.Millisecond {
		t.Errorf("the request whose connection was refused is %+v; want it failed", e)
	}
	told := strings.Join(a.Warnings(), "\n")
	for _, want := range []string{"Connection killed.", "a tunnel", `not HTTP but "tcp"`, "stream_large_bodies", "Connect call failed", "no address of http"} {
		if !strings.Contains(told, want) {
			t.Errorf("told %q; want %q", told, want)
		}
	}
	if len(got) != 4 || a.Lost() != 1 || a.Options().Software != "mitmproxy" {
		t.Errorf("read %d exchanges of %s and lost %d; want 4 of mitmproxy, and 1", len(got), a.Options().Software, a.Lost())
	}
	cut := openOdd(t, text[:len(text)-9])
	if told := strings.Join(cut.Warnings(), "\n"); len(cut.Exchanges()) != 4 || cut.Lost() != 1 || !strings.Contains(told, "after 7 whole flows") {
		t.Errorf("of a file that is cut off, %d exchanges, lost %d, told %q", len(cut.Exchanges()), cut.Lost(), told)
	}
	// Older versions have bytes as names, and a size that no file has is refused at once.
	if a := openOdd(t, strings.NewReplacer("7:version;", "7:version,", "4:type;", "4:type,").Replace(flowText(nil, fields{}, nil))); len(a.Exchanges()) != 1 {
		t.Errorf("names in bytes: %d exchanges; want 1", len(a.Exchanges()))
	}
	huge := "99999999999:7:version;"
	if _, err := OpenReader(strings.NewReader(huge), int64(len(huge)), Limits{}); !errors.Is(err, errLimit) {
		t.Errorf("a flow of 100 GB: %v; want the limit", err)
	}
}

// FuzzFlows: whatever follows on the beginning of flows takes little memory, and what is read of it can be exported.
func FuzzFlows(f *testing.F) {
	f.Add(flowText(nil, fields{}, nil) + flowText(fields{"path", []byte("/ws")}, fields{"status_code", 101}, fields{"websocket", fields{"messages", []any{}}}))
	f.Add("20:7:version;2:20#}")
	f.Add("30:7:version;0:~4:type;4:http;}")
	f.Fuzz(func(t *testing.T, text string) {
		var a *Archive
		var err error
		if !flows.MatchString(text) {
			return
		}
		testlab.Bounded(t, 512<<20, func() { a, err = openText(t, text) })
		if err == nil {
			exported(t, a)
		}
	})
}
