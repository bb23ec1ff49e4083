package inject

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf16"
)

// maxHold bounds what is held back while the script's place is searched. If the first 1 MiB of HTML is
// comments and blanks, the script goes where it can, which makes a doctype behind it count for nothing.
const maxHold = 1 << 20

// sniffed is how many bytes the algorithm of the WHATWG's MIME Sniffing looks at, which
// http.DetectContentType implements.
const sniffed = 512

// Stream changes one body piece by piece. Input and output are in the recorded content coding; a call
// returns everything that could be decoded of its piece.
type Stream struct {
	plan    *Plan
	decode  *pusher // nil for identity
	out     bytes.Buffer
	encode  flusher
	held    []byte // decoded, before the script's place is known
	placed  bool
	looked  int  // how much was held when the place was searched last, in vain
	skipped bool // the body turned out to be no document
	charset string
	markup  *markup // of an HTML document, after the script's place
	over    bool
	written bool // something that is not flushed yet
}

// NewStream starts to change a body. Finish must be called.
func (p *Plan) NewStream() (*Stream, error) {
	s := &Stream{plan: p}
	var err error
	if s.encode, err = newEncoder(p.encoding, &s.out); err != nil {
		return nil, fmt.Errorf("inject: %w", err)
	}
	if p.encoding != "" {
		s.decode = newPusher(p.encoding)
	}
	return s, nil
}

// Feed takes the next piece and returns what may be sent, valid until the next call. After an error
// the body cannot be changed.
func (s *Stream) Feed(piece []byte) ([]byte, error) {
	s.out.Reset()
	if s.decode == nil {
		if err := s.pass(piece, false); err != nil {
			return nil, err
		}
	}
	// What a small part decodes to is passed on before the next, since a few bytes may decode to many.
	const part = 16 << 10
	for s.decode != nil && len(piece) > 0 {
		n := min(len(piece), part)
		plain, err := s.decode.feed(piece[:n])
		if err != nil {
			return nil, fmt.Errorf("inject: decode %s: %w", s.plan.encoding, err)
		}
		if err := s.pass(plain, false); err != nil {
			return nil, err
		}
		piece = piece[n:]
	}
	if s.written {
		s.written = false
		if err := s.encode.Flush(); err != nil {
			return nil, fmt.Errorf("inject: encode: %w", err)
		}
	}
	return s.out.Bytes(), nil
}

// Decoded is how many bytes the body decoded to so far.
func (s *Stream) Decoded() int64 {
	if s.decode == nil {
		return 0
	}
	return s.decode.total
}

// Finish ends the body and returns its rest. A body that ends inside its coding is an error. Further
// calls do nothing.
func (s *Stream) Finish() ([]byte, error) {
	if s.over {
		return nil, nil
	}
	s.over = true
	s.out.Reset()
	var rest []byte
	var err error
	if s.decode != nil {
		if rest, err = s.decode.finish(); err != nil {
			_ = s.encode.Close()
			return nil, fmt.Errorf("inject: decode %s: %w", s.plan.encoding, err)
		}
	}
	if err := s.pass(rest, true); err != nil {
		return nil, err
	}
	if err := s.encode.Close(); err != nil {
		return nil, fmt.Errorf("inject: encode %s: %w", s.plan.encoding, err)
	}
	return s.out.Bytes(), nil
}

// Unchanged tells, once bytes were returned, that the body turned out to be no document, so that the
// output has the same text as the input.
func (s *Stream) Unchanged() bool { return s.skipped }

// Charset returns the encoding that the document declares in a <meta> and not in its header, or "". It
// is known once Feed or Finish has returned bytes.
func (s *Stream) Charset() string { return s.charset }

// pass appends decoded bytes to the output, with the script at its place.
func (s *Stream) pass(plain []byte, eof bool) error {
	if !s.placed {
		s.held = append(s.held, plain...)
		if plain = s.insert(eof || len(s.held) >= maxHold, eof); !s.placed {
			return nil
		}
	} else if s.markup != nil {
		plain = s.markup.feed(plain, eof)
	}
	if len(plain) == 0 {
		return nil
	}
	if _, err := s.encode.Write(plain); err != nil {
		return fmt.Errorf("inject: encode: %w", err)
	}
	s.written = true
	return nil
}

