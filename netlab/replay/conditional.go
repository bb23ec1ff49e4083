package replay

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/replay/match"
)

// asksForLess tells whether a request asks for less than a complete answer.
func asksForLess(h http.Header) bool {
	return h["If-None-Match"] != nil || h["If-Modified-Since"] != nil || h["Range"] != nil
}

// isNotModified evaluates If-None-Match and If-Modified-Since (RFC 9110, 13).
func isNotModified(h http.Header, fields []lab.HeaderField) bool {
	response := lab.Message{Header: fields}
	if want := h.Get("If-None-Match"); want != "" {
		tag := strings.TrimPrefix(response.Get("ETag"), "W/")
		if tag == "" {
			return false
		}
		for _, one := range strings.Split(want, ",") {
			if one = strings.TrimPrefix(strings.TrimSpace(one), "W/"); one == tag || one == "*" {
				return true
			}
		}
		return false
	}
	since, err := http.ParseTime(h.Get("If-Modified-Since"))
	if err != nil {
		return false
	}
	changed, err := http.ParseTime(response.Get("Last-Modified"))
	return err == nil && !changed.After(since)
}

// becomeNotModified makes a 304 of a 200 (RFC 9110, 15.4.5).
func (a *answer) becomeNotModified() {
	a.status, a.body, a.sum, a.chunks = http.StatusNotModified, nil, "", nil
	a.fields = keepFields(a.fields, "cache-control", "content-location", "date", "etag", "expires", "vary", "last-modified", "set-cookie",
		"access-control-allow-origin", "access-control-allow-credentials")
}

// cut answers a Range from a complete body, or a request without one from a 206 that
// holds everything.
func (a *answer) cut(en *entry, h http.Header) {
	asked := h.Get("Range")
	switch {
	case asked == en.AskedRange || a.status != http.StatusOK && en.Part == nil || en.ignoresRanges():
		return
	case asked == "" || !ifRange(h, a.fields):
		if en.Part != nil {
			a.status, a.fields = http.StatusOK, setLength(dropFields(a.fields, "Content-Range", "Content-Length"), len(a.body))
		}
		return
	}
	base, total := 0, fmt.Sprint(len(a.body))
	first, last, verdict := match.ParseRange(asked, len(a.body))
	if en.Part != nil {
		base, total = en.Part.First, fmt.Sprint(en.Part.Total)
		if first, last, verdict = en.Part.Range(asked); en.Part.Total < 0 {
			total = "*"
		}
	}
	switch {
	case verdict == match.RangeUnsatisfiable:
		a.status, a.body, a.sum, a.chunks = http.StatusRequestedRangeNotSatisfiable, nil, "", nil
		a.setContentRange(fmt.Sprintf("bytes */%s", total))
	case verdict == match.RangeGood && first >= base && last < base+len(a.body):
		a.status, a.body, a.sum = http.StatusPartialContent, a.body[first-base:last-base+1], ""
		a.chunks = cutChunks(a.chunks, first-base, len(a.body))
		a.setContentRange(fmt.Sprintf("bytes %d-%d/%s", first, last, total))
	}
}

// ignoresRanges tells whether the origin answered a Range with everything. That from byte 0 on is everything.
func (en *entry) ignoresRanges() bool {
	return en.AskedRange != "" && en.AskedRange != "bytes=0-" && en.Status == http.StatusOK && en.Request.Get("If-Range") == ""
}

// setContentRange replaces Content-Range and Content-Length.
func (a *answer) setContentRange(value string) {
	a.fields = append(dropFields(a.fields, "Content-Range", "Content-Length"), lab.HeaderField{Name: "Content-Range", Value: value})
	a.fields = setLength(a.fields, len(a.body))
}

// ifRange tells whether a request for a part is for the representation that these
// fields describe (RFC 9110, 13.1.5).
func ifRange(h http.Header, fields []lab.HeaderField) bool {
	want := h.Get("If-Range")
	response := lab.Message{Header: fields}
	return want == "" || want == response.Get("ETag") && !strings.HasPrefix(want, "W/") || want == response.Get("Last-Modified")
}

// cutChunks returns the chunks of n bytes from an offset. They start as soon as the
// first byte of the body would have: a server seeks, it does not send what is skipped.
func cutChunks(chunks []lab.Chunk, from, n int) []lab.Chunk {
	var out []lab.Chunk
	var begin time.Duration
	for _, c := range chunks {
		skip := min(from, c.Bytes)
		from -= skip
		size := min(c.Bytes-skip, n)
		if size <= 0 {
			continue
		}
		if out == nil {
			begin = c.At - chunks[0].At
		}
		out = append(out, lab.Chunk{At: c.At - begin, Bytes: size})
		n -= size
	}
	return out
}

func setLength(fields []lab.HeaderField, n int) []lab.HeaderField {
	return append(fields, lab.HeaderField{Name: "Content-Length", Value: strconv.Itoa(n)})
}

// keepFields leaves the fields with these names, in place.
func keepFields(fields []lab.HeaderField, names ...string) []lab.HeaderField {
	return slices.DeleteFunc(fields, func(f lab.HeaderField) bool { return !isNamed(f, names) })
}

// dropFields leaves the fields without these names, in place.
func dropFields(fields []lab.HeaderField, names ...string) []lab.HeaderField {
	return slices.DeleteFunc(fields, func(f lab.HeaderField) bool { return isNamed(f, names) })
}

func isNamed(f lab.HeaderField, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(f.Name, name) })
}
