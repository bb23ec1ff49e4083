package archive

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"eidetic/internal/lab"
)

// harBody bounds the bytes that a body is decoded to for an export, since a few bytes of a
// hostile recording can decode to gigabytes.
const harBody = 256 << 20

// WriteHAR is ExportHAR without the list.
func WriteHAR(w io.Writer, a *Archive) error {
	_, err := ExportHAR(w, a)
	return err
}

// ExportHAR writes the exchanges as HAR 1.2, with decoded bodies; bytes that are no text are in
// base64. A body that was cut off, or cannot be decoded, is left out, and its comment says so. What
// HAR has no field for is in fields named _eidetic, so that an import gives the same archive. It returns
// what other readers of the HAR will lack, a line each, up to a bound.
func ExportHAR(w io.Writer, a *Archive) (lost []string, err error) {
	if err := writeHAR(w, a, harBody, harLong, &lost); err != nil {
		return nil, fmt.Errorf("export HAR: %w", err)
	}
	return lost, nil
}

// harLong is the size from which on a body is written piece by piece.
const harLong = 1 << 20

// mostLines bounds the list of what an export lacks.
const mostLines = 200

// writeHAR writes the entries one by one, since the bodies together may not fit into memory.
func writeHAR(w io.Writer, a *Archive, most, long int64, lost *[]string) error {
	f := harFile{Log: &harLog{Version: "1.2", Creator: harCreator{Name: "eidetic"}, Entries: []harEntry{}, Own: ownLog(a)}}
	for i, p := range a.pages {
		p.Wall = sane(p.Wall)
		f.Log.Pages = append(f.Log.Pages, harPage{
			Started: harLoose(p.Wall.Format(time.RFC3339Nano)), ID: harPageID(i), Title: harLoose(cmp.Or(p.Title, p.URL)), Own: marshal(p),
		})
	}
	frame, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	const entries = `"entries": [` // inside a text the quotes would be escaped
	at := bytes.Index(frame, []byte(entries)) + len(entries)
	if _, err := w.Write(frame[:at]); err != nil {
		return err
	}
	between, limit := "", NewDecodeLimit(a)
	for _, e := range a.exchanges {
		late := &lateTexts{from: long}
		h := harEntryOf(e, most, late)
		if n := h.Response.Content.Size; codingOf(&e.Response) != "" && limit.Take(int64(n)) != nil {
			most = 0 // of all that follow: their comments say that they are left out
		}
		for _, said := range []string{h.Response.Content.Comment, string(h.Comment)} {
			if said != "" && !strings.HasPrefix(said, harCut) && len(*lost) < mostLines {
				*lost = append(*lost, fmt.Sprintf("%d %s %.200s: %s", e.Order, e.Method, e.URL, said))
			}
		}
		h.PageRef = pageRef(a.pages, e.Wall)
		text, err := json.MarshalIndent(h, "      ", "  ")
		if err != nil {
			return err
		}
		if _, err := io.WriteString(w, between+"\n      "); err != nil {
			return err
		}
		if err := late.writeTo(w, text); err != nil {
			return err
		}
		between = ","
	}
	end := ""
	if between != "" {
		end = "\n    "
	}
	_, err = fmt.Fprintf(w, "%s%s\n", end, frame[at:])
	return err
}

// harPageID names the page with an index.
func harPageID(i int) harLoose { return harLoose(fmt.Sprint("page_", i+1)) }

// pageRef names the page that was visited last when a request was sent, or "".
func pageRef(pages []Page, sent time.Time) (id harLoose) {
	var began time.Time
	for i, p := range pages {
		if !p.Wall.After(sent) && (id == "" || p.Wall.After(began)) {
			id, began = harPageID(i), p.Wall
		}
	}
	return id
}

