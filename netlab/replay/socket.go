package replay

import (
	"bufio"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"eidetic/internal/lab"
)

// isSocket tells a request to open a WebSocket (RFC 6455, 4.1).
func isSocket(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// hijack takes the device's connection and answers the upgrade on it.
func (o *output) hijack(fields []lab.HeaderField) (net.Conn, *bufio.Reader, error) {
	c, rw, err := http.NewResponseController(o.w).Hijack()
	if err != nil {
		return nil, nil, fmt.Errorf("take over the connection: %w", err)
	}
	var head strings.Builder
	head.WriteString("HTTP/1.1 101 Switching Protocols\r\n")
	for _, f := range fields {
		head.WriteString(f.Name + ": " + strings.NewReplacer("\r", "", "\n", "").Replace(f.Value) + "\r\n")
	}
	head.WriteString("\r\n")
	o.line.Status = http.StatusSwitchingProtocols
	o.line.FirstByte = o.clock().Sub(o.line.Time)
	_ = c.SetDeadline(time.Time{}) // the server's were for requests
	if _, err := io.WriteString(c, head.String()); err != nil {
		_ = c.Close()
		return nil, nil, err
	}
	return c, rw.Reader, nil
}

// socket relays an upgraded connection both ways and records what passes.
func (f *fetch) socket(resp *http.Response) {
	const most = 256 << 20 // bytes recorded of one connection
	origin, ok := resp.Body.(io.ReadWriteCloser)
	if !ok {
		f.fail(http.StatusBadGateway, errors.New("the transport cannot upgrade a connection"))
		return
	}
	device, buffered, err := f.out.hijack(f.e.Response.Header)
	if err != nil {
		f.out.line.Error = err.Error()
		return
	}
	var mu sync.Mutex
	total := 0
	keep := func(fromDevice bool, b []byte) {
		mu.Lock()
		defer mu.Unlock()
		if total += len(b); total > most {
			f.e.Truncated = "length"
			return
		}
		at := max(0, f.c.o.Clock().Sub(f.sent))
		if n := len(f.e.Socket); n > 0 {
			at = max(at, f.e.Socket[n-1].At)
		}
		f.e.Socket = append(f.e.Socket, lab.SocketPiece{At: at, Device: fromDevice, Data: append([]byte(nil), b...)})
	}
	pump := func(from io.Reader, to io.Writer, fromDevice bool) {
		buf := make([]byte, 32<<10)
		for {
			n, err := from.Read(buf)
			if n > 0 {
				keep(fromDevice, buf[:n])
				if _, err := to.Write(buf[:n]); err != nil {
					return
				}
				if !fromDevice {
					f.out.line.Bytes += int64(n)
				}
			}
			if err != nil {
				return
			}
		}
	}
	// Either side's end ends both: after a close frame nothing more is said.
	var wg sync.WaitGroup
	closeBoth := sync.OnceFunc(func() { _, _ = origin.Close(), device.Close() })
	wg.Go(func() { pump(buffered, origin, true); closeBoth() })
	pump(origin, device, false)
	closeBoth()
	wg.Wait()
	f.good = true
}

// socket plays the origin's side of a recorded WebSocket. A piece that came
// after the device's n-th message is sent after its n-th message now, as
// much later as it was; what came unasked keeps its time since the request.
func (s *Session) socket(out *output, en *entry) {
	if !isSocket(out.r) {
		out.line.Stage = lab.StageMiss
		out.plain(http.StatusUpgradeRequired, "This URL was recorded as a WebSocket.\n")
		return
	}
	ctx, cancel := context.WithCancel(out.r.Context())
	defer cancel()
	if s.o.Timing.Mode != TimingNone {
		if err := waitUntil(ctx, s.o.Clock, out.line.Time.Add(en.FirstByte)); err != nil {
			out.aborted(err)
			return
		}
	}
	var fields []lab.HeaderField
	for _, f := range en.Response.Header {
		if strings.EqualFold(f.Name, "Sec-WebSocket-Accept") {
			f.Value = acceptKey(out.r.Header.Get("Sec-WebSocket-Key"))
		}
		fields = append(fields, f)
	}
	device, buffered, err := out.hijack(fields)
	if err != nil {
		out.line.Error = err.Error()
		return
	}
	defer device.Close()
	said := newMessages(en.Socket)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer cancel() // the device has gone
		var count messageCounter
		buf := make([]byte, 32<<10)
		for {
			n, err := buffered.Read(buf)
			said.came(count.feed(buf[:n]), s.o.Clock())
			if err != nil {
				return
			}
		}
	})
	s.playSocket(ctx, out, en, device, said)
	_ = device.SetReadDeadline(time.Now().Add(time.Second)) // for its close frame
	wg.Wait()
}

// messages are those of the device, by when they came. Whoever adds them never
// waits, or the device's end would go unseen while it says more than it did
// when it was recorded; and no more are kept than the recording has.
type messages struct {
	mu    sync.Mutex
	at    []lab.Time
	most  int           // that are still to be kept
	added chan struct{} // of capacity 1
}

// newMessages is for as many as the device sent when it was recorded.
func newMessages(recorded []lab.SocketPiece) *messages {
	m := &messages{added: make(chan struct{}, 1)}
	var count messageCounter
	for _, p := range recorded {
		if p.Device {
			m.most += count.feed(p.Data)
		}
	}
	return m
}

// came adds n messages.
func (m *messages) came(n int, at lab.Time) {
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

// next waits for the next one and takes it.
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

// playSocket writes the origin's pieces.
func (s *Session) playSocket(ctx context.Context, out *output, en *entry, device io.Writer, said *messages) {
	var count messageCounter
	anchor, recorded := out.line.Time, time.Duration(0) // the same instant now and then
	for _, p := range en.Socket {
		if p.Device {
			for range count.feed(p.Data) {
				at, err := said.next(ctx)
				if err != nil {
					return
				}
				anchor, recorded = at, p.At
			}
			continue
		}
		if s.o.Timing.Mode == TimingRecorded && waitUntil(ctx, s.o.Clock, anchor.Add(p.At-recorded)) != nil {
			out.line.Aborted = true
			return
		}
		n, err := device.Write(p.Data)
		out.line.Bytes += int64(n)
		if err != nil {
			out.aborted(err)
			return
		}
	}
	// Whose recording was cut by the device stays open until the device goes.
	if n := len(en.Socket); n == 0 || en.Socket[n-1].Device {
		<-ctx.Done()
	}
}

// acceptKey is RFC 6455, 4.2.2.
func acceptKey(key string) string {
	h := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(h[:])
}

// messageCounter counts whole data messages in a stream of WebSocket frames
// (RFC 6455, 5.2) that comes in any pieces.
type messageCounter struct {
	head []byte // of the frame whose header is not whole yet
	skip uint64 // payload bytes of the current frame still to come
	last bool   // the current frame ends a data message
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
		m.last = m.head[0]&0x80 != 0 && m.head[0]&0x0f < 8 // FIN, and no control frame
		m.skip, m.head = size, m.head[:0]
		if size == 0 && m.last {
			ended++
		}
	}
	return ended
}

// frameSize returns the payload's length once the header is whole.
func frameSize(head []byte) (uint64, bool) {
	if len(head) < 2 {
		return 0, false
	}
	need, size := 2, uint64(head[1]&0x7f)
	switch size {
	case 126:
		need = 4
	case 127:
		need = 10
	}
	whole := need
	if head[1]&0x80 != 0 {
		whole += 4 // the mask
	}
	if len(head) < whole {
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
