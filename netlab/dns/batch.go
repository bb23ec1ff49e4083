package dns

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
)

const (
	// batch is how many questions are read, and answers written, at once.
	batch = 64
	// headerSize is a DNS message's, which begins with the ID's two bytes.
	headerSize, idSize = 12, 2
)

// batchConn is the UDP socket of a Server. Its reader answers by itself the
// questions of which the answer is kept, many with one system call; the others
// are what ReadFrom returns, to be answered by ServeDNS.
type batchConn struct {
	*net.UDPConn
	s       *Server
	pc      *ipv4.PacketConn // of either family: batches know no difference
	in      []ipv4.Message
	missed  []int          // of in: for ReadFrom still to return
	late    sync.WaitGroup // answers that wait
	source  sourceControl
	out     []ipv4.Message
	logs    []Query
	packets [batch][ednsSize]byte
}

// client is the address of who asked, with what else the answer must know.
type client struct {
	*net.UDPAddr
	control []byte // has the answer come from the address that was asked
	key     string // for keeping the answer, or empty
}

func newBatchConn(udp *net.UDPConn, s *Server) (*batchConn, error) {
	c := &batchConn{UDPConn: udp, s: s, pc: ipv4.NewPacketConn(udp)}
	// The socket is of one family, and which one is its own affair.
	err6 := ipv6.NewPacketConn(udp).SetControlMessage(ipv6.FlagDst|ipv6.FlagInterface, true)
	err4 := c.pc.SetControlMessage(ipv4.FlagDst|ipv4.FlagInterface, true)
	if err6 != nil && err4 != nil {
		return nil, err4
	}
	control := len(ipv4.NewControlMessage(ipv4.FlagDst|ipv4.FlagInterface)) + len(ipv6.NewControlMessage(ipv6.FlagDst|ipv6.FlagInterface))
	for range batch {
		c.in = append(c.in, ipv4.Message{Buffers: [][]byte{make([]byte, ednsSize)}, OOB: make([]byte, control)})
	}
	return c, nil
}

// ReadFrom implements net.PacketConn: it returns the next question that is not
// answered yet.
func (c *batchConn) ReadFrom(p []byte) (int, net.Addr, error) {
	for len(c.missed) == 0 {
		n, err := c.pc.ReadBatch(c.in, 0)
		if err != nil {
			return 0, nil, err
		}
		c.serve(c.in[:n])
	}
	m := &c.in[c.missed[0]]
	c.missed = c.missed[1:]
	from := &client{UDPAddr: m.Addr.(*net.UDPAddr), control: c.source.of(m.OOB[:m.NN])}
	question := m.Buffers[0][:m.N]
	if len(question) >= headerSize && len(question) <= maxKeptQuestion {
		from.key = string(question[idSize:])
	}
	return copy(p, question), from, nil
}

// serve answers what it can of a batch, and notes in missed what is left.
func (c *batchConn) serve(in []ipv4.Message) {
	start := c.s.c.Clock()
	c.missed, c.out, c.logs = c.missed[:0], c.out[:0], c.logs[:0]
	kept := c.s.kept.Load()
	for i := range in {
		m := &in[i]
		if m.N < headerSize {
			c.missed = append(c.missed, i)
			continue
		}
		question := m.Buffers[0][:m.N]
		k := kept.of(question[idSize:])
		if k == nil {
			c.missed = append(c.missed, i)
			continue
		}
		if len(c.s.inFlight) == cap(c.s.inFlight) {
			c.s.dropped.Add(1)
			continue
		}
		answer := c.packets[len(c.out)][:len(k.answer)]
		copy(answer, k.answer)
		copy(answer, question[:idSize])
		from := m.Addr.(*net.UDPAddr)
		q := k.query
		q.Time, q.Client = start, from.AddrPort()
		q.Client = netip.AddrPortFrom(q.Client.Addr().Unmap(), q.Client.Port())
		out := ipv4.Message{Buffers: [][]byte{answer}, OOB: c.source.of(m.OOB[:m.NN]), Addr: from}
		if d := c.s.delay(k.up, k.down); d > 0 {
			c.answerLate(out, q, d)
			continue
		}
		c.out, c.logs = append(c.out, out), append(c.logs, q)
	}
	if len(c.out) > 0 {
		c.write()
	}
}

