package archive

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"
)

// lateTexts are the long texts of an entry: marshalled, they would take many times their size. The entry has a mark in
// the place of each, and when the entry is written the text is written there piece by piece.
type lateTexts struct {
	from int64 // the bytes from which on a text is long
	list []lateText
}

// lateText writes a body to w where the entry has the mark.
type lateText struct {
	mark  string
	write func(w io.Writer) error
}

// markBytes are so many that Base64 pads nothing.
const markBytes = 24

// add returns the mark of a text, as bytes and in Base64.
func (l *lateTexts) add(write func(w io.Writer) error) (raw []byte, mark string) {
	raw = make([]byte, markBytes)
	_, _ = rand.Read(raw) // it does not fail
	mark = base64.StdEncoding.EncodeToString(raw)
	l.list = append(l.list, lateText{mark, write})
	return raw, mark
}

// writeTo writes an entry with its long texts.
func (l *lateTexts) writeTo(w io.Writer, entry []byte) error {
	for len(l.list) > 0 {
		next, at := -1, len(entry)
		for i, late := range l.list {
			if found := bytes.Index(entry, []byte(late.mark)); found >= 0 && found < at {
				next, at = i, found
			}
		}
		if next < 0 {
			break // a mark that was left out
		}
		if _, err := w.Write(entry[:at]); err != nil {
			return err
		}
		if err := l.list[next].write(w); err != nil {
			return err
		}
		entry = entry[at+len(l.list[next].mark):]
		l.list = append(l.list[:next], l.list[next+1:]...)
	}
	_, err := w.Write(entry)
	return err
}

// inBase64 writes a body in Base64.
func inBase64(w io.Writer, body func(io.Writer) error) error {
	z := base64.NewEncoder(base64.StdEncoding, w)
	if err := body(z); err != nil {
		return err
	}
	return z.Close()
}

// asText writes a body that is UTF-8 as the inside of a JSON string.
func asText(w io.Writer, body func(io.Writer) error) error {
	t := &textWriter{w: w}
	if err := body(t); err != nil {
		return err
	}
	if len(t.rest) > 0 {
		return fmt.Errorf("a text ends with half a character")
	}
	return nil
}

// textWriter escapes UTF-8 that comes in pieces.
type textWriter struct {
	w    io.Writer
	rest []byte // the begin of a character
}

// Write implements io.Writer.
func (t *textWriter) Write(p []byte) (int, error) {
	const most = 64 << 10
	for from := 0; from < len(p); from += most {
		part := append(t.rest, p[from:min(len(p), from+most)]...)
		whole := len(part)
		for n := 1; n < utf8.UTFMax && n <= len(part); n++ {
			if b := part[len(part)-n]; utf8.RuneStart(b) {
				if !utf8.FullRune(part[len(part)-n:]) {
					whole = len(part) - n
				}
				break
			}
		}
		quoted, err := json.Marshal(string(part[:whole]))
		if err != nil {
			return 0, err
		}
		if _, err := t.w.Write(quoted[1 : len(quoted)-1]); err != nil {
			return 0, err
		}
		t.rest = bytes.Clone(part[whole:])
	}
	return len(p), nil
}

// textJudge tells whether what is written to it is a text, as [harText] does.
type textJudge struct {
	rest []byte
	not  bool
}

// Write implements io.Writer.
func (t *textJudge) Write(p []byte) (int, error) {
	const most = 64 << 10
	for from := 0; from < len(p) && !t.not; from += most {
		part := append(t.rest, p[from:min(len(p), from+most)]...)
		for len(part) > 0 && utf8.FullRune(part) {
			r, n := utf8.DecodeRune(part)
			if t.not = r == 0 || r == utf8.RuneError && n == 1; t.not {
				break
			}
			part = part[n:]
		}
		t.rest = bytes.Clone(part)
	}
	return len(p), nil
}

func (t *textJudge) isText() bool { return !t.not && len(t.rest) == 0 }