func harEntryOf(e *lab.Exchange, most int64, late *lateTexts) harEntry {
	const perMs = harFloat(time.Millisecond)
	end := e.FirstByte
	if n := len(e.Chunks); n > 0 {
		end = max(end, e.Chunks[n-1].At)
	}
	version := map[string]string{"http/1.0": "HTTP/1.0", "http/1.1": "HTTP/1.1", "h2": "HTTP/2", "h3": "HTTP/3"}[e.Protocol]
	h := harEntry{
		Started: harScalar(e.Wall.UTC().Format(time.RFC3339Nano)), Time: harFloat(end) / perMs,
		Timings: harTimings{Wait: harFloat(e.FirstByte) / perMs, Receive: harFloat(end-e.FirstByte) / perMs},
		Request: harRequest{
			Method: e.Method, URL: e.URL, HTTPVersion: version, Headers: harPairs(e.Request.Header),
			Cookies: []harPair{}, QueryString: queryPairs(e.URL), HeadersSize: -1, BodySize: harInt(len(e.Request.Body)),
		},
		Response: harResponse{
			Status: harInt(e.Status), StatusText: e.Reason, HTTPVersion: version, Headers: harPairs(e.Response.Header),
			Cookies: []harPair{}, RedirectURL: e.Response.Get("Location"), HeadersSize: -1, BodySize: harInt(len(e.Response.Body)),
		},
	}
	if e.IsFailed() {
		h.Response.Error = brokenOrigin
	}
	if e.Server.IsValid() {
		h.Server = harScalar(e.Server.Addr().String())
	}
	if len(e.Request.Body) > 0 {
		body := func(w io.Writer) (int64, error) { n, err := w.Write(e.Request.Body); return int64(n), err }
		text, encoding, _, _ := late.harText(body, "") // a body in memory does not fail
		h.Request.PostData = &harPost{MIME: e.Request.Get("Content-Type"), Text: harString(text), Encoding: encoding}
	}
	h.Response.Content = harContentOf(e, most, late)
	if isSocketExchange(e) {
		h.setSocket(e, most)
	}
	h.Own = marshal(newHAROwn(e, &h.Response.Content, late))
	return h
}

// brokenOrigin is in a HAR the error of an exchange that failed: readers of Chromium's HARs know it.
const brokenOrigin = "net::ERR_CONNECTION_CLOSED"

// queryPairs lists the parameters of a URL in their order.
func queryPairs(raw string) []harPair {
	out := []harPair{}
	for part := range strings.SplitSeq(lab.ParseURL(raw).Query, "&") {
		name, value, _ := strings.Cut(part, "=")
		var err error
		if name, err = url.QueryUnescape(name); err != nil || part == "" {
			continue
		}
		if value, err = url.QueryUnescape(value); err == nil {
			out = append(out, harPair{name, value})
		}
	}
	return out
}

// harCut begins the comment of a body that was cut off; the reason follows in WARC's words.
const harCut = "the body was cut off: "

func harContentOf(e *lab.Exchange, most int64, late *lateTexts) harContent {
	c := harContent{Size: harInt(len(e.Response.Body)), MIME: e.Response.Get("Content-Type")}
	if e.Truncated != "" {
		c.Comment = harCut + e.Truncated
		return c
	}
	text, encoding, size, err := late.harText(func(w io.Writer) (int64, error) { return decodeTo(w, &e.Response, most) }, c.MIME)
	if err != nil {
		c.Comment = "the body is left out: " + err.Error()
		return c
	}
	c.Text, c.Size, c.Encoding = (*harString)(&text), harInt(size), encoding
	return c
}

func harPairs(fields []lab.HeaderField) []harPair {
	out := []harPair{}
	for _, f := range fields {
		out = append(out, harPair(f))
	}
	return out
}

// harText returns a body, which is written twice, as text if it is UTF-8 and declared as nothing else: in charsets such
// as ISO-2022-JP all bytes are ASCII. No text has a zero byte, which JSON would write as six. Of a long body it returns
// the mark.
func (l *lateTexts) harText(body func(io.Writer) (int64, error), contentType string) (text, encoding string, size int64, err error) {
	var judge textJudge
	if size, err = body(&judge); err != nil {
		return "", "", 0, err
	}
	write := inBase64
	charset, _ := charsetOf(contentType)
	if judge.isText() && (charset == "" || charset == "utf-8" || charset == "utf8") {
		write = asText
	} else {
		encoding = "base64"
	}
	again := func(w io.Writer) error { _, err := body(w); return err }
	if size >= l.from {
		_, text = l.add(func(w io.Writer) error { return write(w, again) })
		return text, encoding, size, nil
	}
	var short strings.Builder
	if encoding == "" {
		err = again(&short)
	} else {
		err = inBase64(&short, again)
	}
	return short.String(), encoding, size, err
}
