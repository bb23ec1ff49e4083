package execute

import (
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/archive"
)

// TestRecordedOfOthers: on a device where other programs run, a load is expected to ask for what a browser has asked
// for, and not for what the system was doing meanwhile.
func TestRecordedOfOthers(t *testing.T) {
	const page = "https://page.test/"
	made := func(url, field, value string) *lab.Exchange {
		e := &lab.Exchange{Method: "GET", URL: url, Status: 200}
		e.Request.Header = []lab.HeaderField{{Name: field, Value: value}}
		return e
	}
	browser := []*lab.Exchange{
		made(page, "User-Agent", "Mozilla/5.0 (iPhone)"), made("https://page.test/a.js", "sec-fetch-site", "same-origin"),
	}
	system := []*lab.Exchange{
		made("https://cloud.test/sync", "User-Agent", "CFNetwork/3826"), made("http://crl.test/root.crl", "User-Agent", "securityd"),
	}
	for _, c := range []struct {
		exchanges []*lab.Exchange
		others    bool
		want      int
	}{
		{append(browser, system...), true, 2},
		{append(browser, system...), false, 4},
		{system, true, 2}, // of no browser at all: a program's own recording
	} {
		o := archive.CreateOptions{PageDate: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
		a := archive.New(c.exchanges, nil, []archive.Page{{URL: page}}, o)
		if n, _ := recordedOf(a, page, c.others); n != c.want {
			t.Errorf("of %d exchanges, with others %v, %d are expected; want %d", len(c.exchanges), c.others, n, c.want)
		}
	}
}
