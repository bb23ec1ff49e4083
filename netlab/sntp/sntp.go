// Package sntp is the device's time server. In go requests of NTP clients to any
// server's address; out go answers from the box's clock. A device whose clock is
// wrong accepts no certificate, so without the time it could not be measured. It
// follows RFC 5905, section 14 (SNTP): a stateless server, whose answers declare a
// local clock that is accurate to about a millisecond.
package sntp

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
)

const (
	packetSize = 48
	// stratum of a server that is not synchronised to another one.
	stratum = 10
	// precision of the clock, as a power of two: 2^-10 s.
	precision = -10
	// epoch is 1970 in seconds of NTP's first era, which starts in 1900.
	epoch = 2208988800
	// perSecond bounds the answers: enough for any device, too few for an attack by
	// amplification.
	perSecond = 200
	// writeTimeout bounds how long writing an answer can block.
	writeTimeout = 50 * time.Millisecond
)

// Config of a Server. Addr and Now are required.
type Config struct {
	// Addr to listen on: ":123".
	Addr string
	// Control, when set, prepares the sockets before they are bound.
	Control func(network, address string, c syscall.RawConn) error
	// Floor is the earliest possible time. A box whose own clock is earlier does
	// not answer, because a wrong time is worse than none.
	Floor time.Time
	Now   func() time.Time
	Log   *slog.Logger
}

// Server answers until Close.
type Server struct {
	c     Config
	conns []net.PacketConn
	done  sync.WaitGroup

	mu     sync.Mutex
	second int64
	count  int
}

// Serve starts to answer over IPv4, and over IPv6 where there is any.
func Serve(c Config) (*Server, error) {
	if c.Now == nil {
		return nil, errors.New("start the time server: a clock is required")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{c: c}
	lc := net.ListenConfig{Control: c.Control}
	pc4, err := lc.ListenPacket(context.Background(), "udp4", c.Addr) // binding does not block
	if err != nil {
		return nil, fmt.Errorf("start the time server: %w", err)
	}
	s.conns = append(s.conns, pc4)
	p4 := ipv4.NewPacketConn(pc4)
	if err := p4.SetControlMessage(ipv4.FlagDst, true); err != nil {
		return nil, errors.Join(fmt.Errorf("start the time server: %w", err), s.Close())
	}
	s.done.Go(func() {
		s.run(pc4, func(b []byte) (int, func([]byte) error, error) {
			n, cm, peer, err := p4.ReadFrom(b)
			return n, func(b []byte) error {
				out := &ipv4.ControlMessage{}
				if cm != nil { // answer from the address that was asked
					out.Src = cm.Dst
				}
				_, err := p4.WriteTo(b, out, peer)
				return err
			}, err
		})
	})
	pc6, err := lc.ListenPacket(context.Background(), "udp6", c.Addr)
	if err != nil {
		if errors.Is(err, syscall.EAFNOSUPPORT) || errors.Is(err, syscall.EADDRNOTAVAIL) {
			return s, nil // a machine without IPv6
		}
		return nil, errors.Join(fmt.Errorf("start the time server: %w", err), s.Close())
	}
	s.conns = append(s.conns, pc6)
	p6 := ipv6.NewPacketConn(pc6)
	if err := p6.SetControlMessage(ipv6.FlagDst|ipv6.FlagInterface, true); err != nil {
		return nil, errors.Join(fmt.Errorf("start the time server: %w", err), s.Close())
	}
	s.done.Go(func() {
		s.run(pc6, func(b []byte) (int, func([]byte) error, error) {
			n, cm, peer, err := p6.ReadFrom(b)
			return n, func(b []byte) error {
				out := &ipv6.ControlMessage{}
				if cm != nil {
					out.Src, out.IfIndex = cm.Dst, cm.IfIndex
				}
				_, err := p6.WriteTo(b, out, peer)
				return err
			}, err
		})
	})
	return s, nil
}

// Addr returns the address on which the server listens over IPv4.
func (s *Server) Addr() net.Addr { return s.conns[0].LocalAddr() }

// Close stops answering.
func (s *Server) Close() error {
	var errs []error
	for _, c := range s.conns {
		if err := c.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	s.done.Wait()
	return errors.Join(errs...)
}

// run answers the packets that receive returns.
func (s *Server) run(conn net.PacketConn, receive func([]byte) (n int, reply func([]byte) error, err error)) {
	b := make([]byte, 512)
	for {
		n, reply, err := receive(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // an ICMP error for an earlier answer
		}
		now := s.c.Now()
		if !s.allow(now) {
			continue
		}
		answer, err := Answer(b[:n], now, s.c.Floor)
		if err == nil {
			// Without a deadline an answer to an address that nobody has would block the
			// others. On a machine that stalls the deadline can expire before the write
			// starts, hence the second try.
			for range 2 {
				_ = conn.SetWriteDeadline(time.Now().Add(writeTimeout)) // fails when closed, as the write does
				if err = reply(answer); !errors.Is(err, os.ErrDeadlineExceeded) {
					break
				}
			}
		}
		if err != nil {
			s.c.Log.Debug("a request for the time was not answered", "error", err)
		}
	}
}

// allow counts an answer and reports whether the second's limit allows it.
func (s *Server) allow(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Unix() != s.second {
		s.second, s.count = now.Unix(), 0
	}
	s.count++
	return s.count <= perSecond
}

// Answer returns the answer to a client's packet that has arrived now.
func Answer(request []byte, now, floor time.Time) ([]byte, error) {
	const symmetricActive, symmetricPassive, client, server = 1, 2, 3, 4
	if len(request) < packetSize {
		return nil, fmt.Errorf("the packet has %[2]d bytes; an NTP packet has at least %[1]d", packetSize, len(request))
	}
	version, mode := request[0]>>3&7, request[0]&7
	if version == 1 && mode == 0 { // version 1 has no mode (RFC 1059)
		mode = client
	}
	if version < 1 || version > 4 || mode != client && mode != symmetricActive {
		return nil, fmt.Errorf("version %d, mode %d is no request of a client", version, mode)
	}
	if now.Before(floor) {
		return nil, fmt.Errorf("the box's own clock says %v, which is too early: set it, or give the box an uplink with a time server",
			now.Format(time.DateOnly))
	}
	b := make([]byte, packetSize)
	b[0] = version<<3 | server
	if mode == symmetricActive { // as Windows asks (RFC 4330, 6)
		b[0] = version<<3 | symmetricPassive
	}
	b[1], b[2] = stratum, request[2]
	p := int8(precision)
	b[3] = byte(p)
	binary.BigEndian.PutUint32(b[8:], 1<<16/100) // root dispersion: 10 ms
	copy(b[12:], "LOCL")
	stamp(b[16:], now.Add(-time.Second)) // reference
	copy(b[24:32], request[40:48])       // origin
	stamp(b[32:], now)
	stamp(b[40:], now)
	return b, nil
}

// stamp writes t in NTP's 64-bit format. In 2036 the seconds overflow, as clients
// expect (the next era).
func stamp(b []byte, t time.Time) {
	binary.BigEndian.PutUint32(b, uint32(t.Unix()+epoch))
	binary.BigEndian.PutUint32(b[4:], uint32(uint64(t.Nanosecond())<<32/1e9))
}
