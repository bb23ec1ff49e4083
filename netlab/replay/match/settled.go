package match

import (
	"fmt"
	"slices"
	"strings"
)

// settles returns why any of the entries is the right answer to r although r differs from
// them, or "" if it may be the wrong one. The entries are those of r's bucket with r's path.
// whatever tells that the answer would be the right one for any query and body: it tells the page nothing.
func settles(list []*Entry, r *Request, h Header) (why string, whatever bool) {
	switch {
	case len(list) == 0:
		return "", false
	case isUnread(h):
		return "the page cannot read the answer", true
	case all(list, (*Entry).hasNoContent):
		return "the answer has no content", true
	case all(list, (*Entry).isAcknowledgement):
		return "the answer says only that the request arrived", true
	}
	asked := map[string]bool{}
	first := list[0]
	for _, en := range list {
		if en.answerSum != first.answerSum || en.Status != first.Status || en.Truncated != "" {
			return "", false
		}
		asked[en.request.url+" "+en.request.sum] = true
	}
	if len(asked) < 2 || first.Status/100 != 2 {
		return "", false
	}
	return fmt.Sprintf("%d different requests for this path were recorded, all with the same answer", len(asked)), false
}

func all(list []*Entry, holds func(*Entry) bool) bool {
	return !slices.ContainsFunc(list, func(en *Entry) bool { return !holds(en) })
}

// isUnread tells a request whose answer no script can read: a report, or one that a script sent without CORS. What a
// browser reports a minute later names no destination.
func isUnread(h Header) bool {
	dest := h.Get("Sec-Fetch-Dest")
	kind, _, _ := strings.Cut(strings.ToLower(h.Get("Content-Type")), ";")
	switch strings.TrimSpace(kind) {
	case "application/reports+json", "application/csp-report", "text/ping":
		return true
	}
	return strings.EqualFold(dest, "report") || strings.EqualFold(dest, "empty") && strings.EqualFold(h.Get("Sec-Fetch-Mode"), "no-cors")
}

// IsBeacon tells a request that sends something and whose answer no script can read: any answer to it is right, also
// one that nobody recorded. The answer to a GET without CORS may be shown all the same, by way of a service worker.
func IsBeacon(method string, h Header) bool { return method == "POST" && isUnread(h) }

// IsBrowsersOwn tells a request that no page has made: what a browser asks by itself for suggestions, lists and news.
func IsBrowsersOwn(h Header) bool {
	mode := h.Get("Sec-Fetch-Mode")
	return strings.EqualFold(h.Get("Sec-Fetch-Site"), "none") && mode != "" && !strings.EqualFold(mode, "navigate")
}

// hasNoContent tells an answer that tells its page nothing but that it came: an empty one,
// or a picture that has room for one pixel only.
func (en *Entry) hasNoContent() bool {
	const pixel = 100 // bytes; the smallest GIF has 26, the smallest PNG 67
	switch size := len(en.Response.Body); {
	case en.Status/100 != 2 || en.Truncated != "" || en.Method == "HEAD":
		return false
	case size == 0:
		return true
	default:
		return size <= pixel && strings.HasPrefix(strings.ToLower(en.Response.Get("Content-Type")), "image/")
	}
}

// samePath tells that two paths are equal but for values of time and chance.
func samePath(a, b *Request, ignored *Ignored) bool {
	if len(a.path) != len(b.path) {
		return false
	}
	for i := range a.path {
		if a.path[i] != b.path[i] && !(ignored.passes(a, i) && ignored.passes(b, i)) {
			return false
		}
	}
	return true
}
