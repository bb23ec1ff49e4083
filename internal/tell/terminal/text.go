package terminal

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Visible returns a text of somebody else's, such as a URL in a recording, as a terminal may get it:
// what would be an order to the terminal (control characters, also those of 8 bits, and marks that
// change the direction of what follows) is written as an escape. Lines and tabs stay.
func Visible(text string) string {
	if !strings.ContainsFunc(text, isOrder) && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case !isOrder(r):
			b.WriteRune(r)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// Brief is a text for a terminal in which no word, such as the address of a request with data in it, fills the screen.
func Brief(text string) string {
	const longest, begin = 400, 200
	if len(text) <= longest {
		return text
	}
	words := strings.Split(text, " ")
	for i, word := range words {
		if len(word) > longest {
			words[i] = strings.ToValidUTF8(word[:begin], "") + fmt.Sprintf("…(%d more bytes)", len(word)-begin)
		}
	}
	return strings.Join(words, " ")
}

// isOrder tells the characters that a terminal obeys instead of showing them.
func isOrder(r rune) bool {
	switch {
	case r == '\n', r == '\t':
		return false
	case r < 0x20, r >= 0x7f && r < 0xa0:
		return true
	case r >= 0x200b && r <= 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0xfeff:
		return true
	}
	return false
}

// OneLine is [Visible], on one line.
func OneLine(text string) string {
	return Visible(strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(text))
}

// maxPlain bounds a text that others wrote, in characters.
const maxPlain = 2000

// Plain makes a text that others wrote fit for a terminal: one line, which moves
// no cursor and sets no colour.
func Plain(text string) string {
	out := make([]rune, 0, min(len(text), maxPlain))
	for _, r := range text {
		switch {
		case len(out) == maxPlain:
			return string(out) + "…"
		case r == '\n' || r == '\t' || r == '\r':
			out = append(out, ' ')
		case strconv.IsPrint(r) || r == '\u202f':
			out = append(out, r)
		default:
			out = append(out, '\uFFFD')
		}
	}
	return string(out)
}
