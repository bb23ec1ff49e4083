package archive

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"eidetic/internal/lab"
)

// The opcodes of frames (RFC 6455, 5.2) that are messages or control frames.
const (
	opText, opBinary        = 1, 2
	opClose, opPing, opPong = 8, 9, 10
)

// maxControl is the longest payload of a control frame.
const maxControl = 125

// appendFrame appends a whole message as one frame. The device's frames are masked, with a key of
// zeros, which leaves the payload as it is.
func appendFrame(b []byte, opcode int, masked bool, payload []byte) []byte {
	const fin, mask = 0x80, 0x80
	second := byte(0)
	if masked {
		second = mask
	}
	b = append(b, fin|byte(opcode))
	switch n := len(payload); {
	case n <= maxControl:
		b = append(b, second|byte(n))
	case n <= 0xffff:
		b = binary.BigEndian.AppendUint16(append(b, second|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, second|127), uint64(n))
	}
	if masked {
		b = append(b, 0, 0, 0, 0)
	}
	return append(b, payload...)
}

// frameReader joins one side's bytes, which come in pieces of any size, into messages.
type frameReader struct {
	rest    []byte // of a frame that is not complete
	opcode  int    // of the message that has begun, or 0
	payload []byte // of it
	packed  bool   // it is compressed (RFC 7692)
	most    int64  // bytes of messages that may still come

	deflate bool   // permessage-deflate was agreed on
	keeps   bool   // the window is kept from one message to the next
	window  []byte // the end of what was decompressed
}

func newFrameReader(e *lab.Exchange, noTakeover string, most int64) *frameReader {
	r := &frameReader{most: most}
	for _, f := range e.Response.Header {
		if strings.EqualFold(f.Name, "Sec-WebSocket-Extensions") && strings.Contains(strings.ToLower(f.Value), "permessage-deflate") {
			r.deflate, r.keeps = true, !strings.Contains(strings.ToLower(f.Value), noTakeover)
		}
	}
	return r
}

// frame is one frame of a stream.
type frame struct {
	first   byte // FIN, reserved bits and opcode
	payload []byte
}

// next takes the first frame of r.rest; ok is false while it is incomplete.
func (r *frameReader) next() (f frame, ok bool, err error) {
	b := r.rest
	if len(b) < 2 {
		return f, false, nil
	}
	head, size := 2, uint64(b[1]&0x7f)
	switch size {
	case 126:
		head = 4
	case 127:
		head = 10
	}
	masked := b[1]&0x80 != 0
	if len(b) < head {
		return f, false, nil
	}
	switch head {
	case 4:
		size = uint64(binary.BigEndian.Uint16(b[2:]))
	case 10:
		size = binary.BigEndian.Uint64(b[2:])
	}
	var key [4]byte
	if masked {
		if len(b) < head+len(key) {
			return f, false, nil
		}
		head += copy(key[:], b[head:])
	}
	if size > harBody {
		return f, false, fmt.Errorf("they are longer than %d bytes", harBody)
	}
	if uint64(len(b)-head) < size {
		return f, false, nil
	}
	f = frame{first: b[0], payload: bytes.Clone(b[head : head+int(size)])}
	for i := range f.payload {
		f.payload[i] ^= key[i%len(key)]
	}
	r.rest = b[head+int(size):]
	return f, true, nil
}

// feed takes bytes, and calls message for each message and control frame that ends in them.
func (r *frameReader) feed(b []byte, message func(opcode int, payload []byte)) error {
	r.rest = append(r.rest, b...)
	for {
		f, ok, err := r.next()
		if err != nil || !ok {
			return err
		}
		if r.most -= int64(len(f.payload)); r.most < 0 {
			return errors.New("they are too long together")
		}
		opcode := int(f.first & 0x0f)
		if opcode >= opClose {
			message(opcode, f.payload)
			continue
		}
		if err := r.data(f, opcode, message); err != nil {
			return err
		}
	}
}

// data takes a frame of a message, which may have several.
func (r *frameReader) data(f frame, opcode int, message func(opcode int, payload []byte)) error {
	const fin, rsv1, rsv = 0x80, 0x40, 0x30
	switch {
	case f.first&rsv != 0, f.first&rsv1 != 0 && !r.deflate:
		return errors.New("they are coded by an unknown extension")
	case opcode != 0:
		r.opcode, r.payload, r.packed = opcode, nil, f.first&rsv1 != 0
	case r.opcode == 0:
		return errors.New("a frame continues a message that has not begun")
	}
	r.payload = append(r.payload, f.payload...)
	if f.first&fin == 0 {
		return nil
	}
	payload := r.payload
	if r.packed {
		var err error
		if payload, err = r.inflate(payload); err != nil {
			return fmt.Errorf("decompress: %w", err)
		}
	}
	message(r.opcode, payload)
	r.opcode, r.payload = 0, nil
	return nil
}

// inflate decompresses a message (RFC 7692, 7.2.2).
func (r *frameReader) inflate(b []byte) ([]byte, error) {
	// The end that senders leave off, and an empty last block, so that the reader finds an end.
	const tail = "\x00\x00\xff\xff\x01\x00\x00\xff\xff"
	z := flate.NewReaderDict(io.MultiReader(bytes.NewReader(b), strings.NewReader(tail)), r.window)
	out, err := readAllLimited(z, r.most)
	if err != nil {
		return nil, err
	}
	r.most -= int64(len(out))
	if r.keeps {
		const size = 32 << 10
		r.window = append(r.window, out...)
		r.window = bytes.Clone(r.window[max(0, len(r.window)-size):])
	}
	return out, nil
}
