package replay

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"eidetic/internal/lab"
	"eidetic/netlab/archive"
)

// TestPiecesAreJoined: pieces that hold every byte answer any range, and the whole; others what they hold.
func TestPiecesAreJoined(t *testing.T) {
	var text strings.Builder
	for i := range 300 {
		fmt.Fprintf(&text, "%03d,", i)
	}
	whole := text.String()
	var list []*lab.Exchange
	piece := func(url, etag string, first, last int) {
		list = append(list, &lab.Exchange{
			ID: fmt.Sprint("urn:", len(list)), Order: len(list), Method: "GET", URL: url, Status: 206, Protocol: "http/1.1",
			Request: lab.Message{Header: fields(fmt.Sprintf("Range: bytes=%d-%d", first, last))},
			Response: lab.Message{
				Header: fields(fmt.Sprintf("Content-Range: bytes %d-%d/%d\nETag: %s\nContent-Type: video/mp4", first, last, len(whole), etag)),
				Body:   []byte(whole[first : last+1]),
			},
			Chunks: []lab.Chunk{{Bytes: last + 1 - first}},
		})
	}
	const good, gap, changed = "https://v.test/good.mp4", "https://v.test/gap.mp4", "https://v.test/changed.mp4"
	for _, p := range [][2]int{{900, 1199}, {0, 499}, {400, 899}} { // as a player with its index at the end, with an overlap
		piece(good, `"1"`, p[0], p[1])
	}
	piece(gap, `"1"`, 0, 99)
	piece(gap, `"1"`, 101, 1199)
	piece(changed, `"1"`, 0, 599)
	piece(changed, `"2"`, 600, 1199)
	s, err := NewSession(archive.New(list, nil, nil, archive.CreateOptions{}), Options{Clock: func() lab.Time { return 0 }, Timing: Timing{Mode: TimingNone}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		url, ask, want string
		status         int
	}{
		{good, "bytes=350-950", whole[350:951], 206},
		{good, "bytes=-10", whole[1190:], 206},
		{good, "bytes=0-", whole, 206},
		{good, "", whole, 200},
		{gap, "bytes=50-150", "", 404},
		{gap, "bytes=200-210", whole[200:211], 206},
		{changed, "bytes=500-700", "", 404},
	} {
		r, _ := http.NewRequest("GET", c.url, nil)
		if c.ask != "" {
			r.Header.Set("Range", c.ask)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if got := w.Body.String(); w.Code != c.status || c.want != "" && got != c.want {
			t.Errorf("%s %q: %d with %d bytes, want %d with %d", c.url, c.ask, w.Code, len(got), c.status, len(c.want))
		}
	}
	if got := s.Stats().Asked; got != 2 {
		t.Errorf("%d exchanges count as asked for, want 2: ranges of one address count once", got)
	}
}

// TestRangesOfOddOrigins: a length that is not known, a range that does not exist, ranges that are ignored.
func TestRangesOfOddOrigins(t *testing.T) {
	whole := strings.Repeat("0123456789", 100)
	var list []*lab.Exchange
	add := func(url, asked string, status int, contentRange, body string) {
		list = append(list, &lab.Exchange{
			ID: fmt.Sprint("urn:", len(list)), Order: len(list), Method: "GET", URL: "https://v.test/" + url, Status: status, Protocol: "http/1.1",
			Request:  lab.Message{Header: fields("Range: " + asked)},
			Response: lab.Message{Header: fields("Content-Range: " + contentRange + "\nContent-Type: video/mp4"), Body: []byte(body)},
			Chunks:   []lab.Chunk{{Bytes: len(body)}},
		})
	}
	add("live", "bytes=200-299", 206, "bytes 200-299/*", whole[200:300])
	add("live", "bytes=0-199", 206, "bytes 0-199/*", whole[:200])
	add("live", "bytes=500-", 206, "bytes 500-699/*", whole[500:700])
	add("told", "bytes=0-99", 206, "bytes 0-99/*", whole[:100]) // the length is known from the second answer on
	add("told", "bytes=100-", 206, "bytes 100-999/1000", whole[100:])
	add("some", "bytes=100-199", 206, "bytes 100-199/1000", whole[100:200])
	add("some", "bytes=200-299", 206, "bytes 200-299/1000", whole[200:300])
	add("refused", "bytes=1000-", 416, "bytes */1000", "none")
	add("refused", "bytes=0-99", 206, "bytes 0-99/1000", whole[:100])
	add("secret", "bytes=1000-", 416, "bytes */*", "none")
	add("refused alone", "bytes=5-", 416, "", "none")
	add("ignored", "bytes=100-", 200, "", whole)
	add("from the start", "bytes=0-", 200, "", whole)
	add("odd", "bytes=0-9", 206, "bytes=0-9/1000", whole[:10])
	add("lie", "bytes=0-9", 206, "bytes 0-9/5", whole[:10])
	add("torn", "bytes=0-9", 206, "bytes 0-9/1000", whole[:10])
	add("torn", "bytes=10-19", 206, "bytes 10-19/2000", whole[10:20])
	s, err := NewSession(archive.New(list, nil, nil, archive.CreateOptions{}), Options{Clock: func() lab.Time { return 0 }, Timing: Timing{Mode: TimingNone}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		url, ask     string
		status       int
		contentRange string
		want         string
	}{
		{"live", "bytes=150-250", 206, "bytes 150-250/*", whole[150:251]},
		{"live", "bytes=550-", 206, "bytes 550-699/*", whole[550:700]},
		{"live", "bytes=600-699", 206, "bytes 600-699/*", whole[600:700]},
		{"live", "bytes=250-", 404, "", ""}, // it was never asked for more
		{"live", "bytes=-10", 404, "", ""},
		{"live", "bytes=290-310", 404, "", ""},
		{"told", "bytes=50-150", 206, "bytes 50-150/1000", whole[50:151]},
		{"told", "", 200, "", whole},
		{"told", "bytes=-5", 206, "bytes 995-999/1000", whole[995:]},
		{"told", "bytes=2000-", 416, "bytes */1000", ""},
		{"some", "bytes=150-250", 206, "bytes 150-250/1000", whole[150:251]},
		{"some", "bytes=250-350", 404, "", ""},
		{"some", "bytes=1000-", 416, "bytes */1000", ""},
		{"refused", "bytes=1000-", 416, "bytes */1000", "none"},
		{"refused", "bytes=5000-6000", 416, "bytes */1000", ""},
		{"refused", "bytes=10-19", 206, "bytes 10-19/1000", whole[10:20]},
		{"refused", "bytes=100-199", 404, "", ""},
		{"secret", "bytes=0-9", 404, "", ""},
		{"refused alone", "bytes=5-", 416, "", "none"},
		{"refused alone", "bytes=6-", 404, "", ""},
		{"ignored", "bytes=500-", 200, "", whole},
		{"from the start", "bytes=500-509", 206, "bytes 500-509/1000", whole[500:510]},
		{"odd", "bytes=0-9", 206, "bytes=0-9/1000", whole[:10]},
		{"lie", "bytes=0-9", 206, "bytes 0-9/5", whole[:10]},
		{"lie", "bytes=2-3", 404, "", ""},
		{"torn", "bytes=5-15", 404, "", ""},
	} {
		r, _ := http.NewRequest("GET", "https://v.test/"+strings.ReplaceAll(c.url, " ", "%20"), nil)
		if c.ask != "" {
			r.Header.Set("Range", c.ask)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		got := w.Body.String()
		if w.Code != c.status || c.status != 404 && (w.Header().Get("Content-Range") != c.contentRange || got != c.want) {
			t.Errorf("%s %q: %d %q with %d bytes, want %d %q with %d", c.url, c.ask, w.Code, w.Header().Get("Content-Range"), len(got), c.status, c.contentRange, len(c.want))
		}
	}
}
