package archive

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"eidetic/internal/lab"
)

// isHAR tells a HAR by its beginning, after a byte order mark and blanks, or when it is
// compressed by zlib.
func isHAR(head []byte) bool {
	if isZlib(head) {
		return true
	}
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	return len(head) > 0 && head[0] == '{'
}

// isZlib tells a zlib stream by its first two bytes (RFC 1950).
func isZlib(head []byte) bool {
	return len(head) >= 2 && head[0] == 0x78 && (int(head[0])<<8|int(head[1]))%31 == 0
}

// openHAR reads the exchanges of a HAR. Bodies of other tools are decoded, so content codings are
// removed from the headers; a missing body is marked as cut off.
func (a *Archive) openHAR(file *io.SectionReader, l Limits) error {
	f, err := parseHAR(file, l)
	if err != nil {
		return err
	}
	a.options.Software = strings.TrimSpace(f.Log.Creator.Name + " " + f.Log.Creator.Version)
	hi := harImport{a: a, ids: map[string]bool{}, first: map[harLoose]*lab.Exchange{}}
	isOwn, err := a.takeOwnLog(f.Log.Own)
	if err != nil {
		hi.notes.add("log", "", fmt.Sprintf("with an _eidetic of the log that is not used: %v", err))
	}
	for i := range f.Log.Entries {
		hi.take(i, &f.Log.Entries[i])
	}
	hi.finish(f.Log.Pages, isOwn)
	a.notes = hi.notes.lines()
	if len(a.exchanges) == 0 {
		a.found = "a HAR with no entries: open the developer tools before the page is loaded, and save the HAR after that"
		if n := len(f.Log.Entries); n > 0 {
			a.found = fmt.Sprintf("a HAR of which all %d entries are left out: %s", n, strings.Join(a.notes, "; "))
		}
	}
	return nil
}

// parseHAR reads the JSON.
func parseHAR(file *io.SectionReader, l Limits) (*harFile, error) {
	buffered := bufio.NewReader(file)
	most, r := l.Decoded, io.Reader(buffered)
	if head, err := buffered.Peek(2); err == nil && isZlib(head) { // mitmproxy's .zhar
		z, err := zlib.NewReader(buffered)
		if err != nil {
			return nil, fmt.Errorf("HAR: %w", err)
		}
		defer z.Close()
		// JSON and base64 compress to a tenth; a few bytes that decode to gigabytes are no HAR.
		most, r = min(most, 64<<20+50*file.Size()), z
	}
	text, err := readAllLimited(r, most)
	if err != nil {
		return nil, fmt.Errorf("HAR: %w", err)
	}
	f := &harFile{}
	if err := json.Unmarshal(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), f); err != nil {
		return nil, fmt.Errorf("HAR: %w", err)
	}
	if f.Log == nil || f.Log.Entries == nil {
		return nil, fmt.Errorf("the JSON has no log.entries, so it is not a HAR")
	}
	if len(f.Log.Entries) > l.Exchanges {
		return nil, fmt.Errorf("%d entries are more than %d: %w", len(f.Log.Entries), l.Exchanges, errLimit)
	}
	return f, nil
}

// harImport collects the entries of a HAR.
type harImport struct {
	a       *Archive
	notes   harNotes
	ids     map[string]bool
	first   map[harLoose]*lab.Exchange // the document of a page, or else its first exchange, by pageref
	foreign bool                       // some entry has no usable _eidetic
}

// take adds an entry, or notes why it is left out.
func (hi *harImport) take(i int, h *harEntry) {
	place, what := fmt.Sprint("entry ", i), h.Request.URL
	e, err := h.ownExchange()
	if err != nil && !errors.Is(err, errNotOwn) {
		hi.notes.add(place, what, fmt.Sprintf("with an _eidetic that is not used: %v", err))
	}
	if err != nil {
		hi.foreign = true
		var notes []string
		if e, notes, err = h.exchange(); err != nil {
			hi.notes.add(place, what, fmt.Sprintf("left out: %v", err))
			return
		}
		for _, n := range notes {
			hi.notes.add(place, what, n)
		}
	}
	for n := 0; e.ID == "" || hi.ids[e.ID]; n++ {
		e.ID = uuid(fmt.Appendf(nil, "HAR\n%d\n%s\n%s\n%s%s", i, h.Started, e.Method, e.URL, strings.Repeat("+", n)))
	}
	hi.ids[e.ID] = true
	hi.a.exchanges = append(hi.a.exchanges, e)
	if known := hi.first[h.PageRef]; known == nil || !isDocument(known) && isDocument(e) {
		hi.first[h.PageRef] = e
	}
}

