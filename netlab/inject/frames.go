package inject

import (
	"bytes"
	"encoding/base64"
	"net/url"
	"strings"
)

// maxDepth bounds how deep documents in attributes are changed: each level escapes the script again.
const maxDepth = 4

// maxFrames bounds the frames of a document into which the script is put: a tag of 20 bytes would grow by a
// thousand times that.
const maxFrames = 500

// frames puts the script into the frames of one document.
type frames struct {
	plan *Plan
	left int // of maxFrames
}

// edit replaces text[at:end].
type edit struct {
	at, end int
	text    string
}

// apply returns text with edits, which are in order, or nil if there are none.
func apply(text []byte, edits []edit) []byte {
	if len(edits) == 0 {
		return nil
	}
	var out []byte
	done := 0
	for _, e := range edits {
		out = append(append(out, text[done:e.at]...), e.text...)
		done = e.end
	}
	return append(out, text[done:]...)
}

// edits puts the script into the document of an <iframe>, in its srcdoc or in a data URL, and into
// the frames in it. There are none for a tag without one, or with one that may not run scripts.
func (f *frames) edits(tag []byte, depth int) []edit {
	if f.left == 0 {
		return nil
	}
	list := attributes(tag)
	if box, ok := find(list, "sandbox"); ok && !bytes.Contains(bytes.ToLower(box.value(tag)), []byte("allow-scripts")) {
		return nil
	}
	if doc, ok := find(list, "srcdoc"); ok {
		return f.srcdoc(tag, doc, depth)
	}
	src, ok := find(list, "src")
	if !ok || src.start == src.end {
		return nil
	}
	view, _ := decoded(src.value(tag))
	if bytes.IndexByte(view, 0xff) >= 0 {
		return nil // a character that the view does not have
	}
	changed, ok := f.plan.script.dataURL(string(view), f.plan.origin)
	if !ok {
		return nil
	}
	f.left--
	return []edit{{src.start, src.end, `"` + escapeAttribute(changed) + `"`}}
}

// srcdoc returns the edits of a srcdoc.
func (f *frames) srcdoc(tag []byte, doc attribute, depth int) (edits []edit) {
	if doc.start == doc.end {
		return nil
	}
	text, start := doc.value(tag), doc.start
	if doc.quote != 0 {
		start++
	}
	view, offsets := decoded(text)
	for _, e := range f.document(view, depth+1) {
		edits = append(edits, edit{start + offsets[e.at], start + offsets[e.end], escapeAttribute(e.text)})
	}
	if doc.quote != 0 {
		return edits
	}
	// In an unquoted value a quote is text. The script needs a quoted value.
	quoted := []edit{{doc.start, doc.start, `"`}}
	at := doc.start
	quotes := func(end int) {
		for ; at < end; at++ {
			if tag[at] == '"' {
				quoted = append(quoted, edit{at, at + 1, "&#34;"})
			}
		}
	}
	for _, e := range edits {
		quotes(e.at)
		quoted, at = append(quoted, e), e.end
	}
	quotes(doc.end)
	return append(quoted, edit{doc.end, doc.end, `"`})
}

// document returns the edits of a document that is in an attribute, and of the frames in it.
func (f *frames) document(view []byte, depth int) []edit {
	f.left--
	at, _, _ := place(view, true)
	edits := []edit{{at, at, "<script>" + f.plan.script.page + "</script>"}}
	if depth >= maxDepth {
		return edits
	}
	m := markup{change: func(tag []byte, name string, from int) []byte {
		if name != "iframe" {
			return nil
		}
		for _, e := range f.edits(tag, depth) {
			edits = append(edits, edit{from + e.at, from + e.end, e.text})
		}
		return nil
	}}
	m.feed(view, true)
	return edits
}

// dataURL puts the script into a document that is a data URL (RFC 2397, and the Fetch standard's data: URL
// processor). Such a document has no origin: its script reaches the box at that of the document around it. It returns
// false for any other URL.
func (s *Script) dataURL(raw, origin string) (string, bool) {
	raw = strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(strings.Trim(raw, " \t\n\f\r"))
	raw, fragment, hasFragment := strings.Cut(raw, "#")
	head, body, ok := strings.Cut(raw, ",")
	if !ok || len(head) < 5 || !strings.EqualFold(head[:5], "data:") {
		return "", false
	}
	params := head[5:]
	i := strings.LastIndexByte(params, ';')
	isBase64 := i >= 0 && strings.EqualFold(strings.TrimSpace(params[i+1:]), "base64")
	if isBase64 {
		params = params[:i]
	}
	if mimeOf(params) != "text/html" {
		return "", false
	}
	text := []byte(unescape(body))
	if isBase64 {
		var err error
		plain := strings.NewReplacer(" ", "", "=", "").Replace(string(text))
		if text, err = base64.RawStdEncoding.DecodeString(plain); err != nil {
			return "", false
		}
	}
	if charset := metaCharset(text); charset != "" && charsetParam(params) == "" {
		params += ";charset=" + charset
	}
	at, _, _ := place(text, true)
	tag := "<script>"
	if origin != "" {
		tag = `<script data-home="` + escapeAttribute(origin) + `">`
	}
	text = splice(text, at, []byte(tag+s.page+"</script>"))
	out := "data:" + params + ";base64," + base64.StdEncoding.EncodeToString(text)
	if hasFragment {
		out += "#" + fragment
	}
	return out, true
}

// unescape decodes the percent-encoded bytes; what is none stays.
func unescape(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if v, err := url.PathUnescape(s[i : i+3]); err == nil {
				b.WriteString(v)
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
