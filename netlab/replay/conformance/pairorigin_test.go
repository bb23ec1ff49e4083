package conformance

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"eidetic/internal/lab"
	"eidetic/netlab/ca"
)

// odd is what an origin sends for one request. Most of it no server library would send.
type odd struct {
	start   string // of HTTP/1; "" for that of status
	status  int    // 0 is 200
	interim []interim
	fields  []lab.HeaderField
	lines   []string // of an HTTP/1 head, as they are
	before  string   // of HTTP/1: bytes before the head
	eol     string   // of HTTP/1 lines, "" is CRLF
	noHead  bool     // HTTP/0.9
	body    string   // coded
	framing framing
	trailer []lab.HeaderField
	// takeOver, if set, gets the connection of HTTP/1 after the request.
	takeOver func(c net.Conn, r *bufio.Reader, q *inquiry)
}

// interim is an answer before the answer.
type interim struct {
	status int
	fields []lab.HeaderField
}

// framing says how the end of a body is told. The zero value is a Content-Length.
type framing struct {
	length  string // in place of the true one; "-" for none
	chunks  func(body string) string
	codings []string // values of Transfer-Encoding
	close   bool     // the connection ends with the body
	cut     int      // bytes of the body that are not sent
	piece   int      // at most so many bytes in one write or DATA frame; 0 is all
	pause   time.Duration
	// Of HTTP/2:
	pad        int // bytes of padding in each DATA frame
	emptyData  bool
	split      bool // the header in CONTINUATION frames
	reset      bool // RST_STREAM after the end
	headersEnd bool // an empty body ends with the header
}

// inquiry is a request as the origin got it.
type inquiry struct {
	host, method, target string
	fields               []lab.HeaderField
	body                 []byte
	nth                  int // of this target, from 1
	h2                   bool
}

func (q *inquiry) get(name string) string { return (&lab.Message{Header: q.fields}).Get(name) }

// line is the request as it is compared.
func (q *inquiry) line() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s", q.host, q.method, q.target)
	fields := slices.Clone(q.fields)
	if q.h2 { // net/http sorts them
		slices.SortFunc(fields, func(a, b lab.HeaderField) int { return strings.Compare(a.Name+a.Value, b.Name+b.Value) })
	}
	for _, f := range fields {
		if !varies(f.Name) {
			fmt.Fprintf(&b, "\n  %s: %s", f.Name, f.Value)
		}
	}
	return b.String()
}

// varies tells fields that differ between two direct loads: what a browser draws by lot, and what depends on which
// of its connections was free.
func varies(name string) bool {
	switch strings.ToLower(name) {
	case "sec-websocket-key", "content-type", "content-length", "connection", "te", "priority", "rtt", "downlink", "ect":
		return true // boundaries of forms are drawn by lot, and connection and te are those of each connection
	}
	return false
}

// pairOrigin serves pages at their hosts.
type pairOrigin struct {
	pages         map[string]*oddPage
	plain, secure net.Listener

	mu    sync.Mutex
	seen  map[string][]string // by page
	count map[string]int
	conns map[net.Conn]bool
}

func newPairOrigin(t *testing.T, authority *ca.Authority, pages []*oddPage) *pairOrigin {
	o := &pairOrigin{pages: map[string]*oddPage{}, conns: map[net.Conn]bool{}}
	for _, p := range pages {
		o.pages[p.host] = p
	}
	o.again()
	for _, l := range []*net.Listener{&o.plain, &o.secure} {
		var err error
		*l, err = net.Listen("tcp", "127.0.0.1:0")
		check(t, err)
	}
	config := &tls.Config{GetCertificate: authority.GetCertificate, GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		c := &tls.Config{GetCertificate: authority.GetCertificate, NextProtos: []string{"http/1.1"}}
		if p := o.page(hello.ServerName); p != nil && p.h2 {
			c.NextProtos = []string{"h2", "http/1.1"}
		}
		return c, nil
	}}
	var serving sync.WaitGroup
	serve := func(l net.Listener) {
		serving.Go(func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				o.keep(c)
				serving.Go(func() { o.serve(c) })
			}
		})
	}
	serve(o.plain)
	serve(tls.NewListener(o.secure, config))
	t.Cleanup(func() {
		_, _ = o.plain.Close(), o.secure.Close()
		o.drop()
		serving.Wait()
	})
	return o
}

func (o *pairOrigin) keep(c net.Conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.conns[c] = true
}

// drop ends all connections.
func (o *pairOrigin) drop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for c := range o.conns {
		_ = c.Close()
	}
	clear(o.conns)
}

// again forgets what was asked.
func (o *pairOrigin) again() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen, o.count = map[string][]string{}, map[string]int{}
}

