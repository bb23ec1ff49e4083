package wire

import (
	"io"

	"golang.org/x/net/http2"
)

const (
	frameHeader = 9 // bytes (RFC 9113, 4.1)
	// maxContinuations bounds the frames of one header block. A block of the largest header
	// that is accepted has a few of the usual size.
	maxContinuations = 128
)

// continuations passes on the frames of a connection and counts those that continue a header
// block. The framer bounds the bytes of a block and not its frames: empty ones would keep it
// busy for ever.
type continuations struct {
	r      io.Reader
	header [frameHeader]byte
	have   int // bytes of header
	skip   int // bytes of the payload that are still to come
	count  int // CONTINUATION frames in a row
}

// Read implements io.Reader.
func (c *continuations) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if !c.follow(p[:n]) {
		return 0, http2.ConnectionError(http2.ErrCodeEnhanceYourCalm)
	}
	return n, err
}

// follow follows the frames in b, and returns false when there are too many in a row.
func (c *continuations) follow(b []byte) bool {
	for len(b) > 0 {
		if c.skip > 0 {
			n := min(c.skip, len(b))
			c.skip -= n
			b = b[n:]
			continue
		}
		n := copy(c.header[c.have:], b)
		c.have += n
		b = b[n:]
		if c.have < frameHeader {
			return true
		}
		c.have, c.skip = 0, int(c.header[0])<<16|int(c.header[1])<<8|int(c.header[2])
		if http2.FrameType(c.header[3]) != http2.FrameContinuation {
			c.count = 0
		} else if c.count++; c.count > maxContinuations {
			return false
		}
	}
	return true
}
