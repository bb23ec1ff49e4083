package archive

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"eidetic/internal/lab"
	"eidetic/netlab/inject"
)

// done joins the records that were read into exchanges and DNS answers.
func (ld *loader) done() error {
	if err := ld.joinSegments(); err != nil {
		return err
	}
	payloads, err := ld.payloads()
	if err != nil {
		return err
	}
	ld.looseRequests()
	var timed, untimed []*lab.Exchange
	for _, p := range ld.order {
		if p.dns != nil {
			d := p.dns
			if m := ld.dnsMeta[p.e.ID]; m != nil {
				d = m
			}
			ld.a.dns = append(ld.a.dns, *d)
			continue
		}
		if p.revisit != nil {
			if why := payloads.resolve(p); why != "" {
				ld.a.lose("%.120s is left out: %s", p.e.URL, why)
				continue
			}
		}
		ok, hasTimes := ld.join(p)
		switch {
		case !ok:
		case hasTimes:
			timed = append(timed, p.e)
		default:
			untimed = append(untimed, p.e)
		}
	}
	slices.SortStableFunc(timed, func(x, y *lab.Exchange) int { return x.Order - y.Order })
	slices.SortStableFunc(untimed, func(x, y *lab.Exchange) int { return x.Wall.Compare(y.Wall) })
	// Exchanges of other tools have no order: they follow by date.
	next := 0
	if n := len(timed); n > 0 {
		next = timed[n-1].Order + 1
	}
	for i, e := range untimed {
		e.Order = next + i
		if !e.Wall.IsZero() {
			e.Start = e.Wall.Sub(untimed[0].Wall)
		}
	}
	ld.a.exchanges = append(timed, untimed...)
	if len(timed) == 0 && len(untimed) > 0 && !ld.isOwn {
		ld.a.addIcons(&ld.notes)
	}
	ld.a.notes = append(ld.a.notes, ld.notes.lines()...)
	if ld.a.options.Wall.IsZero() {
		for _, e := range ld.a.exchanges {
			if !e.Wall.IsZero() && (ld.a.options.Wall.IsZero() || e.Wall.Before(ld.a.options.Wall)) {
				ld.a.options.Wall = e.Wall
			}
		}
	}
	if len(ld.a.exchanges) == 0 && len(ld.a.dns) == 0 && ld.records == 0 {
		return fmt.Errorf("the archive is empty")
	}
	if len(ld.a.exchanges) == 0 {
		ld.a.found = ld.contents()
	}
	return nil
}

// count counts the record for contents.
func (ld *loader) count(it *item) {
	const most = 20 // kinds; no real file has more
	kind := it.kind()
	if len(kind) > 20 || kind == "" {
		kind = "unknown"
	}
	if scheme, _, ok := strings.Cut(it.url, ":"); ok && len(scheme) < 10 && !strings.HasPrefix(scheme, "http") {
		kind += " (" + oneLine(scheme) + ":)"
	}
	if ld.kinds[kind] == 0 && len(ld.kinds) >= most {
		kind = "other"
	}
	ld.kinds[kind]++
}

// contents says what the file holds, when no exchange is in it.
func (ld *loader) contents() string {
	var list []string
	for _, kind := range slices.Sorted(maps.Keys(ld.kinds)) {
		list = append(list, fmt.Sprint(ld.kinds[kind], " ", kind))
	}
	text := fmt.Sprintf("a WARC of %d records (%s)", ld.records, strings.Join(list, ", "))
	if len(ld.a.warnings) > 0 {
		return text + ", of which none can be replayed: " + ld.a.warnings[0]
	}
	return text + " without an answer to an HTTP request (a response, revisit or resource record of an http: or https: URL); " +
		"crawlers put those into a file of their own, often beside this one"
}

