package proxy

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
)

// coreAnswer lets the core, which is an http.Handler, answer a request of goproxy,
// which wants an *http.Response. The core runs in a goroutine of its own. Its header
// becomes the response's; goproxy writes that to the client and then copies the body,
// which is the coreAnswer: WriteTo gets the client, and the core goes on to write to it
// without a copy in between, so that each flush is made when the core makes it.
type coreAnswer struct {
	request *http.Request
	client  http.ResponseWriter // for 1xx responses, which an *http.Response cannot hold
	header  http.Header
	began   chan responseOrError // of capacity 1
	to      chan io.Writer       // of capacity 1: the client, once goproxy has written the header
	closed  chan struct{}        // goproxy wants no more of the body
	ended   chan struct{}        // the core has returned
	once    sync.Once            // of Close

	// The core's goroutine owns the following until it has ended.
	response *http.Response // nil before the header
	out      io.Writer      // what to has sent
	written  int64
	panicked any // what the core panicked with
}

type responseOrError struct {
	*http.Response
	err error
}

// answerFrom returns the response that core writes to a request of goproxy.
func answerFrom(core func(http.ResponseWriter), r *http.Request, client http.ResponseWriter) (*http.Response, error) {
	a := &coreAnswer{
		request: r, client: client, header: http.Header{}, began: make(chan responseOrError, 1),
		to: make(chan io.Writer, 1), closed: make(chan struct{}), ended: make(chan struct{}),
	}
	go a.run(core)
	select {
	case got := <-a.began:
		return got.Response, got.err
	case <-a.ended:
	}
	if a.panicked != nil {
		panic(a.panicked) // as if the core had run in this goroutine
	}
	got := <-a.began
	return got.Response, got.err
}

func (a *coreAnswer) run(core func(http.ResponseWriter)) {
	defer close(a.ended)
	defer func() { a.panicked = recover() }()
	core(a)
	a.WriteHeader(http.StatusOK) // if there is none yet
}

// Header implements http.ResponseWriter.
func (a *coreAnswer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *coreAnswer) WriteHeader(status int) {
	switch {
	case a.response != nil:
		return
	case status >= 100 && status < 200: // a 101 comes by Hijack
		h := a.client.Header()
		for name, values := range a.header {
			h[name] = values
		}
		a.client.WriteHeader(status)
		clear(h)
		return
	}
	h := a.header.Clone()
	for name := range h {
		if strings.HasPrefix(name, http.TrailerPrefix) {
			delete(h, name)
		}
	}
	trailer := http.Header{} // goproxy announces its names
	for _, field := range h["Trailer"] {
		for name := range strings.SplitSeq(field, ",") {
			trailer[http.CanonicalHeaderKey(strings.TrimSpace(name))] = nil
		}
	}
	delete(h, "Trailer")
	a.response = &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: h, Trailer: trailer, Body: a, Request: a.request,
	}
	a.began <- responseOrError{Response: a.response}
}

// destination waits until goproxy has written the header, and returns the client.
func (a *coreAnswer) destination() io.Writer {
	a.WriteHeader(http.StatusOK) // if there is none yet
	if a.out == nil {
		select {
		case a.out = <-a.to:
		case <-a.closed:
			a.out = closedWriter{}
		}
	}
	return a.out
}

// closedWriter refuses the body that goproxy does not want.
type closedWriter struct{}

func (closedWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// Write implements http.ResponseWriter.
func (a *coreAnswer) Write(b []byte) (int, error) {
	n, err := a.destination().Write(b)
	a.written += int64(n)
	return n, err
}

// FlushError sends what was written; http.ResponseController calls it.
func (a *coreAnswer) FlushError() error {
	if f, ok := a.destination().(interface{ FlushError() error }); ok {
		return f.FlushError()
	}
	return nil // goproxy flushes each write of an event stream
}

// WriteTo implements io.WriterTo, which io.Copy prefers to Read.
func (a *coreAnswer) WriteTo(w io.Writer) (int64, error) {
	a.to <- w
	<-a.ended
	if a.panicked != nil {
		panic(a.panicked) // net/http's server then closes the connection
	}
	for name := range a.response.Trailer {
		a.response.Trailer[name] = a.header[name]
	}
	for name, values := range a.header {
		if bare, ok := strings.CutPrefix(name, http.TrailerPrefix); ok && len(values) > 0 {
			a.response.Trailer[bare] = values
		}
	}
	return a.written, nil
}

// Read implements io.Reader. Nothing calls it, since WriteTo exists.
func (a *coreAnswer) Read([]byte) (int, error) { return 0, io.ErrNoProgress }

// Close implements io.Closer.
func (a *coreAnswer) Close() error {
	a.once.Do(func() { close(a.closed) })
	return nil
}

// Hijack implements http.Hijacker: the core gets one end of a pipe, and the head that
// it writes there becomes goproxy's response, whose body is the other end.
func (a *coreAnswer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	core, other := net.Pipe()
	a.response = &http.Response{} // no header follows by WriteHeader
	go func() {
		r := bufio.NewReader(other)
		resp, err := http.ReadResponse(r, a.request)
		if err != nil {
			_ = other.Close() // the core notices that
			a.began <- responseOrError{err: err}
			return
		}
		resp.Body = &upgraded{Conn: other, r: r, device: deviceOf(a.request)}
		a.began <- responseOrError{Response: resp}
	}()
	return core, bufio.NewReadWriter(bufio.NewReader(core), bufio.NewWriter(core)), nil
}

// upgraded is the core's side of an upgraded connection.
type upgraded struct {
	net.Conn
	r      *bufio.Reader
	device *conn // which goproxy does not close; nil when it is not known
}

// Read implements io.Reader.
func (u *upgraded) Read(b []byte) (int, error) { return u.r.Read(b) }

// Close ends both sides.
func (u *upgraded) Close() error {
	if u.device != nil {
		_ = u.device.Close() // the device may be gone
	}
	return u.Conn.Close()
}
