package archive

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/inject"
)

// openHAR reads the exchanges of a HAR, entry by entry. Bodies of other tools are decoded, so content
// codings are removed from the headers; a missing body is marked as cut off. An archive of Web Page Replay is
// JSON, too, and is told by what is in it.
func (a *Archive) openHAR(file *io.SectionReader, files harFiles, l Limits) error {
	hi := newHARImport(a, l)
	hi.files, hi.wpr = files, wprImport{a: a, limits: l}
	var tooMuch *memoryError
	switch err := hi.read(file); {
	case err == nil:
	case errors.Is(err, errLimit), errors.As(err, &tooMuch), len(a.exchanges) == 0:
		return fmt.Errorf("HAR: %w", err)
	default:
		a.lose("the file is cut off or damaged behind the %d entries that are used (%v)", len(a.exchanges), err)
	}
	other := otherJSON(hi.names)
	switch {
	case hi.logs == 0 && len(a.exchanges) == 0 && other != "" && !hi.wpr.seen:
		return fmt.Errorf("the JSON is no HAR: it %s", other)
	case hi.hasEntries, hi.isList && len(hi.names) == 0:
	case hi.wpr.seen:
		hi.wpr.finish()
		return nil
	default:
		return fmt.Errorf("the JSON has neither log.entries nor Requests, so it is not a HAR, and no archive of Web Page Replay: %s", saveHAR)
	}
	hi.finish()
	a.notes = append(hi.ofLog.lines(), hi.notes.lines()...)
	if len(a.exchanges) == 0 {
		a.found = "a HAR with no entries: open the developer tools before the page is loaded, and save the HAR after that"
		if hi.entries > 0 {
			a.found = fmt.Sprintf("a HAR of which all %d entries are left out: %s", hi.entries, strings.Join(a.notes, "; "))
		}
	}
	return nil
}

// page reads a page of a log.
func (hi *harImport) page(s *jsonStream) error {
	var p harPage
	cost, err := hi.decode(s.decode, fmt.Sprint("page ", len(hi.pages)), &p, func() string { return string(p.Title) })
	s.budget.give(cost)
	if errors.Is(err, errDamaged) {
		return nil
	} else if err != nil {
		return fmt.Errorf("page %d: %w", len(hi.pages), err)
	}
	p.log = hi.logs
	hi.pages = append(hi.pages, p)
	return s.budget.take(int64(recordCost + len(p.Title) + len(p.Own)))
}

// creator reads what wrote a log.
func (hi *harImport) creator(s *jsonStream) error {
	var creator harCreator
	cost, err := hi.decode(s.decode, "creator", &creator, func() string { return "" })
	s.budget.give(cost)
	if !hi.isOwn { // else it is in _eidetic
		hi.a.options.Software = strings.TrimSpace(creator.Name + " " + creator.Version)
	}
	if errors.Is(err, errDamaged) {
		return nil
	}
	return err
}

// own reads what an export of this program says of the recording.
func (hi *harImport) own(s *jsonStream) error {
	raw, cost, err := s.value(true) // counted to the end, as what is made of it is kept
	if err == nil {
		err = s.budget.take(2 * cost) // its DNS answers are the largest elements of all
	}
	if err != nil {
		return err
	}
	if hi.isOwn, err = hi.a.takeOwnLog(raw); err != nil {
		hi.ofLog.add("log", "", fmt.Sprintf("with an _eidetic of the log that is not used: %v", err))
	}
	return nil
}

// entry reads one entry, which decode decodes.
func (hi *harImport) entry(s *jsonStream, decode func(any) (int64, error)) error {
	if hi.entries++; hi.entries > hi.limits.Exchanges {
		return fmt.Errorf("more than %d entries: %w", hi.limits.Exchanges, errLimit)
	}
	var both struct {
		harEntry
		charlesFields
	}
	h := &both.harEntry
	cost, err := hi.decode(decode, fmt.Sprint("entry ", hi.entries-1), &both, func() string { return h.Request.URL })
	defer s.budget.give(cost)
	if errors.Is(err, errDamaged) {
		hi.a.lost++
		return nil
	} else if err != nil {
		return fmt.Errorf("entry %d: %w", hi.entries-1, err)
	}
	if both.isCharles(h) {
		both.charlesFields.fill(h)
		hi.a.options.Software = "Charles"
	}
	if e := hi.take(hi.entries-1, h); e != nil {
		return s.budget.take(costOf(e))
	}
	return nil
}

