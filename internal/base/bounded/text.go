package bounded

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// UTF8 is a text without its byte order mark; one that is UTF-16 by its mark is decoded. Windows' editors and shells write
// both.
func UTF8(text []byte) []byte {
	plain, _, err := transform.Bytes(unicode.BOMOverride(transform.Nop), text)
	if err != nil {
		return text // whoever reads it says what is wrong
	}
	return plain
}

// Packed returns an error that says how to unpack a file that is compressed, by its first bytes, or nil.
func Packed(head []byte) error {
	switch {
	case bytes.HasPrefix(head, []byte("\x1f\x8b")):
		return errors.New("it is compressed by gzip: decompress it (gunzip -k), and give what comes of it")
	case bytes.HasPrefix(head, []byte("\x28\xb5\x2f\xfd")):
		return errors.New("it is compressed by zstd: decompress it (zstd -d), and give what comes of it")
	}
	return nil
}

// Source is a text of YAML as its reader takes it. The reader has no byte order mark and no UTF-16 (YAML 1.2, 5.2), and
// counts directives (%YAML 1.2) as a document: they are a comment here, so that all places stay.
func Source(text []byte) []byte {
	text = UTF8(text)
	if !bytes.HasPrefix(text, []byte("%")) {
		return text
	}
	plain := bytes.Clone(text)
	for at := 0; at < len(plain) && plain[at] == '%'; {
		plain[at] = '#'
		next := bytes.IndexByte(plain[at:], '\n')
		if next < 0 {
			break
		}
		at += next + 1
	}
	return plain
}

// checkSigns returns an *Error for a text with bytes that no YAML has (YAML 1.2, 5.1): its reader passes them on, or says
// something else is wrong.
func checkSigns(text []byte) error {
	line := 1
	for at := 0; at < len(text); {
		r, n := utf8.DecodeRune(text[at:])
		switch {
		case r == utf8.RuneError && n == 1:
			return &Error{line, "it is no UTF-8: save the file as UTF-8"}
		case r == '\n':
			line++
		case r < ' ' && r != '\t' && r != '\r', r == 0x7f:
			return &Error{line, fmt.Sprintf("it has a control character (%U)", r)}
		}
		at += n
	}
	return nil
}

// OddBlank is the first line that has a sign which looks like a blank or like nothing, and which sign; 0 without one.
func OddBlank(text []byte) (line int, sign rune) {
	line = 1
	for _, r := range string(text) {
		switch {
		case r == '\n':
			line++
		case r == 0xa0, r == 0xad, r == 0x202f, r >= 0x2000 && r <= 0x200f, r == 0x2060, r == 0x3000, r == 0xfeff:
			return line, r
		}
	}
	return 0, 0
}