// page returns the page of a host, of which it may have several.
func (o *pairOrigin) page(host string) *oddPage {
	host, _, _ = strings.Cut(host, ":")
	host = strings.ToLower(host)
	for host != "" {
		if p := o.pages[host]; p != nil {
			return p
		}
		_, host, _ = strings.Cut(host, ".")
	}
	return nil
}

// answer is what the origin sends.
func (o *pairOrigin) answer(q *inquiry) *odd {
	p := o.page(q.host)
	if p == nil {
		return &odd{status: 421}
	}
	o.mu.Lock()
	key := q.host + " " + q.method + " " + q.target
	o.count[key]++
	q.nth = o.count[key]
	if line := q.line(); !isBrowsersOwn(q.target) && !slices.Contains(o.seen[p.host], line) {
		o.seen[p.host] = append(o.seen[p.host], line)
	}
	o.mu.Unlock()
	if a := p.answer(q); a != nil {
		return a
	}
	if strings.HasSuffix(q.target, "/favicon.ico") {
		return &odd{status: 204, framing: framing{length: "-"}}
	}
	return &odd{status: 404, fields: field("Content-Type", "text/plain"), body: "no " + q.target}
}

func field(pairs ...string) (fields []lab.HeaderField) {
	for i := 0; i < len(pairs); i += 2 {
		fields = append(fields, lab.HeaderField{Name: pairs[i], Value: pairs[i+1]})
	}
	return fields
}

func (o *pairOrigin) serve(c net.Conn) {
	defer c.Close()
	if t, ok := c.(*tls.Conn); ok {
		if t.Handshake() != nil {
			return
		}
		if t.ConnectionState().NegotiatedProtocol == "h2" {
			o.serve2(c)
			return
		}
	}
	r := bufio.NewReader(c)
	for {
		q := readInquiry(r)
		if q == nil {
			return
		}
		a := o.answer(q)
		if a.takeOver != nil {
			a.takeOver(c, r, q)
			return
		}
		if !a.write1(c, q.method == "HEAD") {
			return
		}
	}
}

// readInquiry reads a request of HTTP/1, or nil.
func readInquiry(r *bufio.Reader) *inquiry {
	q := &inquiry{}
	line, err := r.ReadString('\n')
	if err != nil {
		return nil
	}
	var ok bool
	if q.method, line, ok = strings.Cut(strings.TrimRight(line, "\r\n"), " "); !ok {
		return nil
	}
	if at := strings.LastIndexByte(line, ' '); at >= 0 {
		q.target = line[:at]
	}
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return nil
		}
		if line = strings.TrimRight(line, "\r\n"); line == "" {
			break
		}
		name, value, _ := strings.Cut(line, ":")
		q.fields = append(q.fields, lab.HeaderField{Name: name, Value: strings.TrimSpace(value)})
	}
	q.host = q.get("Host")
	if n, err := strconv.Atoi(q.get("Content-Length")); err == nil {
		q.body = make([]byte, n)
		if _, err := io.ReadFull(r, q.body); err != nil {
			return nil
		}
	}
	return q
}

// head is the head of HTTP/1.
func (a *odd) head() string {
	eol := a.eol
	if eol == "" {
		eol = "\r\n"
	}
	var b strings.Builder
	for _, i := range a.interim {
		fmt.Fprintf(&b, "HTTP/1.1 %d X%s", i.status, eol)
		for _, f := range i.fields {
			fmt.Fprint(&b, f.Name, ": ", f.Value, eol)
		}
		b.WriteString(eol)
	}
	start := a.start
	if start == "" {
		start = fmt.Sprintf("HTTP/1.1 %d Odd", max(a.status, 200))
		if a.status == 0 {
			start = "HTTP/1.1 200 OK"
		}
	}
	fmt.Fprint(&b, a.before, start, eol)
	for _, f := range a.fields {
		fmt.Fprint(&b, f.Name, ": ", f.Value, eol)
	}
	for _, line := range a.lines {
		fmt.Fprint(&b, line, eol)
	}
	for _, coding := range a.framing.codings {
		fmt.Fprint(&b, "Transfer-Encoding: ", coding, eol)
	}
	switch length := a.framing.length; {
	case length == "" && a.framing.chunks == nil && !a.framing.close:
		fmt.Fprint(&b, "Content-Length: ", len(a.body), eol)
	case length != "" && length != "-":
		fmt.Fprint(&b, "Content-Length: ", length, eol)
	}
	if a.framing.close {
		fmt.Fprint(&b, "Connection: close", eol)
	}
	return b.String() + eol
}

