package proxy

import (
	"bufio"
	"errors"
	"net"
	"time"
)

// maxAcceptPause bounds the wait after an error of accept(2), which is a lack
// of files or memory and passes.
const maxAcceptPause = time.Second

// sniff serves connections that were meant for any port: the device speaks
// first, in HTTP as in TLS, and its first byte says which it is. Who waits to
// be spoken to is let go after sniffTimeout.
func (s *Server) sniff(l net.Listener) {
	pause := time.Duration(0)
	for {
		raw, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			pause = min(max(2*pause, 5*time.Millisecond), maxAcceptPause)
			s.c.Log.Warn("a connection was not accepted", "error", err)
			select {
			case <-time.After(pause):
				continue
			case <-s.tunnels.plain.done: // closing
				return
			}
		}
		pause = 0
		buffered := bufio.NewReader(raw)
		c := &conn{Conn: &sniffed{Conn: raw, r: buffered}, forget: s.forget}
		if !s.remember(c) {
			_ = raw.Close() // too many, or closing
			continue
		}
		s.done.Go(func() {
			if !s.route(c, buffered) {
				c.abort()
			}
		})
	}
}

// route gives c to the listener that its first byte asks for.
func (s *Server) route(c *conn, buffered *bufio.Reader) bool {
	if c.SetDeadline(time.Now().Add(sniffTimeout)) != nil {
		return false
	}
	first, err := buffered.Peek(1)
	if err != nil || c.SetDeadline(time.Time{}) != nil {
		return false
	}
	switch {
	case first[0] == 22: // a TLS handshake record, RFC 8446, 5.1
		return s.tunnels.secure.give(c)
	case first[0] >= 'A' && first[0] <= 'Z': // a method, RFC 9110, 9.1
		return s.tunnels.plain.give(c)
	}
	return false // something else, which nobody here speaks
}
