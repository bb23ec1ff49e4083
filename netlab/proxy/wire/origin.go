package wire

import (
	"bytes"
	"net"
	"strings"
	"sync"

	"eidetic/internal/lab"
)

// maxHead bounds what is remembered of a message; a longer head is left to the transport,
// which refuses it.
const maxHead = 1 << 20

// Conn is the connection to an origin that speaks HTTP/1.1. It lies below an
// http.Transport, which keeps neither order nor case of fields: a Conn remembers the head
// that is received, and puts the head that is sent into a given order. What is sent is still
// the transport's: lines are moved and the case of names is changed, nothing else, so a
// mistake here cannot make a message that means something else.
type Conn struct {
	net.Conn

	mu   sync.Mutex
	in   []byte // what came since Begin
	deaf bool   // nothing more of the current message is remembered

	order []lab.HeaderField // of the next head that is sent
	held  []byte            // of a head that is not complete yet
}

// NewConn wraps a connection.
func NewConn(c net.Conn) *Conn { return &Conn{Conn: c} }

// NetConn returns what is wrapped.
func (c *Conn) NetConn() net.Conn { return c.Conn }

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.mu.Lock()
		if !c.deaf {
			c.in = append(c.in, p[:n]...)
			_, _, whole := finalHead(c.in)
			c.deaf = whole || len(c.in) > maxHead
		}
		c.mu.Unlock()
	}
	return n, err
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

// Begin forgets the message that was received last. It is called between messages.
func (c *Conn) Begin() {
	c.mu.Lock()
	c.in, c.deaf = c.in[:0], false
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

// Head returns the start line and fields of the message that was received since Begin;
// interim responses are skipped. ok is false if the head was not seen completely.
func (c *Conn) Head() (start string, fields []lab.HeaderField, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	from, to, whole := finalHead(c.in)
	if !whole {
		return "", nil, false
	}
	return parseHead(c.in[from:to])
}

// parseHead splits a head into lines. ok is false for syntax that net/http reads in its own
// way, such as folded lines.
func parseHead(head []byte) (start string, fields []lab.HeaderField, ok bool) {
	for i, line := range strings.Split(strings.TrimRight(string(head), "\r\n"), "\n") {
		line = strings.TrimSuffix(line, "\r")
		if i == 0 {
			start = line
			continue
		}
		name, value, found := strings.Cut(line, ":")
		if !found || !token(name) {
			return "", nil, false
		}
		fields = append(fields, lab.HeaderField{Name: name, Value: strings.Trim(value, " \t")})
	}
	return start, fields, true
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

// arrange appends head to out with its lines in order.
func arrange(out, head []byte, order []lab.HeaderField) []byte {
	lines := bytes.Split(bytes.TrimSuffix(head, []byte("\r\n\r\n")), []byte("\r\n"))
	out = append(append(out, lines[0]...), "\r\n"...)
	lines = lines[1:]
	for _, f := range order {
		for i, line := range lines {
			if len(line) > len(f.Name) && line[len(f.Name)] == ':' && strings.EqualFold(string(line[:len(f.Name)]), f.Name) {
				out = append(append(append(out, f.Name...), line[len(f.Name):]...), "\r\n"...)
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