// finish sets what follows from all entries: their order, the recording's start, and the pages.
func (hi *harImport) finish(pages []harPage, isOwn bool) {
	a, sorted := hi.a, !hi.foreign && isOwn
	for i, e := range a.exchanges {
		sorted = sorted && (i == 0 || a.exchanges[i-1].Order <= e.Order)
	}
	if !sorted { // at least some are of another tool: their order is that of the file, their start by the clock
		a.options.Wall = time.Time{}
		for _, e := range a.exchanges {
			if a.options.Wall.IsZero() || e.Wall.Before(a.options.Wall) && !e.Wall.IsZero() {
				a.options.Wall = e.Wall
			}
		}
		for i, e := range a.exchanges {
			e.Order, e.Start = i, max(0, e.Wall.Sub(a.options.Wall))
		}
	}
	for i := range pages {
		if p, ok := pages[i].page(hi.first[pages[i].ID]); ok {
			a.pages = append(a.pages, p)
		} else {
			hi.notes.add("page "+string(pages[i].ID), string(pages[i].Title), "left out: it has neither an entry nor a URL")
		}
	}
	for _, e := range a.exchanges {
		if len(a.pages) == 0 && !isOwn && isDocument(e) {
			a.pages = []Page{{URL: e.URL, Wall: e.Wall}}
		}
	}
	a.noteDocuments(&hi.notes)
	if !isOwn && len(pages) > 0 { // a browser's
		a.addIcons(&hi.notes)
	}
}

// noteDocuments notes a page whose document cannot be replayed.
func (a *Archive) noteDocuments(notes *harNotes) {
	answered := map[string]bool{}
	for _, e := range a.exchanges {
		answered[e.URL] = answered[e.URL] || e.Status != 304
	}
	for _, p := range a.pages {
		if ok, known := answered[p.URL]; known && !ok {
			notes.add(
				"page",
				p.URL,
				"whose document is a 304 without content, so that it cannot be replayed: disable the cache in the developer tools, and save the HAR again",
			)
		}
	}
}

// page is the page; first is the document of its entries, or nil.
func (p *harPage) page(first *lab.Exchange) (Page, bool) {
	var own Page
	if !isNull(p.Own) && json.Unmarshal(p.Own, &own) == nil && isWeb(own.URL) {
		own.Wall = sane(own.Wall)
		return own, true
	}
	out := Page{Title: string(p.Title), Wall: harTime(string(p.Started))}
	switch {
	case first != nil:
		out.URL = first.URL
	case isWeb(out.Title): // Chrome
		out.URL, _, _ = strings.Cut(out.Title, "#")
	default:
		return out, false
	}
	if isWeb(out.Title) {
		out.Title = ""
	}
	if out.Wall.IsZero() && first != nil {
		out.Wall = first.Wall
	}
	return out, true
}

func isWeb(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// harTime reads a date; some exporters write its zone without a colon.
func harTime(text string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t, _ = time.Parse("2006-01-02T15:04:05.999999999-0700", text)
	}
	return sane(t)
}

// sane is t in UTC, or the zero time if RFC 3339 cannot write that.
func sane(t time.Time) time.Time {
	if t = t.UTC(); t.Year() < 1 || t.Year() > 9999 {
		return time.Time{}
	}
	return t
}

