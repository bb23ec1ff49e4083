package inject

import (
	"bytes"
	"strings"
)

// place finds where in a document the script goes: after the byte order mark, comments, doctype,
// <html> and <head>, if they are there, so that nothing of the page runs before the script and
// the doctype keeps its effect. text is ASCII (or UTF-16 viewed as one byte per unit). ok is false
// while more bytes are needed; root tells whether <html> or <head> was found.
func place(text []byte, eof bool) (at int, root, ok bool) {
	i := 0
	for {
		for i < len(text) && isSpace(text[i]) {
			i++
		}
		rest := text[i:]
		switch {
		case len(rest) == 0:
			return i, root, eof
		case rest[0] != '<':
			return i, root, true
		case hasFold(rest, "<!--"):
			n := commentEnd(rest)
			if n < 0 {
				return i, root, eof
			}
			i += n
		case hasFold(rest, "<!") && len(rest) > 2 && rest[2] != '-', hasFold(rest, "<?"), hasFold(rest, "<!-") && len(rest) > 3:
			n := bytes.IndexByte(rest, '>') // doctype, XML declaration, bogus comment
			if n < 0 {
				return i, root, eof
			}
			i += n + 1
		case isTag(rest, "html"):
			n := tagEnd(rest)
			if n < 0 {
				return i, root, eof
			}
			i, root = i+n, true
		case isTag(rest, "head"):
			n := tagEnd(rest)
			if n < 0 {
				return i, root, eof
			}
			return i + n, true, true
		case !eof && len(rest) < len("<html>"):
			return i, root, false // may still become one of the above
		default:
			return i, root, true
		}
	}
}

// isOpen tells a text that begins with a comment, a doctype or an XML declaration that does not end.
func isOpen(text []byte) bool {
	if hasFold(text, "<!--") {
		return commentEnd(text) < 0
	}
	return (hasFold(text, "<!") || hasFold(text, "<?")) && bytes.IndexByte(text, '>') < 0
}

// placeXML finds where in an XML document the script goes: behind the root's start tag, whatever prefix its name has. ok is
// false while more bytes are needed; root tells whether the root has the local name that is wanted, and can have the script.
func placeXML(text []byte, name string, eof bool) (at int, root, ok bool) {
	for i := 0; ; {
		for i < len(text) && isSpace(text[i]) {
			i++
		}
		rest, n := text[i:], -1
		switch {
		case len(rest) == 0:
			return i, false, eof
		case rest[0] != '<':
			return i, false, true
		case bytes.HasPrefix(rest, []byte("<?")):
			n = endOf(rest, "?>")
		case bytes.HasPrefix(rest, []byte("<!--")):
			n = endOf(rest, "-->")
		case bytes.HasPrefix(rest, []byte("<!")):
			n = doctypeEnd(rest)
		default:
			if n = tagEnd(rest); n < 0 {
				return i, false, eof
			}
			local := rest[1:bytes.IndexAny(rest, " \t\r\n/>")]
			local = local[bytes.LastIndexByte(local, ':')+1:]
			return i + n, string(local) == name && rest[n-2] != '/', true
		}
		if n < 0 {
			return i, false, eof
		}
		i += n
	}
}

// endOf returns the length of what ends with a text, or −1.
func endOf(b []byte, end string) int {
	if n := bytes.Index(b, []byte(end)); n >= 0 {
		return n + len(end)
	}
	return -1
}

// doctypeEnd returns the length of an XML doctype, which may have declarations in brackets (XML 1.0, 2.8), or −1 if it is
// incomplete.
func doctypeEnd(b []byte) int {
	var quote byte
	for i, depth := 0, 0; i < len(b); i++ {
		switch c := b[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case bytes.HasPrefix(b[i:], []byte("<!--")):
			n := endOf(b[i:], "-->")
			if n < 0 {
				return -1
			}
			i += n - 1
		case c == '"' || c == '\'':
			quote = c
		case c == '[':
			depth++
		case c == ']':
			depth--
		case c == '>' && depth <= 0:
			return i + 1
		}
	}
	return -1
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' }

func hasFold(b []byte, prefix string) bool {
	return len(b) >= len(prefix) && bytes.EqualFold(b[:len(prefix)], []byte(prefix))
}

func isTag(b []byte, name string) bool {
	n := 1 + len(name)
	return hasFold(b, "<"+name) && len(b) > n && (isSpace(b[n]) || b[n] == '>' || b[n] == '/')
}

// tagEnd returns the length of the start tag at the front of b, or −1 if the tag is incomplete. A
// ">" inside quotes does not end it.
func tagEnd(b []byte) int {
	var quote byte
	for i, c := range b {
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case (c == '"' || c == '\'') && i > 0 && precededByEquals(b[:i]):
			quote = c
		case c == '>':
			return i + 1
		}
	}
	return -1
}

// precededByEquals tells whether a quote opens a value: it does only after "=".
func precededByEquals(b []byte) bool {
	b = bytes.TrimRight(b, " \t\r\n\f")
	return len(b) > 0 && b[len(b)-1] == '='
}

