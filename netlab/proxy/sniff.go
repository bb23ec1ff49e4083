package proxy

import (
	"bufio"
	"errors"
	"net"
	"time"

	"eidetic/netlab/message"
)

// maxAcceptPause bounds the wait after an error of accept(2), which is a temporary
// lack of file descriptors or memory.
const maxAcceptPause = time.Second

// sniff serves connections that were meant for any port. In HTTP and in TLS the client
// speaks first, and its first byte tells which of them it is. A client that waits for
// the server to speak first is disconnected after sniffTimeout.
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
		s.bound(raw)
		buffered := bufio.NewReader(raw)
		c := &conn{Conn: &sniffed{Conn: raw, r: buffered}, forget: s.forget, slow: s.slow.Load(), dest: addrPort(raw.LocalAddr())}
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

// route gives c to the listener for the protocol of its first byte.
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
	case message.IsToken(string(first)): // a method, RFC 9110, 9.1: fetch sends "patch" as it is written
		return s.tunnels.plain.give(c)
	}
	return false // a protocol that is not served
}