// write sends c.out and logs it. The reader never waits for the socket: what
// does not go out at once waits elsewhere, as the answers of ServeDNS do.
func (c *batchConn) write() {
	out := c.out
	waits := len(out) // from here on
	for done := 0; done < len(out); {
		n, err := c.pc.WriteBatch(out[done:], syscall.MSG_DONTWAIT)
		done += max(n, 0)
		switch {
		case err == nil:
		case errors.Is(err, syscall.EAGAIN): // full
			waits, done = done, len(out)
		default:
			done++ // to nobody that can be reached: there is nothing to do
		}
	}
	end := c.s.c.Clock()
	for i, q := range c.logs {
		if i >= waits {
			c.answerLate(out[i], q, 0)
			continue
		}
		q.Elapsed = end.Sub(q.Time)
		c.s.log(q)
	}
}

// answerLate sends an answer after d, when there is room for one more that waits.
func (c *batchConn) answerLate(m ipv4.Message, q Query, d time.Duration) {
	select {
	case c.s.inFlight <- struct{}{}:
	default:
		c.s.dropped.Add(1)
		return
	}
	answer := bytes.Clone(m.Buffers[0])
	c.late.Go(func() {
		defer func() { <-c.s.inFlight }()
		c.s.wait(d)
		_, _ = c.WriteTo(answer, &client{UDPAddr: m.Addr.(*net.UDPAddr), control: m.OOB})
		q.Elapsed = c.s.c.Clock().Sub(q.Time)
		c.s.log(q)
	})
}

// WriteTo implements net.PacketConn for addresses that ReadFrom returned. It has
// no deadline of the socket, which would be everybody's, and holds up nobody
// while it waits.
func (c *batchConn) WriteTo(p []byte, to net.Addr) (int, error) {
	from, ok := to.(*client)
	if !ok {
		return 0, net.InvalidAddrError("answer to an address that did not ask: " + to.String())
	}
	one := []ipv4.Message{{Buffers: [][]byte{p}, OOB: from.control, Addr: from.UDPAddr}}
	err := c.s.patiently(func() error {
		_, err := c.pc.WriteBatch(one, syscall.MSG_DONTWAIT)
		return err
	})
	return len(p), err
}

// patiently tries until the socket has room, but not for long: answers to
// addresses of which nobody tells the hardware address fill it, and after a flood of
// forged questions all others would wait behind them for minutes. The last
// try comes after the waiting, however long a machine that stalls made that: a
// device whose answer is lost waits for seconds.
func (s *Server) patiently(try func() error) error {
	start, last := s.c.Clock(), false
	for ; ; s.wait(writeRetry) {
		err := try()
		if last || !errors.Is(err, syscall.EAGAIN) {
			return err
		}
		last = s.c.Clock().Sub(start) >= writeTimeout-writeRetry || s.ctx.Err() != nil
	}
}

// Close implements net.PacketConn. The answers that wait are sent before.
func (c *batchConn) Close() error {
	c.late.Wait()
	return c.UDPConn.Close()
}

// sourceControl makes of a question's control message that of its answer,
// which has it come from the address that was asked. It remembers the last,
// since a device asks one address.
type sourceControl struct{ question, answer []byte }

func (s *sourceControl) of(control []byte) []byte {
	if bytes.Equal(s.question, control) {
		return s.answer
	}
	s.question, s.answer = bytes.Clone(control), nil
	var dst net.IP
	if cm := new(ipv6.ControlMessage); cm.Parse(control) == nil {
		dst = cm.Dst
	}
	if cm := new(ipv4.ControlMessage); dst == nil && cm.Parse(control) == nil {
		dst = cm.Dst
	}
	switch {
	case dst == nil:
	case dst.To4() == nil:
		s.answer = (&ipv6.ControlMessage{Src: dst}).Marshal()
	default:
		s.answer = (&ipv4.ControlMessage{Src: dst}).Marshal()
	}
	return s.answer
}
