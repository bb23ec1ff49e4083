package wire

import (
	"encoding/binary"
	"strconv"
	"strings"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"eidetic/internal/lab"
	"eidetic/netlab/message"
)

// The methods of this file append to the buffer or send it; their callers
// hold the lock.

// flagsAt is where the flags stand in a frame (RFC 9113, 4.1).
const flagsAt = 4

func (c *conn2) appendFrame(kind http2.FrameType, flags http2.Flags, id uint32, payload []byte) {
	n := len(payload)
	c.out = append(c.out, byte(n>>16), byte(n>>8), byte(n), byte(kind), byte(flags))
	c.out = binary.BigEndian.AppendUint32(c.out, id)
	c.out = append(c.out, payload...)
}

func (c *conn2) appendUint32(kind http2.FrameType, id, v uint32) {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], v)
	c.appendFrame(kind, 0, id, b[:])
}

func (c *conn2) appendSettings(list []http2.Setting) {
	var b []byte
	for _, s := range list {
		b = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(b, uint16(s.ID)), s.Val)
	}
	c.appendFrame(http2.FrameSettings, 0, 0, b)
}

func (c *conn2) goAway(code http2.ErrCode) {
	b := binary.BigEndian.AppendUint32(nil, c.lastID)
	c.appendFrame(http2.FrameGoAway, 0, 0, binary.BigEndian.AppendUint32(b, uint32(code)))
}

// reset ends a stream early, with RST_STREAM.
func (c *conn2) reset(id uint32, code http2.ErrCode) {
	c.appendUint32(http2.FrameRSTStream, id, uint32(code))
	if s := c.streams[id]; s != nil {
		if !s.ended {
			if len(c.cut) >= maxStreams { // the device never ends its streams
				clear(c.cut)
			}
			c.cut[id] = struct{}{}
		}
		s.abort(http2.StreamError{StreamID: id, Code: code})
		delete(c.streams, id)
	}
}

// appendHeaders appends a header block; a status of 0 makes it trailers.
func (c *conn2) appendHeaders(id uint32, status int, fields []lab.HeaderField) {
	c.block.Reset()
	if status != 0 {
		c.encode(":status", strconv.Itoa(status))
	}
	for _, f := range fields {
		name := f.Name
		for i := range len(name) {
			if 'A' <= name[i] && name[i] <= 'Z' {
				name = strings.ToLower(name)
				break
			}
		}
		if message.IsToken(name) && !ofConnection(name) {
			c.encode(name, f.Value)
		}
	}
	block, kind := c.block.Bytes(), http2.FrameHeaders
	c.ending = frameRef{id, len(c.out)}
	for {
		part := block[:min(len(block), c.maxFrame)]
		block = block[len(part):]
		flags := http2.Flags(0)
		if len(block) == 0 {
			flags = http2.FlagHeadersEndHeaders // the same bit for both kinds
		}
		c.appendFrame(kind, flags, id, part)
		if len(block) == 0 {
			return
		}
		kind = http2.FrameContinuation
	}
}

func (c *conn2) encode(name, value string) {
	for i := range len(value) {
		if b := value[i]; b == '\r' || b == '\n' || b == 0 {
			value = string(appendValue(nil, value))
			break
		}
	}
	_ = c.encoder.WriteField(hpack.HeaderField{Name: name, Value: value}) // writing to a buffer cannot fail
}

// ofConnection names the fields that HTTP/2 has no place for (RFC 9113, 8.2.2).
func ofConnection(name string) bool {
	switch name {
	case "connection", "transfer-encoding", "keep-alive", "proxy-connection", "upgrade":
		return true
	}
	return false
}
