package archive

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"io"
	"regexp"
	"strings"

	"github.com/klauspost/compress/gzip"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

// What stands around a JSON text: a compression, a character encoding, comments, and a script that takes it.

func isGzip(head []byte) bool { return bytes.HasPrefix(head, []byte{0x1f, 0x8b}) }

// isZlib tells a zlib stream by its first two bytes (RFC 1950).
func isZlib(head []byte) bool {
	return len(head) >= 2 && head[0] == 0x78 && (int(head[0])<<8|int(head[1]))%31 == 0
}

// isJSON tells a file that holds JSON.
func isJSON(file *io.SectionReader, l Limits) bool {
	s, done, err := openJSON(file, l)
	if err != nil {
		return false
	}
	defer done()
	err = s.begin()
	return err == nil || errors.Is(err, errLimit)
}

// openJSON returns the JSON of a file, and what ends the reading.
func openJSON(file *io.SectionReader, l Limits) (s *jsonStream, done func(), err error) {
	buffered := bufio.NewReaderSize(io.NewSectionReader(file, 0, file.Size()), 64<<10)
	done = func() {}
	head, _ := buffered.Peek(4) // what is shorter has no compression
	var plain io.Reader
	switch {
	case isGzip(head): // .wprgo, .har.gz
		z, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, nil, err
		}
		plain, done = z, func() { _ = z.Close() }
	case isZlib(head): // mitmproxy's .zhar
		z, err := zlib.NewReader(buffered)
		if err != nil {
			return nil, nil, err
		}
		plain, done = z, func() { _ = z.Close() }
	case string(head) == zstdMagic:
		z, err := newUnzstd(buffered, l)
		if err != nil {
			return nil, nil, err
		}
		plain, done = z, z.Close
	}
	if plain != nil {
		most := l.passing(file.Size())
		buffered = bufio.NewReaderSize(&boundedReader{r: plain, left: most, most: most}, 64<<10)
	}
	head, _ = buffered.Peek(4)
	if e := wideEncoding(head); e != nil {
		buffered = bufio.NewReaderSize(e.NewDecoder().Reader(buffered), 64<<10)
	}
	for { // there are two where a file that has one was put behind one
		if mark, _ := buffered.Peek(len(byteOrderMark)); string(mark) != byteOrderMark {
			return newJSONStream(&uncommented{r: buffered}, l.budget), done, nil
		}
		_, _ = buffered.Discard(len(byteOrderMark)) // it is there
	}
}

// byteOrderMark is UTF-8's.
const byteOrderMark = "\xef\xbb\xbf"

// wideEncoding is the encoding of a text of which characters take two bytes or four, by its byte order mark or by its
// first two characters, which are ASCII; nil without one. PowerShell's > writes UTF-16.
func wideEncoding(head []byte) encoding.Encoding {
	if len(head) < 4 {
		return nil
	}
	switch n := binary.BigEndian.Uint32(head); {
	case n == 0xfeff, n != 0 && n < 0x80:
		return utf32.UTF32(utf32.BigEndian, utf32.UseBOM)
	case n == 0xfffe0000, n != 0 && n&0x80ffffff == 0:
		return utf32.UTF32(utf32.LittleEndian, utf32.UseBOM)
	case n>>16 == 0xfeff, n&0xff80ff80 == 0 && n>>16 != 0 && n&0xff != 0:
		return unicode.UTF16(unicode.BigEndian, unicode.UseBOM)
	case n>>16 == 0xfffe, n&0x80ff80ff == 0 && n>>16 != 0 && n&0xff00 != 0:
		return unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)
	}
	return nil
}

// uncommented reads a JSON text with a blank in the place of each comment: from // or # to the end of the line, and
// from /* to */. Where quotes inside a text are not escaped, a part of it looks as if it stood outside: an address there
// begins no comment, which would go on to the end of the file.
type uncommented struct {
	r       *bufio.Reader
	inText  bool
	escaped bool
	last    [2]byte // what came before; zeros at the beginning
}

