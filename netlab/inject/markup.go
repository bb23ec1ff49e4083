package inject

import (
	"bytes"
	"strings"
)

// maxTag bounds a tag that is held back to be changed: the srcdoc of an <iframe> is a document. A
// longer tag stays unchanged.
const maxTag = 1 << 20

// markup follows the tokeniser of HTML (WHATWG HTML, section 13.2.5) over a document, piece by
// piece, to find the start tags of <iframe> and <meta>, which change rewrites. Everything else is
// returned at once. The text must be in an encoding in which the bytes of ASCII mean ASCII.
type markup struct {
	// change returns what replaces a tag, or nil; from is the tag's place in what feed got.
	change func(tag []byte, name string, from int) []byte

	state   markupState
	held    []byte // from the "<" of what may be a tag to be changed
	holding bool
	name    []byte // of the tag that is being read, at most len("plaintext")+1
	closing bool
	raw     string // the element whose content is text: "script", …
	matched int    // bytes of its end tag's name that were found
	// The following are for a script, in which a comment may hide </script>.
	escape int // 1 after "<!--", 2 after a "<script" in that
	dashes int
	opens  bool // the matched name follows "<", not "</"
}

type markupState uint8

const (
	inData markupState = iota
	afterLess
	afterLessSlash
	inTagName
	beforeAttribute
	inAttribute
	afterAttribute
	beforeValue
	inDouble
	inSingle
	inBare
	afterBang
	afterBangDash
	commentStart
	commentStartDash
	inComment
	commentDash
	commentDashes
	commentBang
	inBogus
	inRaw
	rawLess
	rawName
	rawBang
	rawBangDash
	inPlain // <plaintext> never ends
)

// rawElements hold text, not markup, where scripts run.
var rawElements = [...]string{"script", "style", "textarea", "title", "iframe", "noscript", "xmp", "noembed", "noframes"}

// feed takes the next piece of a document and returns what may be sent, which may share b's
// memory.
func (m *markup) feed(b []byte, eof bool) []byte {
	seen := len(m.held)
	if seen > 0 {
		b = append(m.held, b...)
		m.held = nil
	}
	var out []byte
	sent, from := 0, 0 // b[:sent] is in out; a held tag begins at from
	for i := seen; i < len(b); {
		if n := m.skip(b[i:]); n > 0 {
			i += n
			continue
		}
		c := b[i]
		if m.state == inData { // skip stopped at "<"
			from = i
		}
		again := m.step(c)
		if !again {
			i++
		}
		if m.state == inData && m.holding || m.state == inRaw && m.holding { // its ">"
			m.holding = false
			tag := b[from:i]
			if changed := m.change(tag, string(m.name), from); changed != nil {
				out = append(append(out, b[sent:from]...), changed...)
				sent = i
			}
		}
	}
	end := len(b)
	if m.mayHold() && !eof && len(b)-from <= maxTag {
		end = from
		m.held = bytes.Clone(b[from:])
	} else {
		m.holding = false
	}
	if out == nil {
		return b[:end]
	}
	return append(out, b[sent:end]...)
}

// mayHold tells whether the tag that is being read is, or may become, one that change rewrites.
func (m *markup) mayHold() bool {
	switch m.state {
	case afterLess:
		return true
	case inTagName:
		return !m.closing && (strings.HasPrefix("iframe", string(m.name)) || strings.HasPrefix("meta", string(m.name)))
	}
	return m.holding
}

// skip returns how many bytes at the front of b change nothing.
func (m *markup) skip(b []byte) int {
	var n int
	switch m.state {
	case inData:
		n = bytes.IndexByte(b, '<')
	case inComment:
		n = bytes.IndexByte(b, '-')
	case inBogus:
		n = bytes.IndexByte(b, '>')
	case inDouble:
		n = bytes.IndexByte(b, '"')
	case inSingle:
		n = bytes.IndexByte(b, '\'')
	case inRaw:
		if m.escape > 0 {
			return 0
		}
		n = bytes.IndexByte(b, '<')
	case inPlain:
		n = -1
	default:
		return 0
	}
	if n < 0 {
		return len(b)
	}
	return n
}

// step takes one byte; again asks for the same byte in the new state.
func (m *markup) step(c byte) (again bool) {
	switch m.state {
	case inData:
		m.state = afterLess
	case afterLess:
		switch {
		case isLetter(c):
			m.begin(false)
			return true
		case c == '/':
			m.state = afterLessSlash
		case c == '!':
			m.state = afterBang
		case c == '?':
			m.state = inBogus
		default:
			m.state = inData
			return true
		}
	case afterLessSlash:
		switch {
		case isLetter(c):
			m.begin(true)
			return true
		case c == '>':
			m.state = inData
		default:
			m.state = inBogus
			return true
		}
	case inTagName, beforeAttribute, inAttribute, afterAttribute, beforeValue, inDouble, inSingle, inBare:
		return m.stepTag(c)
	case inRaw, rawLess, rawName, rawBang, rawBangDash:
		return m.stepRaw(c)
	default:
		return m.stepComment(c)
	}
	return false
}

