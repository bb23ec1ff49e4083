package wire

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"strings"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"eidetic/internal/lab"
	"eidetic/netlab/message"
)

// Conn2 is the connection to an origin that speaks HTTP/2. It lies below an http.Transport, which does not tell the
// order of fields, and fails on a body of another length than stated and on a control character, which browsers read. A
// Conn2 gives the transport the head without these, and with one more field that has all fields as they were received.
// What is sent is the transport's.
type Conn2 struct {
	net.Conn
	r       *bufio.Reader // of one reading goroutine, as what follows
	out     []byte
	left    int // bytes of a frame that are passed on as they are, behind out
	err     error
	decoder *hpack.Decoder
	encoder *hpack.Encoder
	block   bytes.Buffer
	begun   map[uint32]bool // streams on which an answer has begun and not ended
}

// NewConn2 wraps a connection, with or without TLS.
func NewConn2(c net.Conn) *Conn2 {
	wrapped := newConn2From(c)
	wrapped.Conn = c
	return wrapped
}

// ConnectionState is what the transport tells of TLS in its answers.
func (c *Conn2) ConnectionState() tls.ConnectionState {
	if t, ok := c.Conn.(*tls.Conn); ok {
		return t.ConnectionState()
	}
	return tls.ConnectionState{}
}

func newConn2From(r io.Reader) *Conn2 {
	c := &Conn2{r: bufio.NewReaderSize(r, frameSize), decoder: hpack.NewDecoder(4096, nil), begun: map[uint32]bool{}}
	c.encoder = hpack.NewEncoder(&c.block)
	c.decoder.SetMaxStringLength(maxHead)
	return c
}

var _ net.Conn = (*Conn2)(nil)

// Read implements net.Conn.
func (c *Conn2) Read(p []byte) (int, error) {
	for len(c.out) == 0 && c.left == 0 && c.err == nil {
		c.err = c.next()
	}
	switch {
	case len(c.out) > 0:
		n := copy(p, c.out)
		c.out = c.out[n:]
		return n, nil
	case c.left > 0:
		n, err := c.r.Read(p[:min(len(p), c.left)])
		c.left -= n
		return n, err
	}
	return 0, c.err
}

// next reads the head of a frame, and all of a header block.
func (c *Conn2) next() error {
	f, err := http2.ReadFrameHeader(c.r)
	if err != nil {
		return err
	}
	switch {
	case f.Type == http2.FrameRSTStream && f.Length == 4 && c.begun[f.StreamID]:
		return c.nextReset(f)
	case f.Type != http2.FrameHeaders:
		if f.Type == http2.FrameData && f.Flags.Has(http2.FlagDataEndStream) {
			delete(c.begun, f.StreamID)
		}
		c.out, c.left = appendFrameHeader(nil, f.Type, f.Flags, f.StreamID, int(f.Length)), int(f.Length)
		return nil
	}
	block, err := c.readBlock(f)
	if err != nil {
		return err
	}
	block, isAnswer, err := c.recode(block)
	if err != nil {
		return err
	}
	if f.Flags.Has(http2.FlagHeadersEndStream) {
		delete(c.begun, f.StreamID)
	} else if isAnswer {
		c.begun[f.StreamID] = true
	}
	c.out = nil
	kind, flags := http2.FrameHeaders, f.Flags&http2.FlagHeadersEndStream
	for first := true; first || len(block) > 0; first = false {
		n := min(len(block), frameSize)
		if n == len(block) {
			flags |= http2.FlagHeadersEndHeaders
		}
		c.out = append(appendFrameHeader(c.out, kind, flags, f.StreamID, n), block[:n]...)
		block, kind, flags = block[n:], http2.FrameContinuation, 0
	}
	return nil
}

// nextReset reads the payload of a RST_STREAM in an answer. Without an error it ends the answer, as in browsers.
func (c *Conn2) nextReset(f http2.FrameHeader) error {
	delete(c.begun, f.StreamID)
	b, err := c.payload(f)
	if err != nil {
		return err
	}
	if http2.ErrCode(binary.BigEndian.Uint32(b)) == http2.ErrCodeNo {
		c.out = appendFrameHeader(nil, http2.FrameData, http2.FlagDataEndStream, f.StreamID, 0)
	} else {
		c.out = append(appendFrameHeader(nil, f.Type, f.Flags, f.StreamID, len(b)), b...)
	}
	return nil
}

func appendFrameHeader(b []byte, kind http2.FrameType, flags http2.Flags, id uint32, n int) []byte {
	b = append(b, byte(n>>16), byte(n>>8), byte(n), byte(kind), byte(flags))
	return binary.BigEndian.AppendUint32(b, id)
}

