package replay

import (
	"net/netip"
	"strings"
	"testing"

	"eidetic/internal/lab"
	"eidetic/netlab/archive"
)

// TestUses: of several answers for one URL a request gets that for its own use, in whatever order a page asks, and what
// nobody recorded is no miss if no page can have asked for it.
func TestUses(t *testing.T) {
	const (
		picture  = "Sec-Fetch-Dest: image\nSec-Fetch-Mode: no-cors\nAccept: image/*"
		script   = "Sec-Fetch-Dest: empty\nSec-Fetch-Mode: cors\nOrigin: https://a.example\nAccept: */*"
		prefetch = "Sec-Fetch-Dest: document\nSec-Purpose: prefetch"
		visit    = "Sec-Fetch-Dest: document\nSec-Fetch-Mode: navigate"
		plain    = "Content-Type: text/plain"
	)
	a := build(
		exchange{ask: "GET https://b.example/logo", with: picture, answer: "no origin may read it"},
		exchange{ask: "GET https://b.example/logo", with: script, answer: "an origin may", header: "Vary: Origin"},
		exchange{ask: "GET https://a.example/next", with: prefetch, status: 503, answer: "not ahead"},
		exchange{ask: "GET https://a.example/next", with: visit, answer: "the page", header: plain},
		exchange{ask: "GET http://a.example/list", with: "Accept: text/html,*/*;q=0.8", answer: "a table", header: plain},
		exchange{ask: "GET http://a.example/list", with: "Accept: */*\nX-Requested-With: XMLHttpRequest", answer: "[]", header: plain},
		exchange{ask: "GET http://a.example/n", with: script, answer: "1"},
		exchange{ask: "GET http://a.example/n", with: script, answer: "2"},
	)
	k := newAsker(t, a, Options{Timing: Timing{Mode: TimingNone}})
	for _, c := range []struct {
		ask, with, want string
		status          int
		stage           lab.Stage
	}{
		{"GET https://b.example/logo", script, "an origin may", 200, lab.StageExact},
		{"GET https://b.example/logo", picture, "no origin may read it", 200, lab.StageExact},
		{"GET https://a.example/next", visit, "the page", 200, lab.StageExact},
		{"GET https://a.example/next", prefetch, "not ahead", 503, lab.StageExact},
		{"GET http://a.example/list", "Accept: */*\nX-Requested-With: XMLHttpRequest", "[]", 200, lab.StageExact},
		{"GET http://a.example/list", "Accept: text/html,*/*;q=0.8", "a table", 200, lab.StageExact},
		{"GET http://a.example/n", script, "1", 200, lab.StageSequence},
		{"GET http://a.example/n", "Sec-Fetch-Dest: image\nAccept: image/png", "2", 200, lab.StageSequence}, // nothing fits better
		{"POST https://a.example/reports", "Content-Type: application/reports+json", "", 204, lab.StageBox},
		{"POST https://a.example/ping", "Content-Type: text/ping", "", 204, lab.StageBox},
		{"GET https://a.example/suggest?q=x", "Sec-Fetch-Site: none\nSec-Fetch-Mode: no-cors\nSec-Fetch-Dest: empty",
			"This request is not in the archive.\n", 404, lab.StageBox},
		{"GET https://a.example/typed", "Sec-Fetch-Site: none\nSec-Fetch-Mode: navigate", "This request is not in the archive.\n", 404, lab.StageMiss},
		{"POST https://a.example/json", "Content-Type: application/json", "This request is not in the archive.\n", 404, lab.StageMiss},
	} {
		resp, text, line := k.ask("192.0.2.1", c.ask, c.with, "")
		if resp.StatusCode != c.status || text != c.want || line.Stage != c.stage {
			t.Errorf("%s (%q): %d %q by %s, want %d %q by %s", c.ask, c.with, resp.StatusCode, text, line.Stage, c.status, c.want, c.stage)
		}
	}
	if s := k.s.Stats(); s.Misses != 2 {
		t.Errorf("%d misses, want 2", s.Misses)
	}
}

// TestDeviceOfSeveralAddresses: a device that uses another of its addresses goes on in a sequence where it was.
func TestDeviceOfSeveralAddresses(t *testing.T) {
	a := build(exchange{ask: "GET https://a.example/n", answer: "1"}, exchange{ask: "GET https://a.example/n", answer: "2"})
	owner := func(a netip.Addr) string {
		if a.String() == "192.0.2.9" {
			return "another"
		}
		return "phone"
	}
	k := newAsker(t, a, Options{Timing: Timing{Mode: TimingNone}, Device: owner})
	for _, c := range []struct{ from, want string }{
		{"2001:db8::1", "1"}, {"192.0.2.1", "2"}, {"192.0.2.9", "1"}, {"2001:db8::2", "2"}, {"192.0.2.9", "2"},
	} {
		if _, got, _ := k.ask(c.from, "GET https://a.example/n", "", ""); got != c.want {
			t.Errorf("%s gets %q, want %q", c.from, got, c.want)
		}
	}
}

