package match

import (
	"fmt"
	"strings"
)

// settles returns why any of the entries is the right answer to r although r differs from
// them, or "" if it may be the wrong one. The entries are those of r's bucket with r's path.
func settles(list []*Entry, r *Request, h Header) string {
	if len(list) == 0 {
		return ""
	}
	switch dest := strings.ToLower(h.Get("Sec-Fetch-Dest")); {
	case dest == "report", dest == "empty" && strings.EqualFold(h.Get("Sec-Fetch-Mode"), "no-cors"):
		return "the page cannot read the answer"
	}
	empty := true
	for _, en := range list {
		empty = empty && en.hasNoContent()
	}
	if empty {
		return "the answer has no content"
	}
	asked := map[string]bool{}
	first := list[0]
	for _, en := range list {
		if en.answerSum != first.answerSum || en.Status != first.Status || en.Truncated != "" {
			return ""
		}
		asked[en.request.url+" "+en.request.sum] = true
	}
	if len(asked) < 2 || first.Status/100 != 2 {
		return ""
	}
	return fmt.Sprintf("%d different requests for this path were recorded, all with the same answer", len(asked))
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
