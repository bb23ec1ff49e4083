package replay

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
)

// TestPreconditions: a condition on the state of a resource that the recording does not have is
// answered with 412, and the log says so.
func TestPreconditions(t *testing.T) {
	const date = "Thu, 01 Jan 2026 03:04:05 GMT"
	a := build(
		exchange{ask: "GET https://a.test/doc", header: "ETag: \"v1\"\nLast-Modified: " + date + "\nContent-Type: text/plain", answer: "one"},
		exchange{ask: "PUT https://a.test/doc", with: "If-Match: \"v1\"", body: "two", header: "ETag: \"v2\"\nLast-Modified: Fri, 02 Jan 2026 03:04:05 GMT"},
		exchange{ask: "PUT https://a.test/free", body: "two", header: "ETag: \"v2\""},
		exchange{ask: "PUT https://a.test/dated", with: "If-Unmodified-Since: " + date, body: "x", answer: "dated"},
		exchange{ask: "GET https://a.test/weak", header: "ETag: W/\"v1\"", answer: "weak"},
		exchange{ask: "PUT https://a.test/lost", with: "If-Match: \"v1\"", body: "x", status: 412, answer: "too late"},
		exchange{ask: "DELETE https://a.test/two", with: "If-Match: \"v1\"", answer: "first"},
		exchange{ask: "DELETE https://a.test/two", with: "If-Match: \"v2\"", answer: "second"},
	)
	year := 365 * 24 * time.Hour
	k := newAsker(t, a, Options{Wall: recordedAt.Add(year), Clock: func() lab.Time { return 0 }, Timing: Timing{Mode: TimingNone}})
	for _, c := range []struct {
		ask, with, body string
		status          int
		text            string
	}{
		{"GET https://a.test/doc", `If-Match: "v1"`, "", 200, "one"},
		{"GET https://a.test/doc", `If-Match: "v0", "v1"`, "", 200, "one"},
		{"GET https://a.test/doc", "If-Match: *", "", 200, "one"},
		{"GET https://a.test/doc", `If-Match: "v2"`, "", 412, ""},
		{"GET https://a.test/doc", "If-Match: \"v2\"\nRange: bytes=0-1", "", 412, ""},
		{"GET https://a.test/doc", "If-Match: \"v2\"\nIf-None-Match: \"v1\"", "", 412, ""},
		{"GET https://a.test/doc", "If-Match: \"v1\"\nIf-None-Match: \"v1\"", "", 304, ""},
		{"GET https://a.test/doc", "If-Unmodified-Since: Fri, 01 Jan 2027 03:04:05 GMT", "", 200, "one"}, // as the device got it
		{"GET https://a.test/doc", "If-Unmodified-Since: " + date, "", 412, ""},
		{"GET https://a.test/doc", "If-Unmodified-Since: yesterday", "", 200, "one"},
		{"GET https://a.test/weak", `If-Match: W/"v1"`, "", 412, ""}, // a weak tag never matches
		{"PUT https://a.test/doc", `If-Match: "v1"`, "two", 200, ""},
		{"PUT https://a.test/doc", `If-Match: "v0"`, "two", 412, ""},
		{"PUT https://a.test/free", `If-Match: "v0"`, "two", 200, ""}, // nothing is known of it
		{"PUT https://a.test/dated", "If-Unmodified-Since: Fri, 01 Jan 2027 03:04:05 GMT", "x", 200, "dated"},
		{"PUT https://a.test/dated", "If-Unmodified-Since: Thu, 31 Dec 2026 03:04:05 GMT", "x", 412, ""},
		{"PUT https://a.test/lost", `If-Match: "v1"`, "x", 412, "too late"},
		{"DELETE https://a.test/two", `If-Match: "v2"`, "", 200, "second"},
	} {
		resp, text, line := k.ask("192.0.2.1", c.ask, c.with, c.body)
		if resp.StatusCode != c.status || text != c.text {
			t.Errorf("%s %q: %d %q; want %d %q", c.ask, c.with, resp.StatusCode, text, c.status, c.text)
		}
		if isOurs := c.status == 412 && c.text == ""; isOurs != strings.HasPrefix(line.Why, "412, since If-") {
			t.Errorf("%s %q: the log says %q", c.ask, c.with, line.Why)
		}
		if c.status == http.StatusPreconditionFailed && c.text == "" && (resp.Header.Get("Content-Length") != "0" || resp.Header.Get("Content-Type") != "") {
			t.Errorf("%s %q: the 412 has the header %v; want no content", c.ask, c.with, resp.Header)
		}
	}
}