// TestOtherPrograms: on a device where other programs run, what these ask for and nobody recorded is no miss. What the
// page's browser asks for is, and so is what anybody asks of the page's hosts.
func TestOtherPrograms(t *testing.T) {
	const browser, system = "User-Agent: Mozilla/5.0 (iPhone)", "User-Agent: CFNetwork/3826 Darwin/24"
	a := build(
		exchange{ask: "GET https://page.test/", with: browser + "\nSec-Fetch-Dest: document\nSec-Fetch-Site: none", answer: "page"},
		exchange{ask: "POST https://cloud.test/sync", with: system, body: "1", answer: "synced"},
	)
	for _, c := range []struct {
		ask, with string
		others    bool
		want      lab.Stage
	}{
		{"POST https://cloud.test/sync", system, true, lab.StageBox},
		{"POST https://cloud.test/sync", "", true, lab.StageBox}, // some name themselves not at all
		{"POST https://cloud.test/sync", system, false, lab.StageMiss},
		{"POST https://cloud.test/sync", browser, true, lab.StageMiss},
		{"GET https://page.test/late.js", "Sec-Fetch-Site: same-origin\nSec-Fetch-Mode: no-cors", true, lab.StageMiss},
		{"GET https://page.test/late.js", system, true, lab.StageMiss},
	} {
		k := newAsker(t, a, Options{Timing: Timing{Mode: TimingNone}, Others: c.others})
		resp, _, line := k.ask("192.0.2.1", c.ask, c.with, "2")
		if line.Stage != c.want || resp.StatusCode != 404 || (k.s.Stats().Misses > 0) != (c.want == lab.StageMiss) {
			t.Errorf("%s (%q), others %v: %d by %s, %+v; want %s", c.ask, c.with, c.others, resp.StatusCode, line.Stage, k.s.Stats(), c.want)
		}
		if k.s.Knows("push.test") || (k.s.Stats().Misses > 0) == (c.others && c.want == lab.StageBox) {
			t.Errorf("others %v: the certificate of a host that is not known is counted in %+v", c.others, k.s.Stats())
		}
	}
	app := build(exchange{ask: "POST https://cloud.test/sync", with: system, body: "1", answer: "synced"})
	k := newAsker(t, app, Options{Timing: Timing{Mode: TimingNone}, Others: true})
	if _, _, line := k.ask("192.0.2.1", "POST https://cloud.test/sync", system, "2"); line.Stage != lab.StageMiss {
		t.Errorf("in a recording without a browser, %s; want a miss", line.Stage)
	}
}

// TestCrawledForOtherOrigins: what a crawler asked for, which names no origin, a page of another origin may read; what a
// page asked for keeps what the server allowed.
func TestCrawledForOtherOrigins(t *testing.T) {
	const page = "Sec-Fetch-Mode: cors\nSec-Fetch-Site: cross-site\nOrigin: https://a.example"
	const own = "Sec-Fetch-Mode: cors\nSec-Fetch-Site: same-origin\nOrigin: https://b.example"
	a := build(
		exchange{ask: "GET https://b.example/font", with: "User-Agent: Wget/1.21", answer: "glyphs"},
		exchange{ask: "GET https://b.example/open", with: "User-Agent: Wget/1.21", header: "Access-Control-Allow-Origin: *", answer: "open"},
		exchange{ask: "GET https://b.example/shut", with: page, answer: "shut"},
		exchange{ask: "GET https://b.example/embedded", with: "Sec-Fetch-Mode: no-cors", answer: "embedded"},
	)
	seeded := archive.New(a.Exchanges(), nil, nil, archive.CreateOptions{Wall: recordedAt, PageDate: recordedAt})
	for _, c := range []struct {
		of              *archive.Archive
		path, with, any string
	}{
		{a, "font", page, "https://a.example"}, {a, "font", own, ""}, {a, "font", "", ""}, {a, "open", page, "*"}, {a, "shut", page, ""},
		{a, "embedded", page, ""}, {seeded, "font", page, ""},
	} {
		k := newAsker(t, c.of, Options{Timing: Timing{Mode: TimingNone}})
		resp, _, line := k.ask("192.0.2.1", "GET https://b.example/"+c.path, c.with, "")
		told := strings.Contains(line.Why, "may read")
		if got := resp.Header.Get("Access-Control-Allow-Origin"); got != c.any || told != (c.any != "" && c.any != "*") {
			t.Errorf("%s with %q: %q may read it (%s), want %q", c.path, c.with, got, line.Why, c.any)
		}
	}
}
