package wire

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"

	"eidetic/internal/lab"
	"eidetic/netlab/message"
)

// maxHead bounds the head of a message; the transport refuses a longer one.
const maxHead = 1 << 20

// Conn is the connection to an origin that speaks HTTP/1.1. It lies below an
// http.Transport, which keeps neither order nor case of fields, and refuses messages that browsers read. A Conn
// remembers the head that is received and gives the transport the same message in its strict form, and puts the head
// that is sent into a given order. What is sent is still the transport's: lines are moved, and names, values and the
// target are put back as the device wrote them, so a mistake here cannot make a message that means something else.
type Conn struct {
	net.Conn

	r *bufio.Reader // of one reading goroutine, as what follows
	// out is the strict form of what was read, and next makes more of it.
	out  []byte
	next func() error
	err  error

	mu     sync.Mutex
	method string        // of the request that is answered next
	head   *message.Head // of the last final answer
	// ownPort says that the next request is to port 80 or 443.
	ownPort bool

	order []lab.HeaderField // of the next head that is sent
	held  []byte            // of a head that is not complete yet
}

// NewConn wraps a connection.
func NewConn(c net.Conn) *Conn {
	wrapped := &Conn{Conn: c, r: bufio.NewReaderSize(c, 4<<10)}
	wrapped.next = wrapped.readHead
	return wrapped
}

// NetConn returns what is wrapped.
func (c *Conn) NetConn() net.Conn { return c.Conn }

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) {
	for len(c.out) == 0 && c.err == nil {
		if c.next == nil {
			return c.r.Read(p)
		}
		c.err = c.next()
	}
	n := copy(p, c.out)
	if c.out = c.out[n:]; n > 0 {
		return n, nil
	}
	return 0, c.err
}

// readHead reads the next head, and makes next what its body needs.
func (c *Conn) readHead() error {
	isHTTP, err := c.skipJunk()
	if err != nil {
		return err
	}
	if !isHTTP {
		c.next = nil // the transport says so, or it is a body
		if c.isBodyAlone() {
			c.out = []byte("HTTP/1.0 200 OK\r\n\r\n")
		}
		return nil
	}
	h, err := message.ReadHead(c.r, maxHead)
	if err != nil {
		return err
	}
	for i, f := range h.Fields { // a bare CR ends a line, too
		h.Fields[i].Value, _, _ = strings.Cut(f.Value, "\r")
	}
	minor, status, _, ok := message.Status(h.Start)
	if !ok {
		c.out, c.next = []byte(h.Start+"\r\n\r\n"), nil // the transport names it
		return nil
	}
	c.mu.Lock()
	isHead := c.method == http.MethodHead
	if status/100 != 1 || status == http.StatusSwitchingProtocols {
		c.head = h
	}
	c.mu.Unlock()
	f, err := h.ResponseFraming(minor)
	isEmpty := status == http.StatusNoContent || status == http.StatusResetContent
	// A body behind a head that has none is no next answer.
	isFollowed := isEmpty && (f.Chunked || f.Length > 0) || (isEmpty || isHead || status == http.StatusNotModified) && c.r.Buffered() > 0
	if status == http.StatusResetContent {
		f.Chunked, f.Length = false, 0 // RFC 9110, 15.3.6, and a browser waits for no end
	}
	c.out = strict(h, minor, status, f, err != nil)
	if isFollowed {
		c.out = append(c.out[:len(c.out)-len("\r\n")], "Connection: close\r\n\r\n"...)
	}
	switch {
	case status == http.StatusSwitchingProtocols || err != nil:
		c.next = nil
	case status/100 == 1 || isHead || isEmpty || status == http.StatusNotModified || f.Length == 0:
	case f.Chunked:
		c.next = c.readChunks(message.NewChunks(c.r))
	case f.Length > 0:
		c.next = c.readSized(f.Length)
	default:
		c.next = nil // until the connection ends
	}
	return nil
}

