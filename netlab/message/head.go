// Package message reads HTTP/1 messages (RFC 9112) as browsers do: what servers of all ages and small devices send,
// and browsers show, is read and not judged. In come bytes from outside, bounded; out go heads, the framing of their
// bodies, and bodies without chunks. Only what would let two readers see different messages is refused: lengths that
// differ, and on requests two framings at once.
package message

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"eidetic/internal/lab"
)

// ErrTooLarge marks a head that is longer than it may be.
var ErrTooLarge = errors.New("the header is too large") // constant

// ErrFraming marks a request that two readers could take for different ones.
var ErrFraming = errors.New("the request is refused: its body could be read in two ways") // constant

// Head is the start line and the fields of a message, as received.
type Head struct {
	Start string
	// Fields leaves out lines that no browser reads: without a colon, or without a name before it. A field that is
	// folded over several lines is one.
	Fields []lab.HeaderField
	// Spaced names a field that frames the body and has a blank before its colon, which some readers do not see.
	Spaced string
}

// ReadHead reads a head of at most most bytes. Its lines end with LF, before which a CR may stand. Empty lines
// before it are skipped. The error is io.EOF only if there is nothing at all.
func ReadHead(r *bufio.Reader, most int) (*Head, error) {
	h := &Head{}
	for first := true; ; {
		line, err := readLine(r, &most)
		switch {
		case err != nil && (first && line == ""):
			return nil, err
		case err != nil:
			return nil, unexpected(err)
		case line == "" && first:
			continue
		case line == "":
			return h, nil
		case first:
			h.Start, first = line, false
		default:
			h.add(line)
		}
	}
}

// add takes a line after the first.
func (h *Head) add(line string) {
	if last := len(h.Fields) - 1; line[0] == ' ' || line[0] == '\t' {
		if last >= 0 {
			h.Fields[last].Value = strings.Trim(h.Fields[last].Value+" "+strings.Trim(line, " \t"), " \t")
		}
		return
	}
	name, value, ok := strings.Cut(line, ":")
	bare := strings.TrimRight(name, " \t")
	if !ok || !IsToken(bare) {
		return
	}
	if len(bare) < len(name) && (strings.EqualFold(bare, "Content-Length") || strings.EqualFold(bare, "Transfer-Encoding")) {
		h.Spaced = bare
	}
	h.Fields = append(h.Fields, lab.HeaderField{Name: bare, Value: strings.Trim(value, " \t")})
}

// readLine reads a line without its end and counts its bytes down from left.
func readLine(r *bufio.Reader, left *int) (string, error) {
	part, err := r.ReadSlice('\n')
	var long []byte
	for err == bufio.ErrBufferFull {
		if long = append(long, part...); len(long) > *left {
			return "", ErrTooLarge
		}
		part, err = r.ReadSlice('\n')
	}
	if long != nil {
		part = append(long, part...)
	}
	if *left -= len(part); *left < 0 {
		return "", ErrTooLarge
	}
	part, _ = bytes.CutSuffix(part, []byte("\n"))
	part, _ = bytes.CutSuffix(part, []byte("\r"))
	return string(part), err
}

// Values lists the values of a field.
func (h *Head) Values(name string) (all []string) {
	for _, f := range h.Fields {
		if len(f.Name) == len(name) && strings.EqualFold(f.Name, name) {
			all = append(all, f.Value)
		}
	}
	return all
}

// Framing says where a body ends: Length bytes, or, where that is -1, its last chunk or the end of the connection.
type Framing struct {
	Length  int64
	Chunked bool
}

