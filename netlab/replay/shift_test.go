package replay

import (
	"net/http"
	"testing"
	"time"

	"eidetic/internal/lab"
)

// TestLooseTimes: times as servers write them and browsers read them.
func TestLooseTimes(t *testing.T) {
	for text, want := range map[string]string{
		"Wed, 21 Oct 2026 07:28:00 GMT":           "2026-10-21 07:28:00",
		"Wed, 21-Oct-2026 07:28:00 GMT":           "2026-10-21 07:28:00",
		"Wed, 21-Oct-26 07:28:00 GMT":             "2026-10-21 07:28:00",
		"Wednesday, 21-Oct-99 07:28:00 GMT":       "1999-10-21 07:28:00",
		"Wed Oct 21 2026 07:28:00 GMT+0000 (UTC)": "2026-10-21 07:28:00",
		"Wed Oct 21 07:28:00 2026":                "2026-10-21 07:28:00",
		"21 October 2026 7:28:0":                  "2026-10-21 07:28:00",
		"Wed, 21 Oct 2026 07:28:00 -0000":         "2026-10-21 07:28:00",
		"wed, 21 oct 2026 07:28:00 utc":           "2026-10-21 07:28:00",
		"Fri, 31 Dec 9999 23:59:59 GMT":           "9999-12-31 23:59:59",
		"2026-10-21T07:28:00Z":                    "", // nor do browsers read it
		"Wed, 31 Feb 2026 07:28:00 GMT":           "",
		"Wed, 21 Oct 2026 24:28:00 GMT":           "",
		"Wed, 21 Oct 2026":                        "",
		"0":                                       "",
		"-1":                                      "",
		"":                                        "",
		"Wed, 21 Oct 20260 07:28:00 GMT":          "",
		"120":                                     "",
	} {
		got := ""
		if at, err := looseTime(text); err == nil {
			got = at.Format(time.DateTime)
		}
		if got != want {
			t.Errorf("looseTime(%q) = %q, want %q", text, got, want)
		}
	}
}

// TestDatesStayReadable: a date moves, and one that would move beyond the year 9999 stays.
func TestDatesStayReadable(t *testing.T) {
	recorded := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	year := shifter{recorded: recorded, delta: 365 * 24 * time.Hour, steady: 365 * 24 * time.Hour}
	for cookie, want := range map[string]string{
		"a=b; expires=Fri, 31-Dec-9999 23:59:59 GMT; path=/": "a=b; expires=Fri, 31-Dec-9999 23:59:59 GMT; path=/",
		"a=b; Expires=Sat, 03-Jan-26 03:04:05 GMT":           "a=b; Expires=Sun, 03 Jan 2027 03:04:05 GMT",
		"a=b; Expires=Sat Jan 03 2026 03:04:05 GMT+0000":     "a=b; Expires=Sun, 03 Jan 2027 03:04:05 GMT",
	} {
		if got := year.cookie(cookie); got != want {
			t.Errorf("cookie(%q) = %q, want %q", cookie, got, want)
		}
	}
	const at = "Expires: Fri, 31 Dec 9999 23:59:59 GMT\nRetry-After: Fri, 02 Jan 2026 03:05:05 GMT\nDate: Fri, 02 Jan 2026 03:04:05 UTC"
	a := build(exchange{ask: "GET https://a.example/x", answer: "x", header: at},
		exchange{ask: "GET https://a.example/y", answer: "y", header: "Retry-After: 120\nExpires: -1"})
	k := newAsker(t, a, Options{Wall: recordedAt.Add(year.delta), Clock: func() lab.Time { return 0 }, Timing: Timing{Mode: TimingNone}})
	first, _, _ := k.ask("192.0.2.1", "GET https://a.example/x", "", "")
	second, _, _ := k.ask("192.0.2.1", "GET https://a.example/y", "", "")
	for _, c := range []struct {
		resp       *http.Response
		name, want string
	}{
		{first, "Expires", "Fri, 31 Dec 9999 23:59:59 GMT"}, {first, "Retry-After", "Sat, 02 Jan 2027 03:05:05 GMT"},
		{first, "Date", "Sat, 02 Jan 2027 03:04:05 GMT"}, {second, "Retry-After", "120"}, {second, "Expires", "-1"},
	} {
		if got := c.resp.Header.Get(c.name); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