// skipJunk skips empty lines, and up to four bytes that browsers skip before a head, and tells whether a head follows.
func (c *Conn) skipJunk() (isHTTP bool, err error) {
	const junk = 4
	b, err := c.r.Peek(1)
	for err == nil && (b[0] == '\r' || b[0] == '\n') {
		_, _ = c.r.Discard(1) // it is there
		b, err = c.r.Peek(1)
	}
	if err != nil {
		return false, err
	}
	for n := 1; n <= junk+len("http"); n++ {
		b, err := c.r.Peek(n)
		if err != nil {
			return false, nil // it is too short for a head
		}
		if at := n - len("http"); at >= 0 && strings.EqualFold(string(b[at:]), "http") {
			_, err := c.r.Discard(at)
			return true, err
		}
	}
	return false, nil
}

// isBodyAlone tells whether what comes is HTTP/0.9 to browsers, a body without a head: from a port of HTTP's own, or of
// an internet radio, which begins with ICY.
func (c *Conn) isBodyAlone() bool {
	const icy = "icy"
	b, _ := c.r.Peek(len(icy))
	_, isTLS := c.Conn.(*tls.Conn)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ownPort && (isTLS || !strings.EqualFold(string(b), icy)) {
		return false
	}
	c.head = &message.Head{Start: "HTTP/1.0 200 OK"}
	return true
}

// strict is a head as net/http reads it, with one framing, and with the lengths as received if two of them differ,
// which is refused.
func strict(h *message.Head, minor, status int, f message.Framing, differ bool) []byte {
	b := fmt.Appendf(nil, "HTTP/1.%d %03d \r\n", minor, status)
	for _, field := range h.Fields {
		isLength := strings.EqualFold(field.Name, "Content-Length")
		if isLength && differ {
			for one := range strings.SplitSeq(field.Value, ",") {
				b = fmt.Appendf(b, "Content-Length: %s\r\n", strings.Trim(one, " \t"))
			}
		}
		if !isLength && !strings.EqualFold(field.Name, "Transfer-Encoding") {
			b = fmt.Appendf(b, "%s: %s\r\n", field.Name, message.WithoutControls(field.Value))
		}
	}
	switch {
	case f.Chunked:
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
	case f.Length >= 0:
		b = fmt.Appendf(b, "Content-Length: %d\r\n", f.Length)
	}
	return append(b, "\r\n"...)
}

// pieceOf is how much of a body is read at a time.
const pieceOf = 32 << 10

func (c *Conn) readSized(left int64) func() error {
	buf := make([]byte, min(left, pieceOf))
	return func() error {
		n, err := c.r.Read(buf[:min(int64(len(buf)), left)])
		c.out = buf[:n]
		if left -= int64(n); left == 0 {
			c.next = c.readHead
			return nil
		}
		return err
	}
}

func (c *Conn) readChunks(chunks *message.Chunks) func() error {
	buf := make([]byte, pieceOf)
	return func() error {
		n, err := chunks.Read(buf)
		if n > 0 {
			c.out = append(fmt.Appendf(nil, "%x\r\n", n), buf[:n]...)
			c.out = append(c.out, "\r\n"...)
		}
		if err != io.EOF {
			return err
		}
		c.out = append(c.out, "0\r\n"...)
		for _, t := range chunks.Trailer {
			c.out = fmt.Appendf(c.out, "%s: %s\r\n", t.Name, message.WithoutControls(t.Value))
		}
		c.out, c.next = append(c.out, "\r\n"...), c.readHead
		return nil
	}
}

