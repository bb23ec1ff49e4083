package bounded

import (
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// UTF8 is a text without its byte order mark, which the reader of YAML would take for a part of the first name; one that
// is UTF-16 by its mark is decoded, as a reader of YAML has to (YAML 1.2, 5.2). Windows' editors and shells write both.
func UTF8(text []byte) []byte {
	plain, _, err := transform.Bytes(unicode.BOMOverride(transform.Nop), text)
	if err != nil {
		return text // whoever reads it says what is wrong
	}
	return plain
}
