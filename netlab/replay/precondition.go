package replay

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"eidetic/internal/lab"
)

// unmet evaluates If-Match and If-Unmodified-Since (RFC 9110, 13.1.1 and 13.1.4) against what the
// recording knows of the resource. It returns why the condition is not met; "" if it is, or if the
// recording has nothing to compare it with. fields are those of the answer.
func (s *Session) unmet(en *entry, o *output, fields []lab.HeaderField) string {
	h := o.r.Header
	if h["If-Match"] == nil && h["If-Unmodified-Since"] == nil || en.Status/100 != 2 {
		return "" // the recorded answer is that to the condition
	}
	isRead := o.r.Method == http.MethodGet || o.r.Method == http.MethodHead
	if want := strings.Join(h["If-Match"], ","); want != "" { // If-Unmodified-Since is ignored then
		var tags []string
		if isRead {
			tags = tagsOf(en.Response.Get("ETag"), (&lab.Message{Header: fields}).Get("ETag"))
		} else {
			// The answer to a change has the validator of what came after it.
			tags = tagsOf(en.Request.Get("If-Match"))
			for _, read := range s.p.index.Recorded(http.MethodGet, en.URL) {
				tags = append(tags, tagsOf(read.Response.Get("ETag"))...)
			}
		}
		if len(tags) == 0 || matchesTag(want, tags) {
			return ""
		}
		return fmt.Sprintf("412, since If-Match is %s and the recording has %s", want, strings.Join(tags, ", "))
	}
	since, err := http.ParseTime(h.Get("If-Unmodified-Since"))
	if err != nil {
		return "" // RFC 9110, 13.1.4: such a field is ignored
	}
	changed, ok := s.lastModified(en, isRead)
	if !ok || !changed.After(since) {
		return ""
	}
	return fmt.Sprintf("412, since If-Unmodified-Since is %s and what was recorded changed at %s", since.UTC().Format(http.TimeFormat),
		changed.UTC().Format(http.TimeFormat))
}

// lastModified is the date, moved as the device sees it, from which a condition on the resource of
// an exchange is met.
func (s *Session) lastModified(en *entry, isRead bool) (time.Time, bool) {
	var text string
	switch {
	case isRead:
		text = en.Response.Get("Last-Modified")
	case en.Request.Get("If-Unmodified-Since") != "":
		text = en.Request.Get("If-Unmodified-Since")
	default:
		for _, read := range s.p.index.Recorded(http.MethodGet, en.URL) {
			text = read.Response.Get("Last-Modified")
			break
		}
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return time.Time{}, false
	}
	if !s.o.Wall.IsZero() && !en.Wall.IsZero() {
		at = at.Add(s.steady(en)).Truncate(time.Second) // as prepareFields and shifter.date make it
	}
	return at, true
}

// tagsOf lists the entity tags of fields, each once.
func tagsOf(fields ...string) (tags []string) {
	for _, field := range fields {
		for tag := range strings.SplitSeq(field, ",") {
			if tag = strings.TrimSpace(tag); tag != "" && (len(tags) == 0 || tags[len(tags)-1] != tag) {
				tags = append(tags, tag)
			}
		}
	}
	return tags
}

// matchesTag compares an If-Match field with the tags that a resource had. The comparison is the
// strong one, except that the box itself makes a tag weak when it changes the content coding: a
// strong tag stands for its weak form too.
func matchesTag(want string, tags []string) bool {
	for tag := range strings.SplitSeq(want, ",") {
		tag = strings.TrimSpace(tag)
		if tag == "*" {
			return true
		}
		for _, have := range tags {
			if isStrong := !strings.HasPrefix(have, "W/"); isStrong && strings.TrimPrefix(tag, "W/") == have {
				return true
			}
		}
	}
	return false
}

// becomePreconditionFailed makes a 412 of an answer (RFC 9110, 15.5.13).
func (a *answer) becomePreconditionFailed() {
	a.status, a.body, a.sum, a.chunks = http.StatusPreconditionFailed, nil, "", nil
	a.fields = setLength(keepFields(a.fields, "date", "etag", "vary", "last-modified", "access-control-allow-origin",
		"access-control-allow-credentials", "access-control-expose-headers"), 0)
}
