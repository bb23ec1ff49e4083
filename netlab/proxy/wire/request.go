package wire

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"eidetic/internal/lab"
	"eidetic/netlab/message"
)

// readRequest reads the head of a request and makes its body. A request whose body could be framed in two ways, or
// not at all, has a body that says so when it is read, and may be followed by no other.
func readRequest(r *bufio.Reader, most int) (*http.Request, []lab.HeaderField, error) {
	h, err := message.ReadHead(r, most)
	if err != nil {
		return nil, nil, err
	}
	method, rest, _ := strings.Cut(h.Start, " ")
	at := strings.LastIndexByte(rest, ' ') // a target may have blanks
	if at < 0 || !message.IsToken(method) {
		return nil, nil, errors.New("the request line is malformed")
	}
	target, version := rest[:at], rest[at+1:]
	minor, isOne := strings.CutPrefix(version, "HTTP/1.")
	if !isOne || len(minor) != 1 || minor[0] < '0' || minor[0] > '9' {
		return nil, nil, errors.New("the request's version of HTTP is unknown")
	}
	minor = min(minor, "1") // a later one is answered as the latest that is known (RFC 9110, 2.5)
	u := targetURL(method, target)
	if u == nil {
		return nil, nil, errors.New("the request's target is malformed")
	}
	q := &http.Request{
		Method: method, URL: u, RequestURI: target, Proto: "HTTP/1." + minor, ProtoMajor: 1, ProtoMinor: int(minor[0] - '0'),
		Header: headerOf(h.Fields), Body: http.NoBody,
	}
	for _, f := range h.Fields {
		if strings.ContainsAny(f.Value, "\x00\r") {
			return nil, nil, fmt.Errorf("the field %s has a zero byte or a carriage return in its value", f.Name)
		}
	}
	hosts := q.Header["Host"]
	if len(hosts) > 1 {
		return nil, nil, errors.New("the request names more than one host")
	}
	if q.Host = u.Host; q.Host == "" && len(hosts) > 0 {
		q.Host = hosts[0]
	}
	if q.Host == "" && q.ProtoMinor > 0 {
		return nil, nil, errors.New("the request names no host")
	}
	delete(q.Header, "Host")
	connection := strings.ToLower(strings.Join(q.Header["Connection"], ","))
	q.Close = strings.Contains(connection, "close") || q.ProtoMinor == 0 && !strings.Contains(connection, "keep-alive")
	framing, err := h.RequestFraming()
	switch {
	case err != nil:
		q.Body, q.ContentLength, q.Close = io.NopCloser(failingReader{err}), -1, true
	case framing.Chunked:
		q.Body, q.ContentLength, q.TransferEncoding = io.NopCloser(message.NewChunks(r)), -1, []string{"chunked"}
	case framing.Length > 0:
		q.Body, q.ContentLength = io.NopCloser(&sizedReader{r, framing.Length}), framing.Length
	}
	delete(q.Header, "Transfer-Encoding") // the connection's
	return q, h.Fields, nil
}

// targetURL is what a request line names: a path as it was sent (RawPath need not be valid), an absolute URL, "*", or
// the host and port of a CONNECT; nil for nothing of that kind. RequestURI has the bytes.
func targetURL(method, target string) *url.URL {
	switch {
	case method == http.MethodConnect:
		return &url.URL{Host: target}
	case target == "*":
		return &url.URL{Path: "*"}
	case !strings.HasPrefix(target, "/") && !lab.ParseURL(target).IsWeb():
		return nil
	}
	u := lab.ParseURL(target)
	if strings.HasPrefix(target, "/") { // "//a/b" is a path here
		u = lab.ParseURL("http://-" + target)
		u.Scheme, u.Host = "", ""
	}
	n := u.Net()
	n.Opaque = ""
	return n
}

// headerOf is the header as net/http keeps it.
func headerOf(fields []lab.HeaderField) http.Header {
	h := make(http.Header, len(fields))
	values := make([]string, len(fields)) // one allocation for the many fields with one value
	for i, f := range fields {
		name := http.CanonicalHeaderKey(f.Name)
		if old := h[name]; old != nil {
			h[name] = append(old, f.Value)
			continue
		}
		values[i] = f.Value
		h[name] = values[i : i+1 : i+1]
	}
	return h
}

// failingReader is the body of a request that is refused.
type failingReader struct{ err error }

func (f failingReader) Read([]byte) (int, error) { return 0, f.err }

// sizedReader is a body of a stated length.
type sizedReader struct {
	r    io.Reader
	left int64
}

func (s *sizedReader) Read(p []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	n, err := s.r.Read(p[:min(int64(len(p)), s.left)])
	s.left -= int64(n)
	if err == io.EOF && s.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}
