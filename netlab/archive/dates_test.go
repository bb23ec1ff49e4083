package archive

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestDatesOfRecords: records whose dates are written as old tools do, or only to a part, have them, and their order.
func TestDatesOfRecords(t *testing.T) {
	dates := []string{
		"2026-03-01T10:00:05.123456789Z", "20260301100004", "2026-03-01T10:00:03", "2026-03-01T10:00Z", "2026-03-01", "2026", " 2026-03-01T10:00:02Z ",
	}
	var records [][2]string
	for i, date := range dates {
		records = append(records, [2]string{
			fmt.Sprintf("WARC-Type: response\nWARC-Target-URI: http://a.example/%d\nWARC-Date: %s", i, date), "HTTP/1.1 200 OK\r\n\r\nx",
		})
	}
	data := warcText(records...)
	a, err := OpenReader(bytes.NewReader(data), int64(len(data)), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	want := []struct{ path, at string }{
		{"/5", "2026-01-01T00:00:00Z"}, {"/4", "2026-03-01T00:00:00Z"}, {"/3", "2026-03-01T10:00:00Z"}, {"/6", "2026-03-01T10:00:02Z"},
		{"/2", "2026-03-01T10:00:03Z"}, {"/1", "2026-03-01T10:00:04Z"}, {"/0", "2026-03-01T10:00:05.123456789Z"},
	}
	if len(a.Exchanges()) != len(want) {
		t.Fatalf("%d exchanges; want %d", len(a.Exchanges()), len(want))
	}
	for i, e := range a.Exchanges() {
		if at := e.Wall.Format(time.RFC3339Nano); !strings.HasSuffix(e.URL, want[i].path) || at != want[i].at {
			t.Errorf("exchange %d is %s of %s; want %s of %s", i, e.URL, at, want[i].path, want[i].at)
		}
	}
}

// TestTunnels: proxies keep the requests that open tunnels through them, which are no answers of the page's.
func TestTunnels(t *testing.T) {
	entry := func(method, url, text string) string {
		return fmt.Sprintf(`{"startedDateTime":"2026-03-01T10:00:00Z","time":1,"request":{"method":%q,"url":%q,"headers":[]},`+
			`"response":{"status":200,"headers":[],"content":{"size":%d,"mimeType":"text/html","text":%q}}}`, method, url, len(text), text)
	}
	har := `{"log":{"entries":[` + entry("CONNECT", "https://a.example/", "") + "," + entry("GET", "https://a.example/", "<p>x") + `]}}`
	a, err := OpenReader(strings.NewReader(har), int64(len(har)), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Exchanges()) != 1 || a.Exchanges()[0].Method != "GET" || a.Lost() != 0 {
		t.Errorf("%d exchanges, %d lost; want the GET alone, and nothing lost", len(a.Exchanges()), a.Lost())
	}
}

// TestFolder: of a folder it is said what to do.
func TestFolder(t *testing.T) {
	if _, err := Open(t.TempDir()); err == nil || !strings.Contains(err.Error(), "it is a folder: name a file in it") {
		t.Errorf("Open(a folder) = %v; want what to do", err)
	}
}