// RequestFraming returns the framing of a request's body. It refuses what could be read as another request.
func (h *Head) RequestFraming() (Framing, error) {
	length, err := Length(h.Values("Content-Length"))
	codings := h.Values("Transfer-Encoding")
	switch {
	case err != nil:
		return Framing{}, fmt.Errorf("%w: %w", ErrFraming, err)
	case h.Spaced != "":
		return Framing{}, fmt.Errorf("%w: a blank stands before the colon of %s", ErrFraming, h.Spaced)
	case len(codings) > 0 && len(h.Values("Content-Length")) > 0:
		return Framing{}, fmt.Errorf("%w: it has both a Content-Length and a Transfer-Encoding", ErrFraming)
	case len(codings) > 0 && (len(codings) > 1 || !strings.EqualFold(codings[0], "chunked")):
		return Framing{}, fmt.Errorf("%w: its Transfer-Encoding is %.40q", ErrFraming, strings.Join(codings, ", "))
	case len(codings) > 0:
		return Framing{Length: -1, Chunked: true}, nil
	case length < 0 && len(h.Values("Content-Length")) > 0:
		return Framing{}, fmt.Errorf("%w: its Content-Length is %.40q", ErrFraming, h.Values("Content-Length")[0])
	}
	return Framing{Length: max(length, 0)}, nil
}

// ResponseFraming returns the framing of the body of a response in HTTP/1.minor that may have one.
func (h *Head) ResponseFraming(minor int) (Framing, error) {
	if minor > 0 && h.IsChunked() {
		return Framing{Length: -1, Chunked: true}, nil
	}
	length, err := Length(h.Values("Content-Length"))
	return Framing{Length: length}, err
}

// Length is the number that the values of Content-Length state, as often as they like ("5, 5"), or -1 if they state
// none. The error says that two differ.
func Length(values []string) (int64, error) {
	length := int64(-1)
	for _, v := range values {
		for one := range strings.SplitSeq(v, ",") {
			one = strings.Trim(one, " \t")
			if one == "" || strings.Trim(one, "0123456789") != "" {
				continue
			}
			n, err := strconv.ParseInt(one, 10, 64)
			if err != nil {
				continue
			}
			if length >= 0 && n != length {
				return -1, fmt.Errorf("it states two lengths that differ, %d and %d", length, n)
			}
			length = n
		}
	}
	return length, nil
}

// IsChunked tells whether the header says that the body is chunked.
func (h *Head) IsChunked() bool {
	for _, v := range h.Values("Transfer-Encoding") {
		for one := range strings.SplitSeq(v, ",") {
			if strings.EqualFold(strings.Trim(one, " \t"), "chunked") {
				return true
			}
		}
	}
	return false
}

// IsToken tells whether a name is a valid field name (RFC 9110, 5.6.2).
func IsToken(name string) bool {
	for i := range len(name) {
		if c := name[i]; c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return name != ""
}

// Status takes a response's start line apart: the minor version of HTTP/1, the status and the reason. A line without
// a version that can be read counts as HTTP/1.0, and one without a status as 200, as in browsers; ok is false for what
// is no status line.
func Status(start string) (minor, status int, reason string, ok bool) {
	if len(start) < 4 || !strings.EqualFold(start[:4], "HTTP") {
		return 0, 0, "", false
	}
	version, rest, _ := strings.Cut(start[4:], " ")
	if after, isOne := strings.CutPrefix(version, "/1."); isOne && after != "" && after[0] >= '1' && after[0] <= '9' {
		minor = 1
	}
	rest = strings.TrimLeft(rest, " ")
	digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
	if digits == 0 {
		return minor, 200, "", true
	}
	status, err := strconv.Atoi(rest[:digits])
	return minor, status, strings.TrimLeft(rest[digits:], " "), err == nil && status >= 100 && status <= 999
}

// WithoutControls is a field's value as net/http sends it: it refuses control characters, which some clients send
// back in cookies.
func WithoutControls(value string) string {
	isControl := func(c byte) bool { return c < ' ' && c != '\t' || c == 0x7f }
	for i := range len(value) {
		if !isControl(value[i]) {
			continue
		}
		kept := make([]byte, 0, len(value))
		for i := range len(value) {
			if !isControl(value[i]) {
				kept = append(kept, value[i])
			}
		}
		return strings.Trim(string(kept), " \t")
	}
	return value
}