// write1 tells whether another request may follow.
func (a *odd) write1(w io.Writer, isHead bool) bool {
	body := a.body
	if a.framing.chunks != nil {
		body = a.framing.chunks(body)
	}
	body = body[:len(body)-min(len(body), a.framing.cut)]
	out := a.head()
	if a.noHead {
		out = ""
	}
	if a.framing.pause > 0 { // the head stands alone
		if _, err := io.WriteString(w, out); err != nil {
			return false
		}
		out = ""
		<-time.After(a.framing.pause)
	}
	if !isHead {
		out += body
	}
	for len(out) > 0 {
		n := len(out)
		if a.framing.piece > 0 {
			n = min(n, a.framing.piece)
		}
		if _, err := io.WriteString(w, out[:n]); err != nil {
			return false
		}
		out = out[n:]
	}
	return !a.framing.close && a.framing.cut == 0 && !a.noHead
}

// serve2 speaks as much of HTTP/2 as a browser needs.
func (o *pairOrigin) serve2(c net.Conn) {
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(c, preface); err != nil {
		return
	}
	f := http2.NewFramer(c, bufio.NewReader(c))
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	f.MaxHeaderListSize = 1 << 20
	if f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20}) != nil {
		return
	}
	open := map[uint32]*inquiry{}
	reply := func(id uint32) { o.answer(open[id]).write2(f, id, open[id].method == "HEAD"); delete(open, id) }
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				err = f.WriteSettingsAck()
			}
		case *http2.PingFrame:
			if !frame.IsAck() {
				err = f.WritePing(true, frame.Data)
			}
		case *http2.MetaHeadersFrame:
			q := &inquiry{h2: true, host: frame.PseudoValue("authority"), method: frame.PseudoValue("method"), target: frame.PseudoValue("path")}
			for _, h := range frame.RegularFields() {
				q.fields = append(q.fields, lab.HeaderField{Name: h.Name, Value: h.Value})
			}
			if open[frame.StreamID] = q; frame.StreamEnded() {
				reply(frame.StreamID)
			}
		case *http2.DataFrame:
			if q := open[frame.StreamID]; q != nil {
				if q.body = append(q.body, frame.Data()...); frame.StreamEnded() {
					reply(frame.StreamID)
				}
			}
		}
		if err != nil {
			return
		}
	}
}

// write2 sends the answer on a stream. A body fits into the window of a browser. An error ends the reading, too.
func (a *odd) write2(f *http2.Framer, id uint32, isHead bool) {
	for _, i := range a.interim {
		a.headers2(f, id, i.status, i.fields, false)
	}
	fields := a.fields
	switch length := a.framing.length; {
	case length == "":
		fields = append(slices.Clone(fields), field("content-length", strconv.Itoa(len(a.body)))...)
	case length != "-":
		fields = append(slices.Clone(fields), field("content-length", length)...)
	}
	body := a.body[:len(a.body)-min(len(a.body), a.framing.cut)]
	ends := isHead || a.framing.headersEnd && body == ""
	status := a.status
	if status == 0 {
		status = 200
	}
	a.headers2(f, id, status, fields, ends)
	if ends {
		return
	}
	var pad []byte
	if a.framing.pad > 0 {
		pad = make([]byte, a.framing.pad)
	}
	last := !a.framing.emptyData && len(a.trailer) == 0
	for first := true; first || len(body) > 0; first = false {
		n := min(len(body), 16000)
		if a.framing.piece > 0 {
			n = min(n, a.framing.piece)
		}
		_ = f.WriteDataPadded(id, last && n == len(body), []byte(body[:n]), pad)
		body = body[n:]
	}
	switch {
	case len(a.trailer) > 0:
		a.headers2(f, id, 0, a.trailer, true)
	case !last:
		_ = f.WriteData(id, true, nil)
	}
	if a.framing.reset {
		_ = f.WriteRSTStream(id, http2.ErrCodeNo)
	}
}

func (a *odd) headers2(f *http2.Framer, id uint32, status int, fields []lab.HeaderField, end bool) {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	if status > 0 {
		_ = e.WriteField(hpack.HeaderField{Name: ":status", Value: strconv.Itoa(status)}) // to memory
	}
	for _, h := range fields {
		if name := strings.ToLower(h.Name); name != "connection" {
			_ = e.WriteField(hpack.HeaderField{Name: name, Value: h.Value})
		}
	}
	block, first := b.Bytes(), b.Len()
	if a.framing.split || first > 16000 {
		first = min(first, 16000)
		if a.framing.split {
			first = min(first, 7)
		}
	}
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block[:first], EndStream: end, EndHeaders: first == len(block)})
	for block = block[first:]; len(block) > 0; {
		n := min(len(block), 16000)
		_ = f.WriteContinuation(id, n == len(block), block[:n])
		block = block[n:]
	}
}
