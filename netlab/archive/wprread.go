package archive

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"eidetic/internal/lab"
)

// wprEntry is one request of an archive of Web Page Replay (catapult's web_page_replay_go), a JSON text in gzip:
//
//	{"Requests": {HOST: {URL: [{"SerializedRequest": …, "SerializedResponse": …}]}},
//	 "NegotiatedProtocol": {HOST: "h2"}, "DeterministicTimeSeedMs": N, "Certs": …}
//
// The messages are HTTP/1.1 text in Base64. Nothing says when they were, nor in which order.
type wprEntry struct {
	Request  []byte `json:"SerializedRequest"`
	Response []byte `json:"SerializedResponse"` // empty if the request failed
}

// wprImport collects the exchanges of such an archive.
type wprImport struct {
	a         *Archive
	limits    Limits
	notes     harNotes
	entries   int
	seen      bool // the file has a list of requests, perhaps an empty one
	seed      time.Time
	protocols map[string]string // by host
}

// field reads one field of the archive; isOurs is false for one of something else.
func (wi *wprImport) field(s *jsonStream, name string) (isOurs bool, err error) {
	switch {
	case strings.EqualFold(name, "Requests"):
		wi.seen = true
		return true, objectOr(s, func(host string) error {
			return objectOr(s, func(url string) error { return wi.url(s, host, url) })
		})
	case strings.EqualFold(name, "NegotiatedProtocol"):
		wi.protocols = map[string]string{}
		return true, objectOr(s, func(host string) error {
			var protocol harLoose
			cost, err := s.decode(&protocol)
			s.budget.give(cost)
			if err != nil {
				return err
			}
			wi.protocols[host] = string(protocol)
			return s.budget.take(int64(2*fieldCost + len(host) + len(protocol)))
		})
	case strings.EqualFold(name, "DeterministicTimeSeedMs"):
		var ms harInt
		cost, err := s.decode(&ms)
		s.budget.give(cost)
		if wi.seed = sane(time.UnixMilli(int64(ms))); ms <= 0 {
			wi.seed = time.Time{}
		}
		return true, err
	}
	return false, nil
}

// objectOr is s.object for a value that is an object; any other value is passed over.
func objectOr(s *jsonStream, field func(name string) error) error {
	c, err := s.next()
	if err == nil && c == '{' {
		return s.object(field)
	}
	if err == nil {
		_, _, err = s.value(false)
	}
	return err
}

// url reads the requests for one URL.
func (wi *wprImport) url(s *jsonStream, host, url string) error {
	c, err := s.next()
	if err == nil && c == '[' {
		return s.array(func() error { return wi.entry(s, host, url) })
	}
	if err == nil {
		_, _, err = s.value(false)
	}
	return err
}

// entry reads one request with its answer. One that cannot be read costs itself.
func (wi *wprImport) entry(s *jsonStream, host, url string) error {
	if wi.entries++; wi.entries > wi.limits.Exchanges {
		return fmt.Errorf("more than %d requests: %w", wi.limits.Exchanges, errLimit)
	}
	place := fmt.Sprint("request ", wi.entries-1)
	raw, cost, err := s.value(true)
	defer s.budget.give(cost)
	if err != nil {
		return err
	}
	var w wprEntry
	err = json.Unmarshal(raw, &w)
	var e *lab.Exchange
	if err == nil {
		e, err = w.exchange(host, url, wi.limits)
	}
	switch {
	case errors.Is(err, errLimit):
		return fmt.Errorf("%s (%.120s): %w", place, url, err)
	case err != nil:
		wi.notes.add(place, url, fmt.Sprintf("left out: %v", err))
		if !errors.Is(err, errNothing) {
			wi.a.lost++
		}
		return nil
	}
	e.ID = uuid(fmt.Appendf(nil, "WPR\n%d\n%s\n%s", wi.entries, e.Method, e.URL))
	if e.Truncated != "" {
		wi.notes.add(place, url, "cut off: its body is shorter than its Content-Length")
	}
	wi.a.exchanges = append(wi.a.exchanges, e)
	return s.budget.take(costOf(e))
}

// exchange is the exchange of an entry under its host and URL.
func (w *wprEntry) exchange(host, url string, l Limits) (*lab.Exchange, error) {
	u := lab.ParseURL(url)
	if u.Host == "" && strings.HasPrefix(url, "/") { // of a request that was not made absolute
		u = lab.ParseURL("https://" + host + url)
	}
	switch {
	case !u.IsWeb():
		return nil, errors.New("its URL is not one of http or https with a host")
	case len(w.Response) == 0:
		return nil, fmt.Errorf("%wit failed when it was recorded", errNothing)
	}
	e := &lab.Exchange{URL: browserURL(u.Sent())}
	if u.Scheme == "https" {
		e.TLS = "tls/1.3"
	}
	if err := parseRequest(e, w.Request, l); err != nil {
		return nil, fmt.Errorf("its request cannot be read: %w", err)
	}
	if err := parseResponse(e, w.Response, l); err != nil {
		return nil, fmt.Errorf("its answer cannot be read: %w", err)
	}
	if e.Status == http.StatusSwitchingProtocols {
		return nil, fmt.Errorf("%wa WebSocket, of which the file has no messages", errNothing)
	}
	if isShort(e) {
		e.Truncated = lab.Disconnected
	}
	if n := len(e.Response.Body); n > 0 {
		e.Chunks = []lab.Chunk{{Bytes: n}}
	}
	if date, err := http.ParseTime(e.Response.Get("Date")); err == nil {
		e.Wall = sane(date)
	}
	return e, nil
}

// finish sets what follows from all entries. Their order is that of the file, and all begin with the recording.
func (wi *wprImport) finish() {
	a := wi.a
	a.options.Software = "Web Page Replay"
	a.options.Wall = wi.seed
	for _, e := range a.exchanges {
		if wi.seed.IsZero() && !e.Wall.IsZero() && (a.options.Wall.IsZero() || e.Wall.Before(a.options.Wall)) {
			a.options.Wall = e.Wall
		}
	}
	for i, e := range a.exchanges {
		e.Order = i
		if e.Wall.IsZero() {
			e.Wall = a.options.Wall
		}
		if p := wi.protocols[lab.ParseURL(e.URL).Hostname()]; e.TLS != "" && p == "h2" {
			e.Protocol = p
		}
		const most = 100 // pages; of one that was opened, and not led to, no other page is the referrer
		if Navigates(e) && isDocument(e) && e.Request.Get("Referer") == "" && len(a.pages) < most {
			a.pages = append(a.pages, Page{URL: e.URL, Wall: e.Wall})
		}
	}
	if len(a.exchanges) > 0 {
		wi.notes.add("all", "", "without times and without the order of the requests, which Web Page Replay does not keep")
		a.addIcons(&wi.notes)
	}
	if len(a.exchanges) == 0 {
		a.found = fmt.Sprintf("an archive of Web Page Replay of which %d requests are left out: %s", wi.entries,
			strings.Join(wi.notes.lines(), "; "))
	}
	a.notes = wi.notes.lines()
}