// decode decodes a value into v, of the place and what it names, and notes what could not be read.
func (hi *harImport) decode(next func(any) (int64, error), place string, v any, what func() string) (cost int64, err error) {
	cost, err = next(v)
	var odd *json.UnmarshalTypeError
	switch {
	case errors.As(err, &odd): // the other fields were read
		hi.notes.add(place, what(), fmt.Sprintf("with a field of another kind (%s), which is not used", cmp.Or(odd.Field, "it itself")))
		return cost, nil
	case errors.Is(err, errDamaged):
		hi.notes.add(place, what(), fmt.Sprintf("left out: %v", err))
	}
	return cost, err
}

// harImport collects the entries of a HAR.
type harImport struct {
	wpr     wprImport // what the file is instead, perhaps
	zone    string    // of the first time that has one
	files   harFiles
	a       *Archive
	limits  Limits
	ofLog   harNotes // which come before the others, wherever the log's own fields stand
	notes   harNotes
	pages   []harPage
	logs    int // that were begun
	entries int // that were read
	names   []string
	// hasEntries: a log has a list of them, perhaps an empty one, or the file has one without a log; isList: the file is
	// a list; isOwn: this program wrote the log.
	hasEntries, isList, isOwn bool

	ids     map[string]bool
	first   map[pageKey]*lab.Exchange // the document of a page, or else its first exchange
	foreign bool                      // some entry has no usable _eidetic
}

func newHARImport(a *Archive, l Limits) *harImport {
	return &harImport{a: a, limits: l, ids: map[string]bool{}, first: map[pageKey]*lab.Exchange{}}
}

// pageKey names a page: the log that it is in, and its ID there.
type pageKey struct {
	log int
	id  harLoose
}

// take adds an entry and returns its exchange, or notes why it is left out.
func (hi *harImport) take(i int, h *harEntry) *lab.Exchange {
	if hi.zone == "" {
		hi.zone = zoneOf(string(h.Started))
	}
	h.Request.URL, h.Request.Method = strings.TrimSpace(h.Request.URL), methodOf(h.Request.Method)
	place, what := fmt.Sprint("entry ", i), h.Request.URL
	hi.attach(place, h)
	e, err := h.ownExchange()
	if err != nil && !errors.Is(err, errNotOwn) {
		hi.notes.add(place, what, fmt.Sprintf("with an _eidetic that is not used: %v", err))
	}
	if err != nil {
		hi.foreign = true
		var notes []string
		if e, notes, err = h.exchange(); err != nil {
			hi.notes.add(place, what, fmt.Sprintf("left out: %v", err))
			if !errors.Is(err, errNothing) {
				hi.a.lost++
			}
			return nil
		}
		for _, n := range notes {
			hi.notes.add(place, what, n)
		}
	}
	hi.keep(i, string(h.Started), h.PageRef, e)
	return e
}

// keep adds the exchange of an entry that was begun at a time and is of a page.
func (hi *harImport) keep(i int, began string, page harLoose, e *lab.Exchange) {
	for n := 0; e.ID == "" || hi.ids[e.ID]; n++ {
		e.ID = uuid(fmt.Appendf(nil, "HAR\n%d\n%s\n%s\n%s%s", i, began, e.Method, e.URL, strings.Repeat("+", n)))
	}
	hi.ids[e.ID] = true
	hi.a.exchanges = append(hi.a.exchanges, e)
	key := pageKey{hi.logs, page}
	if known := hi.first[key]; known == nil || !isDocument(known) && isDocument(e) {
		hi.first[key] = e
	}
}

