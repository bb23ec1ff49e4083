package execute

import (
	"slices"
	"strings"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/plan"
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

// TestCameLate: a page that pauses for longer than a load may be still is told of by what it shows afterwards, and not by
// what it sends, repeats or keeps for later.
func TestCameLate(t *testing.T) {
	const page = "https://page.test/"
	made := func(method, url, referer string, at time.Duration) *lab.Exchange {
		e := &lab.Exchange{Method: method, URL: url, Status: 200, Start: at}
		e.Request.Header = []lab.HeaderField{{Name: "User-Agent", Value: "Mozilla/5.0"}, {Name: "Referer", Value: referer}}
		return e
	}
	worker := made("GET", "https://page.test/sw.js", page, 100*time.Millisecond)
	worker.Request.Header = append(worker.Request.Header, lab.HeaderField{Name: "Service-Worker", Value: "script"})
	system := made("GET", "https://cloud.test/sync", "", 4*time.Second)
	system.Request.Header = nil
	load := []*lab.Exchange{
		made("GET", page, "", 0), worker, made("GET", "https://page.test/poll?n=1", page, 200*time.Millisecond),
		made("GET", "https://page.test/poll?n=2", page, 4*time.Second), made("POST", "https://page.test/beacon", page, 4*time.Second),
		made("GET", "https://page.test/offline", "https://page.test/sw.js", 4*time.Second), made("GET", "https://page.test/favicon.ico", page, 4*time.Second),
		system,
	}
	for _, c := range []struct {
		late  []*lab.Exchange
		rest  float64
		want  int
		pause time.Duration
	}{
		{nil, 2000, 0, 0},
		{[]*lab.Exchange{made("GET", "https://page.test/b.png", page, 3300*time.Millisecond), made("GET", "https://page.test/c.css", page, 3500*time.Millisecond)}, 2000, 2, 3100 * time.Millisecond},
		{[]*lab.Exchange{made("GET", "https://page.test/b.png", page, 1500*time.Millisecond)}, 2000, 0, 0},
		{[]*lab.Exchange{made("GET", "https://page.test/b.png", page, 3300*time.Millisecond)}, 0, 0, 0}, // when it rested is not known
	} {
		o := archive.CreateOptions{PageDate: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
		a := archive.New(append(slices.Clone(load), c.late...), nil, []archive.Page{{URL: page, Rest: c.rest}}, o)
		n, pause := cameLate(a, page)
		if n != c.want || n > 0 && pause != c.pause {
			t.Errorf("with %d files behind a rest at %v ms, %d came late, after %v; want %d, after %v", len(c.late), c.rest, n, pause, c.want, c.pause)
		}
		for still, want := range map[float64]string{1.5: "asked for 2 more files after it had come to rest, 3.1 s after", 4: ""} {
			if c.want == 0 {
				want = ""
			}
			x := &Execution{run: &lab.Run{}, News: News{}}
			x.noteLate(&cellArm{arm: plan.Arm{NamedArm: lab.NamedArm{Arm: lab.Arm{Page: page}}}, of: plan.Cell{Cell: lab.Cell{Plan: lab.Plan{Still: still}}}, recorded: a})
			if got := strings.Join(x.run.Warnings, ""); (want == "") != (got == "") || !strings.Contains(got, want) {
				t.Errorf("with still_s %v and %d files behind a rest, the note is %q; want %q", still, len(c.late), got, want)
			}
		}
	}
}
