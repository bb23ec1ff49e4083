package archive

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"eidetic/internal/lab"
	"eidetic/netlab/message"
)

// requestHead renders the head of a request as HTTP/1.1 text. hostAdded is
// true when the message had no Host field (h2, h3) and one was put in, which
// readers of WARC expect.
func requestHead(e *lab.Exchange) (head []byte, hostAdded bool) {
	u := lab.ParseURL(e.URL)
	target, host := u.Target(), u.Host
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\n", oneLine(e.Method), oneLine(target))
	if e.Request.Get("Host") == "" {
		hostAdded = true
		b.WriteString("Host: " + oneLine(host) + "\r\n")
	}
	writeFields(&b, e.Request.Header)
	b.WriteString("\r\n")
	return b.Bytes(), hostAdded
}

func responseHead(e *lab.Exchange) []byte {
	version := "HTTP/1.1"
	if e.Protocol == "http/1.0" {
		version = "HTTP/1.0"
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %03d %s\r\n", version, e.Status, oneLine(e.Reason))
	writeFields(&b, e.Response.Header)
	b.WriteString("\r\n")
	return b.Bytes()
}

func writeFields(b *bytes.Buffer, fields []lab.HeaderField) {
	for _, f := range fields {
		b.WriteString(f.Name + ": " + oneLine(f.Value) + "\r\n")
	}
}

// splitHead parses the head of a request or response block: its start line, its fields and the
// bytes after the blank line. It leaves out a malformed field.
func splitHead(block []byte, l Limits) (start string, fields []lab.HeaderField, body []byte, err error) {
	rest := block
	list := fieldReader{budget: l.budget, raw: true}
	for first := true; ; first = false {
		if len(block)-len(rest) > l.Header {
			return "", nil, nil, fmt.Errorf("HTTP header of more than %d bytes: %w", l.Header, errLimit)
		}
		i := bytes.IndexByte(rest, '\n')
		if i < 0 && first {
			return "", nil, nil, fmt.Errorf("no HTTP header")
		}
		line := rest
		if i >= 0 {
			line, rest = bytes.TrimSuffix(rest[:i], []byte("\r")), rest[i+1:]
		} else { // A head without a blank line: old tools wrote bodiless responses so.
			line, rest = bytes.TrimRight(line, "\r"), nil
		}
		switch {
		case len(line) > l.Header:
			return "", nil, nil, fmt.Errorf("HTTP header of more than %d bytes: %w", l.Header, errLimit)
		case first:
			start = string(line)
		case len(line) == 0:
			return start, list.done(), rest, nil
		default:
			if _, err := list.line(string(line)); err != nil {
				return "", nil, nil, err
			}
		}
		if i < 0 {
			return start, list.done(), nil, nil
		}
	}
}

// parseRequest fills e's request side from a request record's block.
func parseRequest(e *lab.Exchange, block []byte, l Limits) error {
	start, fields, body, err := splitHead(block, l)
	if err != nil {
		return err
	}
	method, _, ok := strings.Cut(start, " ")
	if !ok || method == "" {
		return fmt.Errorf("request line %.60q", start)
	}
	e.Method = method
	e.Request.Header, e.Request.Body = fields, nonEmpty(body)
	_, err = dechunk(&e.Request, l)
	return err
}

// parseResponse fills e's response side from a response record's block.
func parseResponse(e *lab.Exchange, block []byte, l Limits) error {
	const mostInterim = 100 // answers before the final one, which curl keeps
	var start, reason string
	var fields []lab.HeaderField
	var minor, status int
	body := block
	for range mostInterim {
		var err error
		if start, fields, body, err = splitHead(body, l); err != nil {
			return err
		}
		var ok bool
		if minor, status, reason, ok = message.Status(start); !ok {
			return fmt.Errorf("status line %.60q", start)
		}
		if status/100 != 1 || status == 101 || len(body) < 4 || !strings.EqualFold(string(body[:4]), "HTTP") {
			break
		}
		if status > 100 {
			e.Interim = append(e.Interim, lab.Interim{Status: status, Header: fields})
		}
	}
	if e.Protocol == "" {
		switch version, _, _ := strings.Cut(strings.ToLower(start), " "); version {
		case "http/2", "http/2.0":
			e.Protocol = "h2"
		case "http/3", "http/3.0":
			e.Protocol = "h3"
		default:
			e.Protocol = fmt.Sprint("http/1.", minor)
		}
	}
	e.Status, e.Reason = status, reason
	e.Response.Header, e.Response.Body = fields, nonEmpty(body)
	isCut, err := dechunk(&e.Response, l)
	if isCut && e.Truncated == "" {
		e.Truncated = "unspecified"
	}
	return err
}

// dechunk removes a transfer coding that other tools keep. A body that is not chunked, although its header says so,
// stays as it is; the first line of a text may look like a chunk's size. Of one that ends before its last chunk, what
// there is of it is kept; isCut tells that.
func dechunk(m *lab.Message, l Limits) (isCut bool, err error) {
	defer func() { m.Header = asContentCoding(m.Header, m.Body) }()
	if head := (&message.Head{Fields: m.Header}); !head.IsChunked() {
		return false, nil
	}
	// Its size is counted first, so that no more memory is taken than it needs.
	chunks := message.NewChunks(bufio.NewReader(bytes.NewReader(m.Body)))
	size, err := io.Copy(io.Discard, chunks)
	begins := chunks.Ended > 0 || size > 0 && errors.Is(err, io.ErrUnexpectedEOF)
	if isCut = err != nil && !chunks.HasLast; err == nil || chunks.HasLast || begins {
		if err := l.budget.take(size); err != nil {
			return false, err
		}
		plain := make([]byte, size)
		if _, err := io.ReadFull(message.NewChunks(bufio.NewReader(bytes.NewReader(m.Body))), plain); err != nil {
			return false, err
		}
		m.Body = nonEmpty(plain)
	} else {
		isCut = false // the header is wrong
	}
	return isCut, nil
}

// asContentCoding is a header without transfer codings. A body that is still compressed by some (RFC 9112, 7.2), for which
// a crawler asks and a browser does not, then has them as content codings, which browsers read.
func asContentCoding(fields []lab.HeaderField, body []byte) []lab.HeaderField {
	var codings []string
	for _, v := range (&message.Head{Fields: fields}).Values("Transfer-Encoding") {
		for one := range strings.SplitSeq(v, ",") {
			switch one = strings.ToLower(strings.Trim(one, " \t")); one {
			case "gzip", "x-gzip", "deflate":
				codings = append(codings, one)
			}
		}
	}
	fields = withoutTransferCoding(fields)
	if len(codings) == 0 {
		return fields
	}
	coding := lab.HeaderField{Name: "Content-Encoding", Value: strings.Join(codings, ", ")}
	m := lab.Message{Header: append(slices.Clip(fields), coding), Body: body}
	if codingOf(&m) == "" {
		return fields
	}
	const begins = 512 // bytes, which tell whether another tool has decoded it and left the header
	r, err := decoder(&m, begins+1)
	if err != nil {
		return fields
	}
	defer r.Close()
	if _, err := io.CopyN(io.Discard, r, begins); err != nil && !errors.Is(err, io.EOF) {
		return fields
	}
	return m.Header
}

// withoutTransferCoding is a header without the coding that its body does not have any more.
func withoutTransferCoding(fields []lab.HeaderField) []lab.HeaderField {
	return slices.DeleteFunc(fields, func(f lab.HeaderField) bool { return strings.EqualFold(f.Name, "Transfer-Encoding") })
}

func nonEmpty(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return b
}
