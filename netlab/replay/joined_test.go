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
