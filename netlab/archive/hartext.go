package archive

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// harString is a text as exporters write it. Exporters in Python, such as mitmproxy, write a byte
// that is no text as a lone low surrogate (PEP 383), which encoding/json would turn into
// U+FFFD: harString has the original byte.
type harString string

// UnmarshalJSON implements json.Unmarshaler.
func (s *harString) UnmarshalJSON(raw []byte) error {
	if raw[0] != '"' { // null, or a value of JSON instead of its text
		if *s = harString(raw); isNull(raw) {
			*s = ""
		}
		return nil
	}
	var out strings.Builder
	begin := 1 // of the bytes that are not in out yet, after the quote
	for i := 1; i < len(raw)-1; i++ {
		if raw[i] != '\\' {
			continue
		}
		switch unit := surrogate(raw[i:]); {
		case unit >= 0xd800 && unit < 0xdc00 && surrogate(raw[i+6:]) >= 0xdc00:
			i += 11 // a pair
		case unit >= 0xdc80 && unit <= 0xdcff:
			var text string
			if err := json.Unmarshal(quoted(raw[begin:i]), &text); err != nil {
				return err
			}
			out.WriteString(text)
			out.WriteByte(byte(unit))
			begin, i = i+6, i+5
		case unit >= 0:
			i += 5
		default:
			i++ // an escaped character begins nothing
		}
	}
	var text string
	if err := json.Unmarshal(quoted(raw[begin:len(raw)-1]), &text); err != nil {
		return err
	}
	out.WriteString(text)
	*s = harString(out.String())
	return nil
}

// surrogate returns the UTF-16 surrogate that raw begins with as an escape, or -1.
func surrogate(raw []byte) int {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return -1
	}
	n, err := strconv.ParseUint(string(raw[2:6]), 16, 16)
	if err != nil || n < 0xd800 || n > 0xdfff {
		return -1
	}
	return int(n)
}

func quoted(raw []byte) []byte { return bytes.Join([][]byte{nil, raw, nil}, []byte{'"'}) }

// wireText is a text of a HAR as bytes.
type wireText struct {
	bytes []byte
	// recoded: the text may have had another charset, and is UTF-8 now.
	recoded bool
	// same: as far as can be known, these bytes were on the wire.
	same bool
}

// wire returns the bytes that were on the wire, as far as they can be known. They are known by
// their number, if it is one of sizes: exporters read text without a charset as Latin 1, where
// each byte is one character.
func (s harString) wire(sizes ...int64) wireText {
	text := string(s)
	if text == "" || !utf8.ValidString(text) {
		return wireText{bytes: nonEmpty([]byte(text)), same: true}
	}
	latin, isLatin, same := make([]byte, 0, len(text)), true, false
	for _, r := range text {
		if isLatin = isLatin && r <= 0xff; isLatin {
			latin = append(latin, byte(r))
		}
	}
	asLatin := false
	for _, n := range sizes {
		same = same || n == int64(len(text))
		asLatin = asLatin || isLatin && n == int64(len(latin))
	}
	if asLatin && !same {
		return wireText{bytes: latin, same: true}
	}
	ascii := isLatin && len(latin) == len(text) // the same in every charset that a page may name
	return wireText{bytes: []byte(text), recoded: true, same: same || ascii}
}

// charsetOf returns the charset that a Content-Type names, in lower case, and its position.
func charsetOf(contentType string) (name string, at int) {
	lower := strings.ToLower(contentType)
	at = strings.Index(lower, "charset=")
	if at < 0 {
		return "", -1
	}
	name, _, _ = strings.Cut(lower[at+len("charset="):], ";")
	return strings.Trim(name, "\"' \t"), at
}

// hasCharset tells the types whose charset the text itself or the loading page may declare, and
// for which Content-Type overrides that.
func hasCharset(contentType string) bool {
	media, _, _ := strings.Cut(strings.ToLower(contentType), ";")
	media = strings.TrimSpace(media)
	return strings.HasPrefix(media, "text/") || strings.HasSuffix(media, "xml") || strings.HasSuffix(media, "javascript")
}