// insert returns the held bytes with the script in them once its place is known. last says that no
// more bytes come, eof that the search is not continued.
func (s *Stream) insert(eof, last bool) []byte {
	held := s.held
	if !eof && len(held) < s.looked+s.looked/16 {
		return nil // of much that is held, little is new
	}
	if len(held) == 0 {
		// An empty document stays empty: nothing is there that could run.
		s.placed, s.skipped = eof, eof
		return nil
	}
	if s.plan.kind == kindWorker {
		if !eof && len(held) < 4096 {
			return nil
		}
		return s.done(splice(held, workerAt(held), s.workerText(held)))
	}
	if s.plan.kind == kindSniff && !looksHTML(held) {
		if !eof && mayBeHTML(held) {
			return nil
		}
		s.skipped = true
		return s.done(held)
	}
	if s.plan.kind == kindUnknown && !strings.HasPrefix(http.DetectContentType(held), "text/html") {
		if !eof && len(held) < sniffed {
			return nil // as browsers wait
		}
		s.skipped = true
		return s.done(held)
	}
	// A document without a charset in its header is held until the browser itself would stop looking
	// for one.
	unit, little := utf16Of(held, s.plan.charset)
	if !eof && (len(held) < 4 || s.plan.charset == "" && unit == 1 && len(held) < 1024) {
		return nil
	}
	text := held
	skip := 0
	if unit == 2 {
		text = narrow(held, little)
	}
	if bytes.HasPrefix(held, []byte("\xef\xbb\xbf")) {
		skip = 3
	} else if unit == 2 && len(text) > 0 && text[0] == 0xff { // its BOM
		skip = 1
	}
	at, root, ok := 0, false, true
	if s.plan.kind != kindSVG {
		at, root, ok = place(text[skip:], eof)
	}
	if name := s.plan.kind.root(); name != "" && ok && !root {
		at, root, ok = placeXML(text[skip:], name, eof)
	}
	if !ok {
		s.looked = len(held)
		return nil
	}
	if s.plan.kind.root() != "" && !root { // XML of another vocabulary
		s.skipped = true
		return s.done(held)
	}
	if last && isOpen(text[skip+at:]) {
		// All that is left is a comment or a doctype that does not end: there is nothing that could run, and the
		// script's place would be before it.
		s.skipped = true
		return s.done(held)
	}
	if s.plan.charset == "" && unit == 1 && skip == 0 && s.plan.kind.root() == "" {
		s.charset = metaCharset(held)
	}
	at = (skip + at) * unit
	if unit == 2 {
		return s.done(splice(held, at, widen(s.tag(), little)))
	}
	if s.plan.kind.root() == "" && !shiftsASCII(cmp.Or(s.plan.charset, s.charset)) {
		s.markup = s.plan.newMarkup()
		rest := s.markup.feed(held[at:], last)
		held = append(held[:at:at], rest...)
	}
	return s.done(splice(held, at, s.tag()))
}

// shiftsASCII tells the encodings in which a byte of ASCII may be half of another character, which
// would be read as "<".
func shiftsASCII(charset string) bool {
	return charset == "iso-2022-jp" || charset == "hz-gb-2312" || charset == "utf-7"
}

func (s *Stream) done(b []byte) []byte {
	s.placed, s.held = true, nil
	return b
}

// tag is the script's element. Its attribute is what document.lastModified shows: in a replay the field
// Last-Modified moves with the clock. Policies see the script's text alone, not the attribute.
func (s *Stream) tag() []byte {
	modified := ""
	if s.plan.modified != 0 {
		modified = ` data-modified="` + strconv.FormatInt(s.plan.modified, 10) + `"`
	}
	if s.plan.kind.root() != "" {
		return []byte(`<script xmlns="http://www.w3.org/1999/xhtml"` + modified + `><![CDATA[` + s.plan.script.page + `]]></script>`)
	}
	return []byte("<script" + modified + ">" + s.plan.script.page + "</script>")
}

// workerText keeps a "use strict" directive at the front, where alone it has an effect.
func (s *Stream) workerText(body []byte) []byte {
	if strictProlog(body) {
		return []byte(`"use strict";` + s.plan.script.text)
	}
	return []byte(s.plan.script.text)
}

func workerAt(body []byte) int {
	if bytes.HasPrefix(body, []byte("\xef\xbb\xbf")) {
		return 3
	}
	return 0
}

func splice(b []byte, at int, insert []byte) []byte {
	out := make([]byte, 0, len(b)+len(insert))
	out = append(out, b[:at]...)
	out = append(out, insert...)
	return append(out, b[at:]...)
}

// utf16Of tells whether a document is UTF-16: by its byte order mark, which overrides the header, or
// by the header.
func utf16Of(b []byte, charset string) (unit int, little bool) {
	switch {
	case bytes.HasPrefix(b, []byte{0xff, 0xfe}):
		return 2, true
	case bytes.HasPrefix(b, []byte{0xfe, 0xff}):
		return 2, false
	case bytes.HasPrefix(b, []byte("\xef\xbb\xbf")):
		return 1, false
	case charset == "utf-16" || charset == "utf-16le":
		return 2, true
	case charset == "utf-16be":
		return 2, false
	}
	return 1, false
}

// narrow views UTF-16 as one byte per unit; units beyond ASCII become 0xff.
func narrow(b []byte, little bool) []byte {
	out := make([]byte, len(b)/2)
	for i := range out {
		u := uint16(b[2*i])<<8 | uint16(b[2*i+1])
		if little {
			u = u<<8 | u>>8
		}
		out[i] = 0xff
		if u < 0x80 {
			out[i] = byte(u)
		}
	}
	return out
}

// widen encodes ASCII as UTF-16.
func widen(b []byte, little bool) []byte {
	out := make([]byte, 0, 2*len(b))
	for _, u := range utf16.Encode([]rune(string(b))) {
		if little {
			out = append(out, byte(u), byte(u>>8))
		} else {
			out = append(out, byte(u>>8), byte(u))
		}
	}
	return out
}