// commentEnd returns the length of the comment at the front of b, by the rules of HTML's tokeniser,
// or −1 if the comment is incomplete.
func commentEnd(b []byte) int {
	switch {
	case hasFold(b, "<!-->"):
		return len("<!-->")
	case hasFold(b, "<!--->"):
		return len("<!--->")
	}
	for i := len("<!--"); ; i++ {
		n := bytes.Index(b[i:], []byte("--"))
		if n < 0 {
			return -1
		}
		if i += n; hasFold(b[i:], "-->") {
			return i + len("-->")
		}
		if hasFold(b[i:], "--!>") {
			return i + len("--!>")
		}
	}
}

// looksHTML tells whether a body without a type is a document, by the first signatures of the
// WHATWG's MIME Sniffing.
func looksHTML(text []byte) bool {
	text = bytes.TrimLeft(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), " \t\r\n\f")
	return hasFold(text, "<!doctype html") || isTag(text, "html") || isTag(text, "head")
}

// mayBeHTML tells whether more bytes could make looksHTML true.
func mayBeHTML(text []byte) bool {
	text = bytes.TrimLeft(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), " \t\r\n\f")
	if len(text) >= len("<!doctype html") {
		return false
	}
	for _, signature := range []string{"<!doctype html", "<html>", "<head>"} {
		if len(text) == 0 || hasFold([]byte(signature), string(text)) {
			return true
		}
	}
	return false
}

// metaCharset finds the encoding that a document declares in its first 1024 bytes (HTML, prescan a byte stream to
// determine its encoding).
func metaCharset(text []byte) string {
	text = text[:min(len(text), 1024)]
	for i := 0; ; {
		n := bytes.IndexByte(text[i:], '<')
		if n < 0 {
			return ""
		}
		i += n
		rest := text[i:]
		end := -1
		switch {
		case hasFold(rest, "<!--"):
			end = commentEnd(rest)
		case len(rest) > 1 && isLetter(rest[1]), len(rest) > 2 && rest[1] == '/' && isLetter(rest[2]):
			end = tagEnd(rest)
		case len(rest) > 1 && (rest[1] == '!' || rest[1] == '/' || rest[1] == '?'):
			if end = bytes.IndexByte(rest, '>'); end >= 0 {
				end++
			}
		default:
			end = 1
		}
		if end < 0 {
			return ""
		}
		if isTag(rest, "meta") {
			if charset := declared(strings.ToLower(charsetOf(rest[:end]))); charset != "" {
				return charset
			}
		}
		i += end
	}
}

// charsetOf returns what a <meta> element says of the encoding, if it does.
func charsetOf(tag []byte) string {
	list := attributes(tag)
	if a, ok := find(list, "charset"); ok {
		return strings.TrimSpace(string(a.value(tag)))
	}
	kind, _ := find(list, "http-equiv")
	content, ok := find(list, "content")
	if !ok || !strings.EqualFold(string(kind.value(tag)), "content-type") {
		return ""
	}
	for rest := string(content.value(tag)); ; { // HTML, extracting a character encoding from a meta element
		at := strings.Index(strings.ToLower(rest), "charset")
		if at < 0 {
			return ""
		}
		rest = strings.TrimLeft(rest[at+len("charset"):], " \t\r\n\f")
		value, ok := strings.CutPrefix(rest, "=")
		if !ok {
			continue
		}
		value = strings.TrimLeft(value, " \t\r\n\f")
		if value != "" && (value[0] == '"' || value[0] == '\'') {
			value, _, ok = strings.Cut(value[1:], value[:1])
			if !ok {
				return ""
			}
			return value
		}
		if end := strings.IndexAny(value, " \t\r\n\f;"); end >= 0 {
			value = value[:end]
		}
		return value
	}
}

// declared returns the encoding that a browser uses for a name in a <meta> element, or "".
func declared(name string) string {
	switch name {
	case "utf-16", "utf-16le", "utf-16be", "unicode", "utf8":
		return "utf-8" // the prescan read it as bytes, so it cannot be UTF-16
	case "x-user-defined":
		return "windows-1252"
	}
	if !isLabel(name) {
		return ""
	}
	return name
}

// strictProlog tells whether a script starts with a "use strict" directive, after comments.
func strictProlog(text []byte) bool {
	for {
		text = bytes.TrimLeft(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), " \t\r\n\f\v")
		switch {
		case bytes.HasPrefix(text, []byte("//")):
			n := bytes.IndexAny(text, "\r\n")
			if n < 0 {
				return false
			}
			text = text[n:]
		case bytes.HasPrefix(text, []byte("/*")):
			n := bytes.Index(text, []byte("*/"))
			if n < 0 {
				return false
			}
			text = text[n+2:]
		default:
			return bytes.HasPrefix(text, []byte(`"use strict"`)) || bytes.HasPrefix(text, []byte(`'use strict'`))
		}
	}
}
