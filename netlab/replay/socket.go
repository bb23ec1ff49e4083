package replay

import (
	"bufio"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"eidetic/internal/lab"
	"eidetic/netlab/replay/match"
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

// socket is the outcome of a request that the origin answered with an upgrade.
func (f *fetch) socket(resp *http.Response) outcome {
	origin, ok := resp.Body.(io.ReadWriteCloser)
	if !ok {
		_ = resp.Body.Close() // nothing can be read from it
		return failure(http.StatusBadGateway, errors.New("the transport cannot upgrade a connection"))
	}
	return outcome{Result: fromOrigin(), stream: func(o *output) { f.relaySocket(o, origin) }}
}

// relaySocket relays an upgraded connection both ways and records it.
func (f *fetch) relaySocket(o *output, origin io.ReadWriteCloser) {
	defer origin.Close()
	f.isStream.Store(true)
	device, buffered, err := o.hijack(f.e.Response.Header)
	if err != nil {
		o.line.Error = err.Error()
		return
	}
	recorded := socketRecord{take: f.take}
	pump := func(from io.Reader, to io.Writer, fromDevice bool) {
		buf := make([]byte, 32<<10)
		for {
			n, err := from.Read(buf)
			if n > 0 {
				recorded.add(f.c.o.Clock().Sub(f.sentAt), fromDevice, buf[:n])
				if _, err := to.Write(buf[:n]); err != nil {
					return
				}
				if !fromDevice {
					o.line.Bytes += int64(n)
				}
			}
			if err != nil {
				return
			}
		}
	}
	// The end of either side ends both: after a close frame nothing more is sent.
	var wg sync.WaitGroup
	var end sync.Once
	closeBoth := func(byOrigin bool) {
		end.Do(func() {
			if f.e.OriginClosed = byOrigin; byOrigin {
				recorded.add(f.c.o.Clock().Sub(f.sentAt), false, nil) // when it did
			}
			_, _ = origin.Close(), device.Close()
		})
	}
	wg.Go(func() { pump(buffered, origin, true); closeBoth(false) })
	pump(origin, device, false)
	closeBoth(true)
	wg.Wait()
	f.e.Socket = recorded.pieces
	if recorded.full {
		f.e.Truncated = "length"
	}
	f.complete = true
}

// socketRecord collects what both sides of a connection send.
type socketRecord struct {
	take   func(memory int64, kept int) bool
	mu     sync.Mutex
	pieces []lab.SocketPiece
	full   bool // what came later was left out
}

// add appends what one side sent. What it sent within [together] is one piece: a side that sends a byte at a time takes
// no more than one that sends them at once.
func (r *socketRecord) add(at time.Duration, fromDevice bool, b []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.full {
		return
	}
	at = max(0, at)
	var last *lab.SocketPiece
	if n := len(r.pieces); n > 0 {
		last = &r.pieces[n-1]
		at = max(at, last.At)
	}
	isOne := last != nil && last.Device == fromDevice && at-last.At < together
	cost, kept := dataCost*int64(len(b)), keptCost*len(b)
	if !isOne {
		cost, kept = cost+pieceCost, kept+pieceCost
	}
	if r.full = !r.take(cost, kept); r.full {
		return
	}
	if isOne {
		last.Data = append(last.Data, b...)
		return
	}
	r.pieces = append(r.pieces, lab.SocketPiece{At: at, Device: fromDevice, Data: append([]byte(nil), b...)})
}

// socket is the outcome of a request whose exchange is a WebSocket.
func (s *Session) socket(r *http.Request, en *entry, found match.Result) outcome {
	if !isSocket(r) {
		found.Stage = lab.StageMiss
		return outcome{Result: found, answer: page(http.StatusUpgradeRequired, "This URL was recorded as a WebSocket.\n")}
	}
	return outcome{Result: found, stream: func(o *output) { s.replaySocket(o, en) }}
}

// replaySocket plays the origin's side of a recorded WebSocket. A piece that came
// after the device's n-th message is sent after its n-th message now, and as much
// later as in the recording; a piece before the first one keeps its time since the request.
func (s *Session) replaySocket(o *output, en *entry) {
	ctx, cancel := context.WithCancel(o.r.Context())
	defer cancel()
	if s.o.Timing.Mode != TimingNone {
		if err := waitUntil(ctx, s.o.Clock, o.line.Time.Add(en.FirstByte)); err != nil {
			o.aborted(err)
			return
		}
	}
	var fields []lab.HeaderField
	for _, f := range en.Response.Header {
		switch strings.ToLower(f.Name) {
		case "sec-websocket-accept":
			if key := en.Request.Get("Sec-WebSocket-Key"); key == "" || f.Value == acceptKey(key) { // else the device refused it
				f.Value = acceptKey(o.r.Header.Get("Sec-WebSocket-Key"))
			}
		case "sec-websocket-protocol":
			f.Value = protocolFor(f.Value, en.Request.Get(f.Name), strings.Join(o.r.Header.Values(f.Name), ","))
		}
		fields = append(fields, f)
	}
	device, buffered, err := o.hijack(fields)
	if err != nil {
		o.line.Error = err.Error()
		return
	}
	pieces, ended := untilEnd(en.Socket)
	received := newMessages(pieces, &messageCounter{})
	said := make(chan struct{}) // the device has said that it closes
	var wg sync.WaitGroup
	wg.Go(func() {
		defer cancel() // the device has gone
		sayOnce := sync.OnceFunc(func() { close(said) })
		var count messageCounter
		buf := make([]byte, 32<<10)
		for {
			n, err := buffered.Read(buf)
			received.add(count.feed(buf[:n]), s.o.Clock())
			if count.closed {
				sayOnce()
			}
			if err != nil {
				return
			}
		}
	})
	var sent messageCounter
	for _, p := range pieces {
		if !p.Device {
			sent.feed(p.Data)
		}
	}
	begun, all := s.playPieces(ctx, o, pieces, &messageCounter{}, device, received)
	switch {
	case all && !en.OriginClosed && !sent.closed:
		s.rest(func() { <-ctx.Done() }) // it stays open until the device closes it
	case all && ended >= 0 && s.o.Timing.Mode == TimingRecorded:
		s.rest(func() { _ = waitUntil(ctx, s.o.Clock, begun.Add(ended)) }) // an error is the device's end
	}
	if all && sent.closed {
		late := time.NewTimer(time.Second)
		defer late.Stop()
		select {
		case <-said: // it waits for the end of the connection
		case <-ctx.Done():
		case <-late.C:
		}
	}
	_ = device.Close() // which ends the reading
	wg.Wait()
}

// untilEnd returns the pieces up to the one without bytes, which says when the origin ended the connection; at is -1 if
// none says so.
func untilEnd(pieces []lab.SocketPiece) (rest []lab.SocketPiece, at time.Duration) {
	for i, p := range pieces {
		if !p.Device && len(p.Data) == 0 {
			return pieces[:i], p.At
		}
	}
	return pieces, -1
}

// playPieces writes the origin's pieces to the device, and tells whether it wrote all, and from which instant the
// recorded times then count. While only the device can go on, nothing is in flight.
func (s *Session) playPieces(ctx context.Context, o *output, pieces []lab.SocketPiece, asked counter, device io.Writer,
	received *messages) (begun lab.Time, all bool) {
	anchor, recorded := o.line.Time, time.Duration(0) // the same instant, now and in the recording
	for _, p := range pieces {
		if p.Device {
			for range asked.feed(p.Data) {
				var at lab.Time
				var err error
				s.rest(func() { at, err = received.next(ctx) })
				if err != nil {
					return 0, false
				}
				anchor, recorded = at, p.At
			}
			continue
		}
		if s.o.Timing.Mode == TimingRecorded && waitUntil(ctx, s.o.Clock, anchor.Add(p.At-recorded)) != nil {
			o.line.Aborted = true
			return 0, false
		}
		n, err := device.Write(p.Data)
		o.line.Bytes += int64(n)
		if err != nil {
			o.aborted(err)
			return 0, false
		}
	}
	return anchor.Add(-recorded), true
}

// protocolFor is the subprotocol that a device is answered. It closes the connection if it has not asked for that
// (RFC 6455, 4.1), and some pages send a token as one of several: then it is the one that it asks for in the same place.
func protocolFor(chosen, recorded, asked string) string {
	offered, wanted := strings.Split(recorded, ","), strings.Split(asked, ",")
	is := func(p string) bool { return strings.TrimSpace(p) == chosen }
	if at := slices.IndexFunc(offered, is); at >= 0 && at < len(wanted) && !slices.ContainsFunc(wanted, is) {
		return strings.TrimSpace(wanted[at])
	}
	return chosen
}

// acceptKey is RFC 6455, 4.2.2.
func acceptKey(key string) string {
	h := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(h[:])
}
