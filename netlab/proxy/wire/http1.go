package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/message"
)

// conn1 is a connection of HTTP/1.1: one request after another.
type conn1 struct {
	connection
	r       *bufio.Reader
	out     []byte
	until   time.Time // the read deadline; zero for none
	watcher chan struct{}
	gone    bool // the connection cannot be used again
	isOld   bool // a request was read: it is no connection of HTTP/2
	taken   bool // a handler has hijacked the connection
}

func newConn1(c connection) *conn1 {
	return &conn1{connection: c, r: bufio.NewReaderSize(c.nc, 4<<10)}
}

func (c *conn1) serve() {
	for wait := c.s.HeaderTimeout; ; wait = c.s.IdleTimeout {
		r, fields, err := c.next(wait)
		if errors.Is(err, errPreface) {
			newConn2(c.connection, c.r).serve()
			return
		}
		if err != nil {
			c.refuse(err)
			return
		}
		c.isOld = true
		if !c.handle(r, fields) {
			return
		}
	}
}

// errPreface says that the device speaks HTTP/2 without TLS (RFC 9113, 3.3), as programs with gRPC do.
var errPreface = errors.New("the preface of HTTP/2") // constant

// isPreface tells the preface of HTTP/2, which begins like a request with a method that there is none of.
func (c *conn1) isPreface() bool {
	const begin = "PRI "
	b, _ := c.r.Peek(1) // it is there
	if c.isOld || c.tls != nil || b[0] != begin[0] {
		return false
	}
	b, err := c.r.Peek(len(begin))
	return err == nil && string(b) == begin
}

// next reads the next request's header.
func (c *conn1) next(wait time.Duration) (*http.Request, []lab.HeaderField, error) {
	if err := c.begun(wait); err != nil {
		return nil, nil, err
	}
	if c.isPreface() {
		return nil, nil, errPreface
	}
	if head, _ := c.r.Peek(c.r.Buffered()); !bytes.Contains(head, []byte("\r\n\r\n")) {
		c.deadline(c.s.HeaderTimeout)
	}
	r, fields, err := readRequest(c.r, c.s.MaxHeader)
	if err != nil {
		return nil, nil, err
	}
	r.RemoteAddr, r.TLS = c.remote, c.tls
	return r, fields, nil
}

// begun waits for the first byte of a request. Empty lines before it are skipped: some
// devices send one after a body (RFC 9112, 2.2).
func (c *conn1) begun(wait time.Duration) error {
	const most = 16
	for range most {
		if c.r.Buffered() == 0 {
			c.deadline(wait)
		}
		b, err := c.r.Peek(1)
		if err != nil {
			return io.EOF // the device is gone, or idle for too long
		}
		if b[0] != '\r' && b[0] != '\n' {
			if !message.IsToken(string(b)) { // a device that speaks another protocol would wait for long
				return errors.New("the request does not begin with a method")
			}
			return nil
		}
		_, _ = c.r.Discard(1) // it is there
	}
	return errors.New("too many empty lines before a request")
}

// deadline bounds the next reads. It is not set anew for each of many quick requests: a
// second more or less does not matter for an idle connection.
func (c *conn1) deadline(d time.Duration) {
	until := time.Now().Add(d)
	if off := until.Sub(c.until); off < 0 || off > time.Second {
		c.until = until
		_ = c.nc.SetReadDeadline(until) // a closed connection says so when it is read
	}
}

func (c *conn1) noDeadline() {
	c.until = time.Time{}
	_ = c.nc.SetReadDeadline(time.Time{})
}

// refuse answers a request that could not be read.
func (c *conn1) refuse(err error) {
	status, why := "400 Bad Request", err.Error()
	switch {
	case errors.Is(err, message.ErrTooLarge):
		status = "431 Request Header Fields Too Large"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed), errors.Is(err, os.ErrDeadlineExceeded):
		return
	default:
		if e := net.Error(nil); errors.As(err, &e) {
			return
		}
	}
	_ = c.nc.SetWriteDeadline(time.Now().Add(time.Second))
	const fields = "\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"
	_, _ = io.WriteString(c.nc, "HTTP/1.1 "+status+fields+status+": "+why+"\n") // the connection is closed in any case
	c.s.Log.Warn("a request was refused", "from", c.remote, "reason", why)
	c.linger()
}

// handle answers a request and tells whether another may follow on the connection.
func (c *conn1) handle(r *http.Request, fields []lab.HeaderField) bool {
	ctx := &requestContext{Context: c.base, received: fields}
	a := &answer1{c: c, r: r, ctx: ctx, keep: !r.Close}
	a.w = response{p: a, head: r.Method == http.MethodHead}
	if r.Body != http.NoBody {
		a.body = &body1{ReadCloser: r.Body, c: c, a: a}
		// A client of HTTP/1.0 knows no interim answers (RFC 9110, 10.1.1).
		a.body.expect = r.ProtoMinor > 0 && strings.EqualFold(r.Header.Get("Expect"), "100-continue")
		r.Body = a.body
	} else {
		ctx.watch = c.watch(ctx) // a request's body would have to be read first
	}
	whole := false
	func() {
		defer func() {
			if reason := recover(); reason != nil {
				c.complain(reason)
				whole = false
			}
		}()
		c.s.Handler.ServeHTTP(&a.w, r.WithContext(ctx))
		if !c.taken {
			whole = a.w.end()
		}
	}()
	ctx.cancel()
	if c.taken {
		return false
	}
	c.unwatch()
	if !whole || c.gone {
		_ = c.flush() // what there is of it
		return false
	}
	if c.flush() != nil { // whatever follows may take its time, or be no request
		return false
	}
	if a.body != nil && !a.body.drained() {
		a.keep = false
	}
	if !a.keep {
		c.linger()
	}
	return a.keep
}

