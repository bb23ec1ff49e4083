package inject

import (
	"bytes"
	"html"
	"strings"
)

// newMarkup changes the rest of a document in place.
func (p *Plan) newMarkup() *markup {
	return &markup{change: func(tag []byte, name string) []byte {
		if name == "meta" {
			return p.metaPolicy(tag)
		}
		return p.srcdoc(tag)
	}}
}

// attribute is one of a start tag: tag[start:end] is its value, with quotes if
// it has them.
type attribute struct {
	name       string
	start, end int
	quote      byte
}

// value is what stands between the quotes.
func (a attribute) value(tag []byte) []byte {
	if a.quote != 0 {
		return tag[a.start+1 : a.end-1]
	}
	return tag[a.start:a.end]
}

// attributes takes a whole start tag apart, as HTML's tokeniser does. Of two
// of one name the first counts.
func attributes(tag []byte) (list []attribute) {
	i := 1
	for i < len(tag) && !isSpace(tag[i]) && tag[i] != '/' && tag[i] != '>' {
		i++
	}
	over := func() bool { return i >= len(tag)-1 } // the last is ">"
	for {
		for !over() && (isSpace(tag[i]) || tag[i] == '/') {
			i++
		}
		if over() {
			return list
		}
		begin := i
		for i++; !over() && !isSpace(tag[i]) && tag[i] != '/' && tag[i] != '='; {
			i++
		}
		a := attribute{name: strings.ToLower(string(tag[begin:i])), start: i, end: i}
		for !over() && isSpace(tag[i]) {
			i++
		}
		if !over() && tag[i] == '=' {
			for i++; !over() && isSpace(tag[i]); {
				i++
			}
			a.start = i
			switch {
			case over():
			case tag[i] == '"' || tag[i] == '\'':
				a.quote = tag[i]
				n := bytes.IndexByte(tag[i+1:], a.quote)
				if n < 0 {
					return list // not a whole tag
				}
				i += n + 2
			default:
				for !over() && !isSpace(tag[i]) {
					i++
				}
			}
			a.end = i
		}
		list = append(list, a)
	}
}

func find(list []attribute, name string) (attribute, bool) {
	for _, a := range list {
		if a.name == name {
			return a, true
		}
	}
	return attribute{}, false
}

// srcdoc puts the script into the document that an <iframe> carries along; nil
// if it has none, or one that may not run scripts.
func (p *Plan) srcdoc(tag []byte) []byte {
	list := attributes(tag)
	doc, ok := find(list, "srcdoc")
	if !ok || doc.start == doc.end {
		return nil
	}
	if box, ok := find(list, "sandbox"); ok && !bytes.Contains(bytes.ToLower(box.value(tag)), []byte("allow-scripts")) {
		return nil
	}
	text := doc.value(tag)
	view, offsets := decoded(text)
	at, _, _ := place(view, true)
	at = offsets[at]
	quote := doc.quote
	out := bytes.Clone(tag[:doc.start])
	if quote == 0 {
		// Without quotes others are text, and the script could not be there.
		text, quote = bytes.ReplaceAll(text, []byte{'"'}, []byte("&#34;")), '"'
		view, offsets = decoded(text)
		at, _, _ = place(view, true)
		at = offsets[at]
	}
	out = append(out, quote)
	out = append(out, text[:at]...)
	out = append(out, p.script.attribute...)
	out = append(out, text[at:]...)
	out = append(out, quote)
	return append(out, tag[doc.end:]...)
}

// decoded views the text of an attribute as it will be read, one byte for each
// character, of which only ASCII is told; offsets say where each comes from,
// and have one more for the end.
func decoded(text []byte) (view []byte, offsets []int) {
	for i := 0; i < len(text); {
		offsets = append(offsets, i)
		if text[i] != '&' {
			view = append(view, text[i])
			i++
			continue
		}
		n := len(text[i:])
		if n > longestReference {
			n = longestReference
		}
		end := bytes.IndexByte(text[i:i+n], ';')
		c := byte('&')
		if end < 0 {
			view = append(view, c)
			i++
			continue
		}
		if s := html.UnescapeString(string(text[i : i+end+1])); len(s) == 1 {
			c = s[0]
		} else if !strings.HasPrefix(s, "&") {
			c = 0xff
		} else {
			end = 0 // no reference
		}
		view = append(view, c)
		i += end + 1
	}
	return view, append(offsets, len(text))
}

const longestReference = len("&CounterClockwiseContourIntegral;")

// metaPolicy lets the script of srcdoc frames, and posts to the box, pass a
// policy in a <meta> element, as allow does for one in the header.
func (p *Plan) metaPolicy(tag []byte) []byte {
	list := attributes(tag)
	kind, ok := find(list, "http-equiv")
	if !ok || !strings.EqualFold(html.UnescapeString(string(kind.value(tag))), "content-security-policy") {
		return nil
	}
	content, ok := find(list, "content")
	if !ok {
		return nil
	}
	policy := html.UnescapeString(string(content.value(tag)))
	for i := range len(policy) {
		if policy[i] >= 0x80 {
			return nil // no policy has these, and they may not be UTF-8
		}
	}
	allowed := allow(policy, p)
	if allowed == policy {
		return nil
	}
	out := append(bytes.Clone(tag[:content.start]), '"')
	out = append(out, escapeAttribute(allowed)...)
	out = append(out, '"')
	return append(out, tag[content.end:]...)
}

// escapeAttribute makes text fit between quotes of either kind.
func escapeAttribute(text string) string {
	return strings.NewReplacer("&", "&amp;", `"`, "&#34;", "'", "&#39;", "<", "&lt;", ">", "&gt;").Replace(text)
}