// attach reads the bodies of an entry that are in files of their own.
func (hi *harImport) attach(place string, h *harEntry) {
	read := func(name harLoose) []byte {
		if name == "" {
			return nil
		}
		why := "files beside it are read only by 'appliance archive import'"
		if hi.files != nil {
			body, err := hi.files(string(name), hi.limits)
			if err == nil {
				return body
			}
			why = err.Error()
		}
		hi.notes.add(place, h.Request.URL, fmt.Sprintf("with a body in another file (_file), which is not read: %s", oneLine(why)))
		return nil
	}
	if c := &h.Response.Content; c.Text == nil {
		c.attached = read(c.File)
	}
	if p := h.Request.PostData; p != nil && p.Text == "" {
		p.attached = read(p.File)
	}
}

// finish sets what follows from all entries: their order, the recording's start, and the pages.
func (hi *harImport) finish() {
	a, pages, isOwn := hi.a, hi.pages, hi.isOwn
	if !isOwn {
		a.options.Zone = hi.zone
	}
	sorted := !hi.foreign && isOwn
	for i, e := range a.exchanges {
		sorted = sorted && (i == 0 || a.exchanges[i-1].Order <= e.Order)
	}
	if !sorted { // at least some are of another tool: their order is that of the file, their start by the clock
		hi.dropOddDates()
		a.options.Wall = time.Time{}
		for _, e := range a.exchanges {
			if a.options.Wall.IsZero() || e.Wall.Before(a.options.Wall) && !e.Wall.IsZero() {
				a.options.Wall = e.Wall
			}
		}
		for i, e := range a.exchanges {
			if e.Wall.IsZero() && i > 0 { // after the entry before it, also once it is kept
				e.Wall = a.exchanges[i-1].Wall
			}
			if e.Wall.IsZero() {
				e.Wall = a.options.Wall
			}
			e.Order, e.Start = i, max(0, e.Wall.Sub(a.options.Wall))
		}
	}
	for i := range pages {
		if p, ok := pages[i].page(hi.first[pageKey{pages[i].log, pages[i].ID}]); ok {
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

// farOff is how far a date is from most others of its file if its year is wrong.
const farOff = 20 * 365 * 24 * time.Hour

// dropOddDates takes away dates that are decades from most others: such an entry would begin a century after its page.
func (hi *harImport) dropOddDates() {
	var dates []time.Time
	for _, e := range hi.a.exchanges {
		if !e.Wall.IsZero() {
			dates = append(dates, e.Wall)
		}
	}
	if len(dates) == 0 {
		return
	}
	slices.SortFunc(dates, time.Time.Compare)
	usual := dates[len(dates)/2]
	for i, e := range hi.a.exchanges {
		if !e.Wall.IsZero() && e.Wall.Sub(usual).Abs() > farOff {
			hi.notes.add(fmt.Sprint("entry ", i), e.URL, "with a date that is decades from most others (startedDateTime), which is not used")
			e.Wall = time.Time{}
		}
	}
	for i := range hi.pages {
		if p := &hi.pages[i]; harTime(string(p.Started)).Sub(usual).Abs() > farOff {
			p.Started = ""
		}
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

func isWeb(raw string) bool { return lab.ParseURL(raw).IsWeb() }

// sane is t in UTC, or the zero time if RFC 3339 cannot write that.
func sane(t time.Time) time.Time {
	if t = t.UTC(); t.Year() < 1 || t.Year() > 9999 {
		return time.Time{}
	}
	return t
}

// errNothing marks an entry that holds no answer of the network's, so that nothing is lost with it. It
// has no words of its own.
var errNothing = errors.New("")

// address parses the URL of an entry without its fragment. isSocket tells that of a WebSocket,
// whose scheme is then that of the request that opens it.
func (h *harEntry) address() (u lab.URL, isSocket bool, err error) {
	u = lab.ParseURL(h.Request.URL)
	switch u.Scheme {
	case "http", "https":
	case "ws", "wss":
		isSocket, u.Scheme = true, "http"+strings.TrimPrefix(u.Scheme, "ws")
	default:
		scheme, _, isAbsolute := strings.Cut(h.Request.URL, ":")
		if u.Scheme == "" && (!isAbsolute || strings.ContainsAny(scheme, "/?.")) {
			return u, false, errors.New("its URL is not absolute: which scheme and host it has is not known")
		}
		u.Scheme = cmp.Or(u.Scheme, scheme)
		return u, false, fmt.Errorf("%wthe scheme %.20q is not http or https", errNothing, u.Scheme)
	}
	if u.Host == "" {
		return u, false, errors.New("its URL has no host")
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
	case h.Request.Method == "CONNECT" && !isSocket: // else it opens a WebSocket over HTTP/2 (RFC 8441)
		return nil, nil, fmt.Errorf("%wit opened a tunnel through a proxy", errNothing)
	case h.Request.Method != "" && h.Response.isBroken():
		return h.failed(u)
	case h.Response.why() != "":
		return nil, nil, fmt.Errorf("%wit failed: %.80s", errNothing, h.Response.why())
	case h.Response.Status/100 == 1 && h.Response.Status != 101:
		return nil, nil, fmt.Errorf("%wan answer that only precedes the final one (status %d)", errNothing, h.Response.Status)
	case h.Response.Status < 100 || h.Response.Status > 999:
		return nil, nil, fmt.Errorf("%wit has no answer (status %d)", errNothing, h.Response.Status)
	case h.Request.Method == "":
		return nil, nil, errors.New("it has no method")
	}
	e = &lab.Exchange{Method: h.Request.Method, URL: browserURL(u.Sent()), Status: int(h.Response.Status), Reason: h.Response.StatusText}
	if e.Wall = harTime(string(h.Started)); e.Wall.IsZero() && h.Started != "" {
		notes = append(notes, "with a date that cannot be read (startedDateTime)")
	}
	e.Protocol = harProtocol(h.Response.HTTPVersion, h.Request.HTTPVersion)
	if u.Scheme == "https" {
		e.TLS = "tls/1.3"
	}
	if ip, err := netip.ParseAddr(strings.Trim(string(h.Server), "[]")); err == nil {
		e.Server = netip.AddrPortFrom(ip, portOf(e.URL))
	}
	if err := h.headers(e); err != nil {
		return nil, nil, err
	}
	notes = append(notes, h.fillHeader(e)...)
	if h.Request.Headers.isUnread() || h.Response.Headers.isUnread() {
		notes = append(notes, "with header fields that cannot be read, which are left out")
	}
	if e.Request.Body, err = h.Request.body(); err != nil {
		return nil, nil, err
	}
	switch p := h.Request.PostData; {
	case e.Request.Body != nil:
	case p != nil && len(p.Params) > 0:
		notes = append(notes, "without the text of the form that it sent (postData.text): a replay does not tell it from other forms by that")
	case h.lacksBody(e):
		notes = append(notes, "without the body that it sent (postData): a replay does not tell it from others to its address")
	}
	e.Response.Header = splitCookies(e.Response.Header, len(h.Response.Cookies))
	e.FirstByte = harMs(h.Timings.Wait)
	notes = append(notes, longTimes(h.Timings.Wait, h.Timings.Receive, h.Timings.Blocked, h.Timings.DNS, h.Timings.Connect)...)
	if isSocket && (e.Status == 101 || e.Status == 200) { // 200 over HTTP/2
		return e, append(notes, h.socket(e)...), nil
	}
	if h.isOpenStream(e) {
		return e, append(notes, h.stream(e)...), nil
	}
	if e.Status == 304 && h.Response.Content.Text != nil && *h.Response.Content.Text != "" {
		uncache(e, h.Response.Content.MIME)
		notes = append(notes, "answered 304 with content, taken as 200: the browser had it in its cache")
	}
	if c := &h.Response.Content; c.Text != nil && *c.Text == "" && c.Size > 0 && h.Response.BodySize <= 0 {
		c.Text = nil // Firefox leaves out what came from its cache so
	}
	if inject.ContentCoding(e.Response.Header) != "" {
		size, came := h.Response.Content.Size, h.Response.BodySize
		h.Response.Content.coded = came > 0 && came == size || e.Response.Get("Content-Length") == fmt.Sprint(int64(size))
	}
	if h.Response.Content.isOdd {
		notes = append(notes, "with a field of another kind (response.content), which is not used")
	}
	if c := &h.Response.Content; c.Text == nil && c.Size == 0 && c.MIME == "" { // there is none at all
		c.Size = h.Response.BodySize
	}
	isSpoiled := h.Response.Content.isSpoiled()
	if c := &h.Response.Content; isSpoiled {
		c.Text, c.Size = nil, max(c.Size, 1)
	}
	if err := h.Response.Content.fill(e); err != nil {
		return nil, nil, err
	}
	switch {
	case isSpoiled:
		notes = append(notes, "with a body that was turned into text and is no text, so that it is lost and taken as cut off: "+
			"save the HAR with a program that writes such bodies in Base64")
	case e.Truncated != "":
		notes = append(notes, "without a body, which is taken as cut off: save the HAR with content, and with the cache disabled")
	}
	if n := len(e.Response.Body); n > 0 {
		e.Chunks = []lab.Chunk{{At: min(e.FirstByte+harMs(h.Timings.Receive), time.Duration(maxTime)), Bytes: n}}
	}
	return e, notes, nil
}

// lacksBody tells a request that had a body, or may have had one, as its size is unknown.
func (h *harEntry) lacksBody(e *lab.Exchange) bool {
	stated := e.Request.Get("Content-Length")
	sends := e.Method == "POST" || e.Method == "PUT" || e.Method == "PATCH"
	return sends && stated != "0" && (stated != "" || h.Request.BodySize != 0)
}

// why is why a browser got no answer.
func (r *harResponse) why() string { return cmp.Or(r.Error, r.Failure) }

// isBroken says whether the origin was at fault, in Chromium's words. What the page or the browser gave up or blocked
// by itself, it does again.
func (r *harResponse) isBroken() bool {
	what, ok := strings.CutPrefix(r.why(), "net::ERR_")
	return ok && r.Status <= 0 && slices.ContainsFunc([]string{
		"ADDRESS_", "CERT_", "CONNECTION_", "EMPTY_RESPONSE", "HTTP2_", "INVALID_HTTP_RESPONSE", "NAME_", "QUIC_", "RESPONSE_HEADERS_", "SOCKET_",
		"SSL_", "TIMED_OUT",
	}, func(kind string) bool { return strings.HasPrefix(what, kind) })
}

// failed is the exchange of an entry whose origin refused or broke the connection.
func (h *harEntry) failed(u lab.URL) (e *lab.Exchange, notes []string, err error) {
	e = &lab.Exchange{
		Method: h.Request.Method, URL: u.Sent(), Wall: harTime(string(h.Started)), Truncated: lab.Disconnected, FirstByte: harMs(h.Time),
	}
	if e.Request.Header, err = harHeaders(h.Request.Headers); err != nil {
		return nil, nil, err
	}
	e.Request.Body, err = h.Request.body()
	return e, append(longTimes(h.Time), fmt.Sprintf("failed (%.80s), and so in replays", h.Response.why())), err
}

// headers sets both headers.
func (h *harEntry) headers(e *lab.Exchange) (err error) {
	if e.Request.Header, err = harHeaders(h.Request.Headers); err == nil {
		e.Response.Header, err = harHeaders(h.Response.Headers)
	}
	return err
}

// harDay is maxTime in milliseconds.
const harDay = float64(maxTime) / 1e6

// harMs is a time of a HAR, which is in milliseconds, or 0 for -1 (unknown) and for what no answer takes.
func harMs(v harFloat) time.Duration {
	if ms := float64(v); ms > 0 && ms <= harDay {
		return time.Duration(ms * float64(time.Millisecond))
	}
	return 0
}

// longTimes says which times are not used.
func longTimes(times ...harFloat) (notes []string) {
	for _, t := range times {
		if float64(t) > harDay {
			notes = append(notes, fmt.Sprintf("with a time of more than a day (%.3g ms), which is not used", float64(t)))
		}
	}
	return notes
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
