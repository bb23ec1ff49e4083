package match

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"eidetic/internal/lab"
)

// TestNumbers: a long number in a query is a time, or of no meaning, unless the recording shows that it is neither.
func TestNumbers(t *testing.T) {
	wall := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC) // 1793491200
	for _, c := range []struct {
		name, query string // %s is the number
		values      [2]string
		answers     [2]string
		asked       string
		want        lab.Stage
		withoutWall bool
	}{
		{"articles", "ean=%s&lang=de", [2]string{"3012345678901", "1234567890128"}, [2]string{"a", "b"}, "2999999999999", lab.StageMiss, false},
		{"one answer", "visitor=%s&lang=de", [2]string{"3012345678", "1234567890"}, [2]string{"a", "a"}, "2999999999", lab.StageNormalised, false},
		{"one value", "ean=%s&lang=de", [2]string{"3012345678", "3012345678"}, [2]string{"a", "b"}, "2999999999", lab.StageNormalised, false},
		{"times", "since=%s&room=7", [2]string{"1793491201123", "1793491202345"}, [2]string{"a", "b"}, "1793491909123", lab.StageNormalised, false},
		{"a name of chance", "ord=%s&slot=1", [2]string{"3012345678", "1234567890"}, [2]string{"a", "b"}, "2999999999", lab.StageNormalised, false},
		{"no dates", "ean=%s&lang=de", [2]string{"3012345678901", "1234567890128"}, [2]string{"a", "b"}, "2999999999999", lab.StageNormalised, true},
	} {
		var entries []*Entry
		for i, v := range c.values {
			e := &lab.Exchange{ID: fmt.Sprint("e", i), Method: "GET", URL: "https://h.test/item?" + fmt.Sprintf(c.query, v), Status: 200, Wall: wall}
			e.Response.Body = []byte(c.answers[i])
			if c.withoutWall {
				e.Wall = time.Time{}
			}
			entries = append(entries, NewEntry(e, c.answers[i]))
		}
		x := NewIndex(Learn(entries, nil))
		for _, en := range entries {
			x.Add(en)
		}
		got := x.Find(Normal, NewClient(), newTestRequest(t, "https://h.test/item?"+fmt.Sprintf(c.query, c.asked)), http.Header{})
		if got.Stage != c.want {
			t.Errorf("%s: %s after %s is %s (%s), want %s", c.name, c.asked, c.values, got.Stage, got.Why, c.want)
		}
		for i, v := range c.values { // what was recorded is found, whatever the number means
			recorded := x.Find(Normal, NewClient(), newTestRequest(t, "https://h.test/item?"+fmt.Sprintf(c.query, v)), http.Header{})
			if recorded.Entry == nil || c.values[0] != c.values[1] && recorded.Entry.ID != fmt.Sprint("e", i) {
				t.Errorf("%s: %s is answered by %+v, want its own answer", c.name, v, recorded)
			}
		}
	}
}