// join adds request and metadata to a response. hasTimes is false for an
// exchange of another tool, or one whose last record was cut off.
func (ld *loader) join(p *pending) (ok, hasTimes bool) {
	e := p.e
	block, found := ld.requests[e.ID]
	if !found {
		if list := ld.loose[e.URL]; len(list) > 0 {
			block, found = list[0], true
			ld.loose[e.URL] = list[1:]
		}
	}
	s := ld.sidecars[e.ID]
	if !found && s == nil && ld.ours() {
		ld.a.lose("%.120s is left out: its request was cut off", e.URL)
		return false, false
	}
	if !found && s != nil && s.Pending {
		ld.a.lose("%.120s is left out: its request was cut off", e.URL)
		return false, false
	}
	if found {
		if err := parseRequest(e, block, ld.limits); err != nil {
			ld.a.lose("the request for %.120s cannot be read: %v", e.URL, err)
			return false, false
		}
	}
	if !strings.HasPrefix(e.URL, "http://") && !strings.HasPrefix(e.URL, "https://") {
		return false, false
	}
	if s != nil {
		if err := s.apply(e); err != nil {
			ld.a.lose("%.120s is left out: its metadata is wrong: %v", e.URL, err)
			return false, false
		}
		return true, true
	}
	e.URL = browserURL(e.URL)
	settleBody(e, &ld.notes)
	if len(e.Response.Body) > 0 {
		e.Chunks = []lab.Chunk{{Bytes: len(e.Response.Body)}}
	}
	return true, false
}

// settleBody makes the header of an answer that another program kept that of its body.
func settleBody(e *lab.Exchange, notes *harNotes) {
	if value := e.Response.Get("Content-Encoding"); isDecoded(value, e.Response.Body) || isPlain(e) {
		e.Response.Header = slices.DeleteFunc(e.Response.Header, func(f lab.HeaderField) bool {
			return strings.EqualFold(f.Name, "Content-Encoding") || strings.EqualFold(f.Name, "Content-Length") // of the coded body
		})
		notes.add("response", e.URL, "whose body is not in the coding that its header names: crawlers decode bodies; the header is left out")
	}
	if isShort(e) {
		e.Truncated = lab.Disconnected
		notes.add("response", e.URL, "cut off: its body is shorter than its Content-Length")
	}
}

// isShort tells an answer whose body is shorter than it says, and not marked as cut off. Of redirects, browsers show no
// body to the crawlers that drive them.
func isShort(e *lab.Exchange) bool {
	stated, err := strconv.ParseInt(e.Response.Get("Content-Length"), 10, 64)
	return err == nil && e.Method != http.MethodHead && e.Status >= 200 && e.Status != 204 && e.Status/100 != 3 && e.Truncated == "" &&
		stated > int64(len(e.Response.Body))
}

// isPlain tells a text that is not in its content coding, if that has no mark of its own: it cannot be decoded.
func isPlain(e *lab.Exchange) bool {
	coding := codingOf(&e.Response)
	if coding != "br" && coding != "deflate" || e.Truncated != "" || !utf8.Valid(e.Response.Body) {
		return false
	}
	r, err := inject.NewDecoder(coding, bytes.NewReader(e.Response.Body))
	if err != nil {
		return false
	}
	defer r.Close()
	_, err = io.CopyN(io.Discard, r, codingSeen)
	return err != nil && err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF)
}

// isDecoded tells a body that is not in its content coding, if that has a mark of its own.
func isDecoded(coding string, body []byte) bool {
	switch strings.ToLower(strings.TrimSpace(coding)) {
	case "gzip", "x-gzip":
		return len(body) > 0 && !isGzip(body)
	case "zstd":
		return len(body) > 0 && !bytes.HasPrefix(body, []byte(zstdMagic)) && !bytes.HasPrefix(body, []byte(zstdDictionary))
	}
	return false
}

// ours tells whether this program wrote the file: if so, every response has its request.
func (ld *loader) ours() bool { return len(ld.sidecars) > 0 }
