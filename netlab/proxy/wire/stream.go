package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"

	"golang.org/x/net/http2"

	"eidetic/internal/lab"
)

// stream is one request of an HTTP/2 connection and its answer. The connection's lock guards
// its fields, except those of the handler.
type stream struct {
	c   *conn2
	id  uint32
	ctx requestContext
	w   response // the handler's

	room   int64 // window that the device gives it
	failed error // why the stream ended early

	priority priority
	pending  []byte    // of the body, until it is in the connection's buffer
	last     bool      // pending ends the answer
	taken    sync.Cond // signals that nothing is pending any more
	turn     uint64    // when it was served last
	stuck    int       // looks in a row that found it without a window
	stuckAt  uint64    // turn at the last of them

	body     bytes.Buffer // received and not read yet
	arrived  sync.Cond    // signals more of the body, or its end
	declared int64        // Content-Length, or -1
	got      int64
	owed     int64
	ended    bool // the request is complete
	reading  bool // the handler waits for more of it
	answered bool // the answer has begun
	expect   bool // the device waits for 100 Continue
	trailer  http.Header
}

// request makes a request of a header. Its fields were checked by the framer.
func request(f *http2.MetaHeadersFrame) (*http.Request, error) {
	r := &http.Request{
		Method: f.PseudoValue("method"), Proto: "HTTP/2.0", ProtoMajor: 2, Host: f.PseudoValue("authority"),
		RequestURI: f.PseudoValue("path"), ContentLength: -1,
	}
	scheme := f.PseudoValue("scheme")
	if r.Method == http.MethodConnect {
		if scheme != "" || r.RequestURI != "" || r.Host == "" {
			return nil, errors.New("a CONNECT has an authority and nothing else")
		}
		r.URL, r.RequestURI = &url.URL{Host: r.Host}, r.Host
	} else {
		if r.Method == "" || r.RequestURI == "" || scheme != "https" && scheme != "http" {
			return nil, errors.New("method, path and scheme are required")
		}
		if r.URL = targetURL(r.Method, r.RequestURI); r.URL == nil {
			return nil, errors.New("the path is none")
		}
	}
	regular := f.RegularFields()
	r.Header = make(http.Header, len(regular))
	values := make([]string, len(regular)) // one allocation for the many fields with one value
	for _, h := range regular {
		name := http.CanonicalHeaderKey(h.Name)
		old := r.Header[name]
		switch {
		case name == "Content-Length":
			n, err := strconv.ParseInt(h.Value, 10, 64)
			if err != nil || n < 0 || old != nil && old[0] != h.Value {
				return nil, errors.New("bad Content-Length")
			}
			r.ContentLength = n
		case name == "Trailer":
			r.Trailer = http.Header{}
		case name == "Cookie" && old != nil: // RFC 9113, 8.2.3
			old[0] += "; " + h.Value
			continue
		case name == "Connection" || name == "Transfer-Encoding" || name == "Keep-Alive" || name == "Upgrade" ||
			name == "Proxy-Connection" || name == "Te" && h.Value != "trailers":
			return nil, errors.New("a field of HTTP/1.1's connections")
		}
		if old != nil {
			r.Header[name] = append(old, h.Value)
			continue
		}
		values[0] = h.Value
		r.Header[name] = values[:1:1]
		values = values[1:]
	}
	if r.Host == "" {
		r.Host = r.Header.Get("Host")
	}
	delete(r.Header, "Host")
	return r, nil
}

// handle answers the request.
func (s *stream) handle(r *http.Request, tooLarge bool) {
	whole := false
	func() {
		defer func() {
			if reason := recover(); reason != nil {
				s.c.complain(reason)
				whole = false
			}
		}()
		if tooLarge {
			s.w.WriteHeader(http.StatusRequestHeaderFieldsTooLarge)
		} else {
			s.c.s.Handler.ServeHTTP(&s.w, r)
		}
		whole = s.w.end()
	}()
	s.ctx.cancel()
	c := s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running--
	if s.failed == nil {
		switch {
		case !whole:
			c.reset(s.id, http2.ErrCodeInternal)
		case !s.ended:
			c.reset(s.id, http2.ErrCodeNo) // the rest of the request's body is not wanted
		}
	}
	s.abort(errClosed)
	delete(c.streams, s.id)
	c.flush()
}

