package lab

import "testing"

// TestIsOpen: what was still coming when the recording ended is open if it may have no end, and else was cut off.
func TestIsOpen(t *testing.T) {
	for name, c := range map[string]struct {
		dest, kind, length, truncated string
		want                          bool
	}{
		"an event stream":  {"", "text/event-stream", "", "time", true},
		"a script's feed":  {"empty", "application/x-ndjson", "", "time", true},
		"a radio":          {"audio", "audio/mpeg", "", "time", true},
		"a download":       {"empty", "application/zip", "500000", "time", false},
		"a style sheet":    {"style", "text/css", "", "time", false},
		"a document":       {"document", "text/html", "", "time", false},
		"a broken feed":    {"empty", "application/x-ndjson", "", Disconnected, false},
		"a complete feed":  {"empty", "application/x-ndjson", "", "", false},
		"too long a radio": {"audio", "audio/mpeg", "", "length", false},
	} {
		e := Exchange{Status: 200, Truncated: c.truncated, Request: Message{Header: []HeaderField{{Name: "Sec-Fetch-Dest", Value: c.dest}}}}
		e.Response.Header = []HeaderField{{Name: "Content-Type", Value: c.kind}}
		if c.length != "" {
			e.Response.Header = append(e.Response.Header, HeaderField{Name: "Content-Length", Value: c.length})
		}
		if got := e.IsOpen(); got != c.want {
			t.Errorf("%s: IsOpen() = %v, want %v", name, got, c.want)
		}
	}
}