// Read implements io.Reader.
func (u *uncommented) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if _, err := u.r.Peek(1); err != nil {
		return 0, err
	}
	piece, err := u.r.Peek(min(u.r.Buffered(), len(p)))
	if err != nil {
		return 0, err
	}
	n := u.plain(piece)
	if copy(p, piece[:n]); n > 0 {
		u.last = lastOf(u.last, piece[:n])
		_, err = u.r.Discard(n)
		return n, err
	}
	p[0], err = u.comment()
	u.last = [2]byte{u.last[1], p[0]}
	return 1, err
}

// lastOf returns the last two bytes of a text and of what came before it.
func lastOf(before [2]byte, text []byte) [2]byte {
	for _, c := range text[max(0, len(text)-2):] {
		before = [2]byte{before[1], c}
	}
	return before
}

// mayComment tells whether a comment may follow two bytes: it stands where a value or a name begins or has ended, and
// the colon before it follows a name.
func mayComment(last [2]byte) bool {
	const blanks = " \t\r\n"
	if last[1] == ':' {
		return strings.IndexByte(blanks+`"`, last[0]) >= 0
	}
	return last[1] == 0 || strings.IndexByte(blanks+",{}[]);", last[1]) >= 0
}

// plain is how many bytes of a piece come before what may begin a comment.
func (u *uncommented) plain(piece []byte) int {
	for i := 0; i < len(piece); i++ {
		if u.escaped {
			u.escaped = false
			continue
		}
		ends := "\"/#"
		if u.inText {
			ends = "\"\\"
		}
		next := bytes.IndexAny(piece[i:], ends)
		if next < 0 {
			break
		}
		switch i += next; piece[i] {
		case '"':
			u.inText = !u.inText
		case '\\':
			u.escaped = true
		default:
			if mayComment(lastOf(u.last, piece[:i])) {
				return i
			}
		}
	}
	return len(piece)
}

// comment takes a comment and returns a blank, or takes a character that begins none.
func (u *uncommented) comment() (byte, error) {
	head, _ := u.r.Peek(2) // the second may be missing
	end := []byte("\n")
	switch {
	case head[0] == '#' || string(head) == "//":
	case string(head) == "/*":
		end = []byte("*/")
	default:
		return u.r.ReadByte()
	}
	if _, err := u.r.Discard(min(len(head), len(end))); err != nil {
		return 0, err
	}
	for last := byte(0); ; {
		part, err := u.r.ReadSlice(end[len(end)-1])
		switch {
		case err == io.EOF: // the comment is the last of the file
			return ' ', nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return 0, err
		case err == nil && (bytes.HasSuffix(part, end) || len(part) == 1 && last == end[0]): // or it came in two parts
			return ' ', nil
		}
		last = part[len(part)-1]
	}
}

// handing matches what stands before a JSON text that a script takes: "onInputData(", "var har =", "module.exports =",
// and what servers prefix so that no script can take it.
var handing = regexp.MustCompile(`^(?:\)\]\}',?|[A-Za-z_$][\w$. \t]*[=(])\s*[{\[]`) // constant

// mostHanding bounds what it matches.
const mostHanding = 256

var errNoJSON = errors.New("it does not begin as JSON does") // constant

// begin passes over what stands before the JSON text.
func (s *jsonStream) begin() error {
	c, err := s.next()
	if err != nil {
		return err
	}
	head, _ := s.r.Peek(mostHanding) // there may be less
	switch {
	case c == '{' || c == '[':
		return nil
	case c == '"' && len(head) > 1 && (head[1] == '{' || head[1] == '['): // the text of JSON as JSON
		return nil
	}
	if found := handing.Find(head); found != nil {
		_, err := s.r.Discard(len(found) - 1)
		return err
	}
	return errNoJSON
}

// another passes over what stands between JSON texts of one file, or behind the last, and tells whether one follows.
func (s *jsonStream) another() (bool, error) {
	for {
		c, err := s.next()
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF):
			return false, nil
		case err != nil:
			return false, err
		case c == '{' || c == '[':
			return true, nil
		case c != ')' && c != ';' && c != ',' && c != 0:
			return false, s.damaged("%q after its end", c)
		}
		if _, err := s.r.Discard(1); err != nil {
			return false, err
		}
	}
}