func (m *markup) begin(closing bool) {
	m.state, m.closing, m.name = inTagName, closing, m.name[:0]
}

// stepTag is step inside a tag.
func (m *markup) stepTag(c byte) (again bool) {
	switch m.state {
	case inTagName:
		if isSpace(c) || c == '/' || c == '>' {
			name := string(m.name)
			m.holding = !m.closing && (name == "iframe" || name == "meta")
			m.state = beforeAttribute
			return true
		}
		if len(m.name) <= len("plaintext") {
			m.name = append(m.name, lower(c))
		}
	case beforeAttribute:
		switch {
		case c == '>':
			m.endTag()
		case !isSpace(c) && c != '/':
			m.state = inAttribute // even "=" begins a name here
		}
	case inAttribute, afterAttribute:
		switch {
		case c == '>':
			m.endTag()
		case c == '/':
			m.state = beforeAttribute
		case c == '=':
			m.state = beforeValue
		case isSpace(c):
			m.state = afterAttribute
		default:
			m.state = inAttribute
		}
	case beforeValue:
		switch {
		case c == '>':
			m.endTag()
		case c == '"':
			m.state = inDouble
		case c == '\'':
			m.state = inSingle
		case !isSpace(c):
			m.state = inBare
		}
	case inDouble, inSingle: // skip stops at the quote
		m.state = beforeAttribute
	case inBare:
		switch {
		case c == '>':
			m.endTag()
		case isSpace(c):
			m.state = beforeAttribute
		}
	}
	return false
}

// endTag goes on behind a tag.
func (m *markup) endTag() {
	m.state = inData
	if m.closing {
		return
	}
	name := string(m.name)
	if name == "plaintext" {
		m.state = inPlain
	}
	for _, raw := range rawElements {
		if name == raw {
			m.state, m.raw, m.escape, m.dashes = inRaw, raw, 0, 0
		}
	}
}

// stepRaw is step inside an element whose content is text.
func (m *markup) stepRaw(c byte) (again bool) {
	switch m.state {
	case inRaw:
		switch {
		case c == '<':
			m.state, m.dashes = rawLess, 0
		case c == '-':
			m.dashes++
		case c == '>' && m.dashes >= 2:
			m.escape, m.dashes = 0, 0
		default:
			m.dashes = 0
		}
	case rawLess:
		script := m.raw == "script"
		switch {
		case c == '/':
			m.state, m.matched, m.opens = rawName, 0, false
		case script && m.escape == 0 && c == '!':
			m.state = rawBang
		case script && m.escape == 1 && isLetter(c):
			m.state, m.matched, m.opens = rawName, 0, true
			return true
		default:
			m.state = inRaw
			return true
		}
	case rawName:
		switch {
		case m.matched < len(m.raw) && lower(c) == m.raw[m.matched]:
			m.matched++
			return false
		case m.matched < len(m.raw) || !isSpace(c) && c != '/' && c != '>':
			m.state = inRaw
		case m.opens:
			m.state, m.escape = inRaw, 2
		case m.escape == 2:
			m.state, m.escape = inRaw, 1
		default:
			m.state, m.closing = beforeAttribute, true
		}
		return true
	case rawBang, rawBangDash:
		switch {
		case c != '-':
			m.state = inRaw
			return true
		case m.state == rawBang:
			m.state = rawBangDash
		default:
			m.state, m.escape, m.dashes = inRaw, 1, 2
		}
	}
	return false
}

// stepComment is step inside a comment, a doctype or what is read as a comment.
func (m *markup) stepComment(c byte) (again bool) {
	switch m.state {
	case afterBang:
		if c != '-' {
			m.state = inBogus
			return true
		}
		m.state = afterBangDash
	case afterBangDash:
		if c != '-' {
			m.state = inBogus
			return true
		}
		m.state = commentStart
	case inBogus: // skip stops at ">"
		m.state = inData
	case inComment: // skip stops at "-"
		m.state = commentDash
	default:
		switch {
		case c == '>' && m.state != commentDash && m.state != inComment:
			m.state = inData
		case c == '-' && m.state == commentStart:
			m.state = commentStartDash
		case c == '-' && m.state == commentBang:
			m.state = commentDash
		case c == '-':
			m.state = commentDashes
		case c == '!' && m.state == commentDashes:
			m.state = commentBang
		default:
			m.state = inComment
			return true
		}
	}
	return false
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