// address parses the URL of an entry without its fragment. isSocket tells that of a WebSocket,
// whose scheme is then that of the request that opens it.
func (h *harEntry) address() (u *url.URL, isSocket bool, err error) {
	if u, err = url.Parse(h.Request.URL); err != nil {
		return nil, false, errors.New("its URL cannot be read")
	}
	u.Fragment, u.RawFragment = "", ""
	switch u.Scheme {
	case "http", "https":
	case "ws", "wss":
		isSocket, u.Scheme = true, "http"+strings.TrimPrefix(u.Scheme, "ws")
	default:
		return nil, false, fmt.Errorf("the scheme %.20q is not http or https", u.Scheme)
	}
	if u.Host == "" {
		return nil, false, errors.New("its URL has no host")
	}
	return u, isSocket || h.Kind == "websocket" || !isNull(h.Messages), nil
}

// exchange is the exchange of an entry that another tool wrote, and what was changed in it or is
// missing.
func (h *harEntry) exchange() (e *lab.Exchange, notes []string, err error) {
	u, isSocket, err := h.address()
	switch {
	case err != nil:
		return nil, nil, err
	case h.Response.Error != "":
		return nil, nil, fmt.Errorf("it failed: %.80s", h.Response.Error)
	case h.Response.Status < 100 || h.Response.Status > 999:
		return nil, nil, fmt.Errorf("it has no answer (status %d)", h.Response.Status)
	case h.Request.Method == "":
		return nil, nil, errors.New("it has no method")
	}
	e = &lab.Exchange{Method: h.Request.Method, URL: u.String(), Status: int(h.Response.Status), Reason: h.Response.StatusText}
	e.Wall = harTime(h.Started)
	e.Protocol = harProtocol(h.Response.HTTPVersion, h.Request.HTTPVersion)
	if u.Scheme == "https" {
		e.TLS = "tls/1.3"
	}
	if ip, err := netip.ParseAddr(strings.Trim(h.Server, "[]")); err == nil {
		e.Server = netip.AddrPortFrom(ip, portOf(e.URL))
	}
	e.Request.Header = harHeaders(h.Request.Headers)
	if e.Request.Body, err = h.Request.PostData.bytes(h.Request.BodySize); err != nil {
		return nil, nil, err
	}
	e.Response.Header = splitCookies(harHeaders(h.Response.Headers), len(h.Response.Cookies))
	e.FirstByte = harMs(h.Timings.Wait)
	if isSocket && (e.Status == 101 || e.Status == 200) { // 200 over HTTP/2
		return e, h.socket(e), nil
	}
	if e.Status == 304 && h.Response.Content.Text != nil && *h.Response.Content.Text != "" {
		uncache(e, h.Response.Content.MIME)
		notes = append(notes, "answered 304 with content, taken as 200: the browser had it in its cache")
	}
	if c := &h.Response.Content; c.Text != nil && *c.Text == "" && c.Size > 0 && h.Response.BodySize <= 0 {
		c.Text = nil // Firefox leaves out what came from its cache so
	}
	if err := h.Response.Content.fill(e); err != nil {
		return nil, nil, err
	}
	if e.Truncated != "" {
		notes = append(notes, "without a body, which is taken as cut off: save the HAR with content, and with the cache disabled")
	}
	if n := len(e.Response.Body); n > 0 {
		e.Chunks = []lab.Chunk{{At: min(e.FirstByte+harMs(h.Timings.Receive), time.Duration(maxTime)), Bytes: n}}
	}
	return e, notes, nil
}

// harMs is a time of a HAR, which is in milliseconds, or 0 for -1 (unknown).
func harMs(v float64) time.Duration {
	return time.Duration(min(max(v, 0), float64(maxTime)/1e6) * float64(time.Millisecond))
}

// uncache makes a 304, whose content the browser had in its cache, the 200 that a browser with an
// empty cache gets. A 304 need not name the type of the content.
func uncache(e *lab.Exchange, contentType string) {
	e.Status = 200
	if e.Reason != "" { // HTTP/1
		e.Reason = "OK"
	}
	e.Request.Header = slices.DeleteFunc(e.Request.Header, func(f lab.HeaderField) bool {
		return strings.EqualFold(f.Name, "If-None-Match") || strings.EqualFold(f.Name, "If-Modified-Since")
	})
	if contentType = strings.TrimSpace(oneLine(contentType)); e.Response.Get("Content-Type") == "" && strings.Contains(contentType, "/") {
		e.Response.Header = append(e.Response.Header, lab.HeaderField{Name: "content-type", Value: contentType})
	}
}