// abort fails the stream and wakes everything that waits for it. The caller holds the lock.
func (s *stream) abort(err error) {
	if s.failed == nil {
		s.failed = err
	}
	if n := int64(s.body.Len()); n > 0 {
		s.c.received -= n
		s.body = bytes.Buffer{}
		s.c.give(nil, n)
	}
	s.arrived.Broadcast()
	s.c.schedule.remove(s)
	s.ctx.cancel()
}

func (s *stream) head(status int, _ string, fields []lab.HeaderField, _ int64, _ bool) error {
	c := s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.failed != nil {
		return s.failed
	}
	c.appendHeaders(s.id, status, fields)
	if informational(status) {
		c.flush()
	} else {
		s.answered = true
	}
	return c.err
}

// data waits until the connection's buffer has taken b. If b is the last piece of the answer,
// data ends the stream.
func (s *stream) data(b []byte, last bool) error {
	c := s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := errors.Join(s.failed, c.err); err != nil {
		return err
	}
	s.pending, s.last = b, last
	c.schedule.add(s)
	if q := &c.schedule; !q.congested && !q.holding && !q.exceeds(len(c.out)) {
		c.fill() // everything is sent together, so the order does not matter
	}
	for len(s.pending) > 0 {
		if !c.sending && c.ready() {
			c.flush()
			continue
		}
		s.taken.Wait()
	}
	if s.last {
		return nil // the device may even have seen the end of the stream
	}
	return errors.Join(s.failed, c.err)
}

func (s *stream) flush() error {
	c := s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flush()
	return errors.Join(s.failed, c.err)
}

// finish ends the stream on its last frame, if that was not sent yet.
func (s *stream) finish(trailer []lab.HeaderField) error {
	c := s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := errors.Join(s.failed, c.err); err != nil && !s.last {
		return err
	}
	switch {
	case s.last:
	case len(trailer) > 0:
		c.appendHeaders(s.id, 0, trailer)
		c.out[c.ending.at+flagsAt] |= byte(http2.FlagHeadersEndStream)
	case c.ending.stream == s.id:
		c.out[c.ending.at+flagsAt] |= byte(http2.FlagDataEndStream) // the same bit for both kinds
	default:
		c.appendFrame(http2.FrameData, http2.FlagDataEndStream, s.id, nil)
	}
	c.ending = frameRef{}
	return nil
}

func (s *stream) hijack() (net.Conn, *bufio.ReadWriter, error) {
	return nil, nil, http.ErrNotSupported
}

// body2 is the request's body, for the handler.
type body2 stream

// Read implements io.Reader.
func (b *body2) Read(p []byte) (int, error) {
	s := (*stream)(b)
	c := s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.expect {
		s.expect = false
		if s.body.Len() == 0 && !s.ended && s.failed == nil && s.w.status == 0 {
			c.appendHeaders(s.id, http.StatusContinue, nil)
			c.flush()
		}
	}
	for s.body.Len() == 0 && !s.ended && s.failed == nil {
		s.reading = true
		s.arrived.Wait()
	}
	s.reading = false
	if s.failed != nil {
		return 0, s.failed
	}
	if s.body.Len() == 0 {
		return 0, io.EOF
	}
	n, _ := s.body.Read(p) // it is not empty
	c.received -= int64(n)
	before := len(c.out)
	c.give(s, int64(n))
	if len(c.out) > before {
		c.flush()
	}
	return n, nil
}

// Close implements io.Closer; the unread rest is dropped when the answer has ended.
func (b *body2) Close() error { return nil }