func (c *conn1) flush() error {
	if len(c.out) == 0 {
		return nil
	}
	err := c.send(c.out)
	if cap(c.out) > 4*maxBuffered {
		c.out = nil
	}
	c.out = c.out[:0]
	return err
}

// watch returns a function that starts the disconnect watcher, which cancels ctx when the
// device goes away while a handler waits.
func (c *conn1) watch(ctx *requestContext) func() {
	return func() {
		ended := make(chan struct{})
		c.watcher = ended
		c.noDeadline()
		go func() {
			defer close(ended)
			if _, err := c.r.Peek(1); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
				c.gone = true
				ctx.cancel()
			}
		}()
	}
}

// unwatch stops the disconnect watcher.
func (c *conn1) unwatch() {
	if c.watcher == nil {
		return
	}
	_ = c.nc.SetReadDeadline(time.Unix(1, 0))
	<-c.watcher
	c.watcher = nil
	c.noDeadline()
}

// answer1 is the response to one request of the connection.
type answer1 struct {
	w       response
	c       *conn1
	r       *http.Request
	ctx     *requestContext
	body    *body1
	keep    bool
	chunked bool
	begun   bool
}

func (a *answer1) head(status int, reason string, fields []lab.HeaderField, length int64, bodiless bool) error {
	if reason == "" {
		reason = http.StatusText(status)
	}
	b := a.c.out
	b = append(b, "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(b, ' ')
	b = appendValue(b, strings.TrimSpace(reason))
	b = append(b, "\r\n"...)
	said := false // that the connection closes
	for _, f := range fields {
		if !message.IsToken(f.Name) || length < 0 && strings.EqualFold(f.Name, "Content-Length") {
			continue
		}
		if len(f.Name) == len("Connection") && strings.EqualFold(f.Name, "Connection") && strings.EqualFold(f.Value, "close") {
			a.keep, said = false, true
		}
		b = append(append(b, f.Name...), ": "...)
		b = append(appendValue(b, f.Value), "\r\n"...)
	}
	if informational(status) {
		a.c.out = append(b, "\r\n"...)
		return a.c.flush()
	}
	a.begun = true
	switch {
	case bodiless || length >= 0:
	case a.r.ProtoMinor > 0:
		a.chunked = true
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
	default:
		a.keep = false
	}
	switch {
	case !a.keep && !said:
		b = append(b, "Connection: close\r\n"...)
	case a.keep && a.r.ProtoMinor == 0:
		b = append(b, "Connection: keep-alive\r\n"...)
	}
	a.c.out = append(b, "\r\n"...)
	return nil
}

func (a *answer1) data(b []byte, _ bool) error {
	c := a.c
	if a.chunked {
		c.out = append(strconv.AppendInt(c.out, int64(len(b)), 16), "\r\n"...)
	}
	if len(c.out)+len(b) > maxBuffered {
		if err := c.flush(); err != nil {
			return err
		}
	}
	if len(b) > maxBuffered {
		if err := c.send(b); err != nil {
			return err
		}
	} else {
		c.out = append(c.out, b...)
	}
	if a.chunked {
		c.out = append(c.out, "\r\n"...)
	}
	return nil
}

func (a *answer1) flush() error { return a.c.flush() }

func (a *answer1) finish(trailer []lab.HeaderField) error {
	if !a.chunked {
		return nil
	}
	b := append(a.c.out, "0\r\n"...)
	for _, f := range trailer {
		if message.IsToken(f.Name) {
			b = append(append(b, f.Name...), ": "...)
			b = append(appendValue(b, f.Value), "\r\n"...)
		}
	}
	a.c.out = append(b, "\r\n"...)
	return nil
}

func (a *answer1) hijack() (net.Conn, *bufio.ReadWriter, error) {
	c := a.c
	if c.taken || a.begun {
		return nil, nil, http.ErrHijacked
	}
	a.ctx.mu.Lock()
	a.ctx.watch = nil
	a.ctx.mu.Unlock()
	c.unwatch()
	c.taken = true
	if err := c.flush(); err != nil {
		return nil, nil, err
	}
	c.noDeadline()
	return c.nc, bufio.NewReadWriter(c.r, bufio.NewWriter(c.nc)), nil
}

// body1 is a request's body.
type body1 struct {
	io.ReadCloser
	c      *conn1
	a      *answer1
	expect bool // the device waits for 100 Continue
	ended  bool
}

func (b *body1) Read(p []byte) (int, error) {
	if b.expect {
		b.expect = false
		if !b.a.begun {
			b.c.out = append(b.c.out, "HTTP/1.1 100 Continue\r\n\r\n"...)
			if err := b.c.flush(); err != nil {
				return 0, err
			}
		}
	}
	b.c.deadline(b.c.s.IdleTimeout)
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF && !b.ended {
		b.ended = true
		b.a.ctx.watchFromNow(b.c.watch(b.a.ctx))
	}
	return n, err
}

// Close implements io.Closer; drained reads the rest after the answer.
func (b *body1) Close() error { return nil }

// drained reads the little that the handler left of the body, so that another request can
// follow, and tells whether one can.
func (b *body1) drained() bool {
	const most = 256 << 10
	if b.ended {
		return true
	}
	if b.expect {
		return false // it was never sent
	}
	_, err := io.CopyN(io.Discard, b, most)
	return err == io.EOF
}
