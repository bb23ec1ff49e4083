package replay

import (
	"context"
	"encoding/binary"
	"sync"

	"eidetic/internal/lab"
)

// messages are the times at which the device's messages arrived. Adding one never
// blocks, or the end of the connection would go unseen while the device sends more
// than in the recording; and no more are kept than the recording has.
type messages struct {
	mu    sync.Mutex
	at    []lab.Time
	most  int           // how many more are kept
	added chan struct{} // of capacity 1
}

// counter counts the messages in what one side sends.
type counter interface {
	// feed takes bytes and returns how many messages ended in them.
	feed(b []byte) (ended int)
}

// newMessages keeps as many as the device sent in the recording, which count counts.
func newMessages(recorded []lab.SocketPiece, count counter) *messages {
	m := &messages{added: make(chan struct{}, 1)}
	for _, p := range recorded {
		if p.Device {
			m.most += count.feed(p.Data)
		}
	}
	return m
}

// add adds n messages.
func (m *messages) add(n int, at lab.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n = min(n, m.most)
	if n == 0 {
		return
	}
	m.most -= n
	for range n {
		m.at = append(m.at, at)
	}
	select {
	case m.added <- struct{}{}:
	default:
	}
}

// next waits for the next message and takes it.
func (m *messages) next(ctx context.Context) (lab.Time, error) {
	for {
		m.mu.Lock()
		if len(m.at) > 0 {
			at := m.at[0]
			m.at = m.at[1:]
			m.mu.Unlock()
			return at, nil
		}
		m.mu.Unlock()
		select {
		case <-m.added:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// messageCounter counts complete messages in a stream of WebSocket frames (RFC 6455, 5.2)
// that comes in pieces of any size. A close frame counts as a message, since the other
// side answers it; pings and pongs do not.
type messageCounter struct {
	head []byte // of the frame whose header is not complete yet
	skip uint64 // payload bytes of the current frame that are still to come
	last bool   // the current frame ends a message
	// closed tells that a close frame has begun.
	closed bool
}

// feed takes bytes and returns how many messages ended in them.
func (m *messageCounter) feed(b []byte) (ended int) {
	for len(b) > 0 {
		if m.skip > 0 {
			n := min(m.skip, uint64(len(b)))
			m.skip, b = m.skip-n, b[n:]
			if m.skip == 0 && m.last {
				ended++
			}
			continue
		}
		m.head, b = append(m.head, b[0]), b[1:]
		size, ok := frameSize(m.head)
		if !ok {
			continue
		}
		const closeFrame = 8
		opcode := m.head[0] & 0x0f
		m.closed = m.closed || opcode == closeFrame
		m.last = m.head[0]&0x80 != 0 && opcode <= closeFrame // FIN, and neither ping nor pong
		m.skip, m.head = size, m.head[:0]
		if size == 0 && m.last {
			ended++
		}
	}
	return ended
}

// frameSize returns the payload's length; ok is false while the header is incomplete.
func frameSize(head []byte) (size uint64, ok bool) {
	if len(head) < 2 {
		return 0, false
	}
	need := 2
	size = uint64(head[1] & 0x7f)
	switch size {
	case 126:
		need = 4
	case 127:
		need = 10
	}
	complete := need
	if head[1]&0x80 != 0 {
		complete += 4 // the mask
	}
	if len(head) < complete {
		return 0, false
	}
	switch need {
	case 4:
		size = uint64(binary.BigEndian.Uint16(head[2:]))
	case 10:
		size = binary.BigEndian.Uint64(head[2:]) &^ (1 << 63)
	}
	return size, true
}
