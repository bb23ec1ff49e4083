package archive

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// harString is a text as exporters write it. Python's, such as mitmproxy,
// write a byte that is no text as a lone low surrogate (PEP 383), which
// encoding/json would turn into U+FFFD: here it is that byte again.
type harString string

// UnmarshalJSON implements json.Unmarshaler.
func (s *harString) UnmarshalJSON(raw []byte) error {
	if raw[0] != '"' { // null, or an error
		return json.Unmarshal(raw, (*string)(s))
	}
	var out strings.Builder
	begin := 1 // of what is not in out yet, behind the quote
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
			i++ // what is escaped is no beginning
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

// bytes returns what was on the wire, as far as that can be known, and
// whether it was text of another charset that is UTF-8 now. It can be known
// by how long it was, in any of sizes: exporters read text without a charset
// as Latin 1, where a byte is a character.
func (s harString) bytes(sizes ...int64) (b []byte, recoded bool) {
	text := string(s)
	if text == "" || !utf8.ValidString(text) {
		return nonEmpty([]byte(text)), false
	}
	latin := make([]byte, 0, len(text))
	for _, r := range text {
		if r > 0xff {
			return []byte(text), true
		}
		latin = append(latin, byte(r))
	}
	asUTF8, asLatin := false, false
	for _, n := range sizes {
		asUTF8 = asUTF8 || n == int64(len(text))
		asLatin = asLatin || n == int64(len(latin))
	}
	if asLatin && !asUTF8 {
		return latin, false
	}
	return []byte(text), true
}