// readBlock reads a header block without padding, priority and the heads of the frames that continue it.
func (c *Conn2) readBlock(f http2.FrameHeader) ([]byte, error) {
	b, err := c.payload(f)
	if err != nil {
		return nil, err
	}
	pad, priority := 0, 0
	if f.Flags.Has(http2.FlagHeadersPadded) && len(b) > 0 {
		pad, b = int(b[0]), b[1:]
	}
	if f.Flags.Has(http2.FlagHeadersPriority) {
		priority = 5
	}
	if len(b) < pad+priority {
		return nil, http2.ConnectionError(http2.ErrCodeProtocol)
	}
	b = b[priority : len(b)-pad]
	for n, flags := 0, f.Flags; !flags.Has(http2.FlagHeadersEndHeaders); n++ {
		more, err := http2.ReadFrameHeader(c.r)
		if err != nil {
			return nil, err
		}
		if more.Type != http2.FrameContinuation || more.StreamID != f.StreamID || n == maxContinuations {
			return nil, http2.ConnectionError(http2.ErrCodeProtocol)
		}
		rest, err := c.payload(more)
		if err != nil {
			return nil, err
		}
		b, flags = append(b, rest...), more.Flags
	}
	return b, nil
}

func (c *Conn2) payload(f http2.FrameHeader) ([]byte, error) {
	if f.Length > maxHead {
		return nil, http2.ConnectionError(http2.ErrCodeFrameSize)
	}
	b := make([]byte, f.Length)
	_, err := io.ReadFull(c.r, b)
	return b, err
}

// receivedField has the fields of an answer as they were received.
const receivedField = "eidetic-received"

// recode returns a header block that the transport reads, and tells whether it begins the answer. That of a head beyond
// maxHead is empty, which fails its stream alone. So does what Chromium refuses: the end of a line in a value, a zero
// byte, and a transfer coding, which HTTP/2 has not.
func (c *Conn2) recode(block []byte) (out []byte, isAnswer bool, err error) {
	var fields []hpack.HeaderField
	size := uint32(0)
	c.decoder.SetEmitFunc(func(f hpack.HeaderField) {
		if size += f.Size(); size <= maxHead {
			fields = append(fields, f)
		}
	})
	if _, err := c.decoder.Write(block); err != nil {
		return nil, false, http2.ConnectionError(http2.ErrCodeCompression)
	}
	if err := c.decoder.Close(); err != nil {
		return nil, false, http2.ConnectionError(http2.ErrCodeCompression)
	}
	if size > maxHead {
		fields = nil
	}
	c.block.Reset()
	isAnswer = len(fields) > 0 && fields[0].Name == ":status" && !strings.HasPrefix(fields[0].Value, "1")
	var received []byte
	for _, f := range fields {
		if isAnswer && !f.IsPseudo() {
			received = appendText(appendText(received, f.Name), f.Value)
		}
		switch {
		case f.Name == "transfer-encoding":
			f.Value = "\x00" // the transport names the field
		case !strings.ContainsAny(f.Value, "\x00\r\n"):
			f.Value = message.WithoutControls(f.Value)
		}
		if !isAnswer || f.Name != "content-length" && f.Name != receivedField {
			_ = c.encoder.WriteField(f) // to memory
		}
	}
	if isAnswer {
		// Sensitive, since it is of no use in the table.
		_ = c.encoder.WriteField(hpack.HeaderField{Name: receivedField, Value: base64.StdEncoding.EncodeToString(received), Sensitive: true})
	}
	return c.block.Bytes(), isAnswer, nil
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// Received gives an answer that came by a Conn2 its length back, and returns its fields as they were received; ok is
// false for another answer.
func Received(resp *http.Response) (fields []lab.HeaderField, ok bool) {
	name := http.CanonicalHeaderKey(receivedField)
	b, err := base64.StdEncoding.DecodeString(resp.Header.Get(name))
	if ok = resp.Header[name] != nil && err == nil; !ok {
		return nil, false
	}
	delete(resp.Header, name)
	text := func() string {
		n, at := binary.Uvarint(b)
		s := string(b[at : at+int(n)]) // appendText has written it
		b = b[at+int(n):]
		return s
	}
	for len(b) > 0 {
		fields = append(fields, lab.HeaderField{Name: text(), Value: text()})
	}
	resp.ContentLength = -1
	for _, f := range fields {
		if f.Name == "content-length" {
			resp.Header.Add(f.Name, f.Value)
		}
	}
	if n, err := message.Length(resp.Header.Values("Content-Length")); err == nil {
		resp.ContentLength = n
	}
	return fields, true
}
