package inject

import (
	"bytes"
	"html"
	"strings"
)

// newMarkup changes the rest of a document in place.
func (p *Plan) newMarkup() *markup {
	f := &frames{plan: p, left: maxFrames}
	return &markup{change: func(tag []byte, name string, _ int) []byte {
		if name == "meta" {
			return p.metaPolicy(tag)
		}
		return apply(tag, f.edits(tag, 0))
	}}
}

// attribute is an attribute of a start tag: tag[start:end] is its value, with its quotes if it has
// them.
type attribute struct {
	name       string
	start, end int
	quote      byte
}

// value returns the value without its quotes.
func (a attribute) value(tag []byte) []byte {
	if a.quote != 0 {
		return tag[a.start+1 : a.end-1]
	}
	return tag[a.start:a.end]
}

// attributes takes a complete start tag apart, as HTML's tokeniser does. If a name occurs twice, the
// first attribute counts.
func attributes(tag []byte) (list []attribute) {
	i := 1
	for i < len(tag) && !isSpace(tag[i]) && tag[i] != '/' && tag[i] != '>' {
		i++
	}
	atEnd := func() bool { return i >= len(tag)-1 } // the last byte is ">"
	for {
		for !atEnd() && (isSpace(tag[i]) || tag[i] == '/') {
			i++
		}
		if atEnd() {
			return list
		}
		begin := i
		for i++; !atEnd() && !isSpace(tag[i]) && tag[i] != '/' && tag[i] != '='; {
			i++
		}
		a := attribute{name: strings.ToLower(string(tag[begin:i])), start: i, end: i}
		for !atEnd() && isSpace(tag[i]) {
			i++
		}
		if !atEnd() && tag[i] == '=' {
			for i++; !atEnd() && isSpace(tag[i]); {
				i++
			}
			a.start = i
			switch {
			case atEnd():
			case tag[i] == '"' || tag[i] == '\'':
				a.quote = tag[i]
				n := bytes.IndexByte(tag[i+1:], a.quote)
				if n < 0 {
					return list // the tag is incomplete
				}
				i += n + 2
			default:
				for !atEnd() && !isSpace(tag[i]) {
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

// decoded returns the text of an attribute with its character references decoded: one byte for each
// character, of which only ASCII is exact. offsets say where each byte comes from in the text, and
// have one more for its end.
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

// metaPolicy changes a policy in a <meta> element so that it permits the script of srcdoc frames and
// posts to the box, as allow does for a policy in the header.
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

// escapeAttribute escapes a text for a value in quotes of either kind.
func escapeAttribute(text string) string {
	return strings.NewReplacer("&", "&amp;", `"`, "&#34;", "'", "&#39;", "<", "&lt;", ">", "&gt;").Replace(text)
}
