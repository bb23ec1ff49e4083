package export

import (
	"fmt"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// PlainJSON returns a writer of JSON that a terminal may get: what it would obey, or what turns the direction of a text,
// and stands as it is in JSON's strings, is written as an escape, which means the same.
func PlainJSON(w io.Writer) io.Writer { return &plainJSON{w: w} }

type plainJSON struct {
	w    io.Writer
	rest []byte // the begin of a character whose end comes with the next write
}

// Write implements io.Writer.
func (p *plainJSON) Write(text []byte) (int, error) {
	all := append(p.rest, text...)
	p.rest = nil
	out := make([]byte, 0, len(all)+len(all)/8)
	for len(all) > 0 {
		r, n := utf8.DecodeRune(all)
		switch {
		case r == utf8.RuneError && !utf8.FullRune(all):
			p.rest, n = all, len(all)
		case r == '\n' || r >= ' ' && r < 0x7f || printable(string(r)) == string(r):
			out = append(out, all[:n]...)
		default:
			for _, half := range utf16.Encode([]rune{r}) {
				out = fmt.Appendf(out, `\u%04x`, half)
			}
		}
		all = all[n:]
	}
	if _, err := p.w.Write(out); err != nil {
		return 0, err
	}
	return len(text), nil
}