// Write implements net.Conn.
func (c *Conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	if c.order == nil {
		c.mu.Unlock()
		return c.Conn.Write(p)
	}
	c.held = append(c.held, p...)
	start, end, whole := finalHead(c.held)
	if !whole && len(c.held) <= maxHead {
		c.mu.Unlock()
		return len(p), nil
	}
	out := c.held
	if whole {
		out = append(make([]byte, 0, len(c.held)+64), c.held[:start]...)
		out = arrange(out, c.held[start:end], c.order)
		out = append(out, c.held[end:]...)
	}
	c.held, c.order = nil, nil
	c.mu.Unlock()
	if _, err := c.Conn.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Begin says that the next answer is that to a request with a method, to a port of HTTP's own or to another. It is
// called between messages.
func (c *Conn) Begin(method string, ownPort bool) {
	c.mu.Lock()
	c.method, c.ownPort, c.head = method, ownPort, nil
	c.mu.Unlock()
}

// Arrange gives the next head that is sent the order and case of these fields. Fields that
// the head lacks are left out, its other fields come last. An interim response (1xx) is sent
// before it, unchanged.
func (c *Conn) Arrange(fields []lab.HeaderField) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.order = fields; fields == nil {
		c.order = []lab.HeaderField{}
	}
}

// Head returns the reason and the fields of the answer that was received since Begin;
// interim responses are skipped. ok is false if the head was not seen completely.
func (c *Conn) Head() (reason string, fields []lab.HeaderField, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.head == nil {
		return "", nil, false
	}
	_, _, reason, _ = message.Status(c.head.Start)
	return reason, c.head.Fields, true
}

// finalHead finds the first head of b that is not an interim response: it is
// b[start:end], the empty line included.
func finalHead(b []byte) (start, end int, ok bool) {
	for {
		for start < len(b) && (b[start] == '\r' || b[start] == '\n') {
			start++ // RFC 9112, 2.2: an empty line before a request is ignored
		}
		n := bytes.Index(b[start:], []byte("\r\n\r\n"))
		if n < 0 {
			return start, 0, false
		}
		end = start + n + 4
		if !interim(b[start:end]) {
			return start, end, true
		}
		start = end
	}
}

// interim tells a 1xx response other than 101, which is a final one.
func interim(head []byte) bool {
	const version = "HTTP/1.1 "
	return len(head) > len(version)+3 && bytes.HasPrefix(head, []byte("HTTP/1.")) &&
		head[len(version)] == '1' && string(head[len(version):len(version)+3]) != "101"
}

// arrange appends head to out with its lines in order, and its target and values as they were.
func arrange(out, head []byte, order []lab.HeaderField) []byte {
	lines := bytes.Split(bytes.TrimSuffix(head, []byte("\r\n\r\n")), []byte("\r\n"))
	out = append(append(out, originForm(lines[0])...), "\r\n"...)
	lines = lines[1:]
	for _, f := range order {
		for i, line := range lines {
			if len(line) > len(f.Name) && line[len(f.Name)] == ':' && strings.EqualFold(string(line[:len(f.Name)]), f.Name) {
				out = append(out, f.Name...)
				if value := message.WithoutControls(f.Value); value != f.Value && string(line[len(f.Name):]) == ": "+value {
					out = append(appendValue(append(out, ": "...), f.Value), "\r\n"...)
				} else {
					out = append(append(out, line[len(f.Name):]...), "\r\n"...)
				}
				lines[i] = nil
				break
			}
		}
	}
	for _, line := range lines {
		if line != nil {
			out = append(append(out, line...), "\r\n"...)
		}
	}
	return append(out, "\r\n"...)
}

// originForm returns a request line with its target in origin form: net/http writes a path that begins with two slashes
// and is no valid one in absolute form.
func originForm(line []byte) []byte {
	method, target, _ := strings.Cut(string(line), " ")
	if strings.HasPrefix(method, "HTTP/") {
		return line // an answer's
	}
	if _, rest, ok := strings.Cut(target, "://"); ok && !strings.HasPrefix(target, "/") && strings.Contains(rest, "/") {
		return []byte(method + " " + rest[strings.IndexByte(rest, '/'):])
	}
	return line
}
