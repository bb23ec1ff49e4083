// Package flood tests the name server with forged queries. It is apart from package
// dns because it needs namespaces.
package flood

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	mdns "github.com/miekg/dns"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/netlab/dns"
	"eidetic/netlab/netspace"
)

func TestMain(m *testing.M) { testlab.NoLeaks(m) }

const (
	here, device = "10.9.0.1", "10.9.0.2"
	// forged is the number of forged queries, whose answers would fill the socket's
	// buffer ten times. The kernel drops an answer after three seconds of asking for
	// its MAC address, so that answers which wait for the buffer would take half a
	// minute.
	forged = 3000
)

// networks returns the namespaces of the server and of the device.
func networks(t *testing.T) (server, client *netspace.Namespace) {
	t.Helper()
	testlab.NeedRoot(t)
	testlab.NeedNamespaces(t)
	ends := [2]*netspace.Namespace{}
	for i := range ends {
		ns, err := netspace.New()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(ns.Close)
		ends[i] = ns
	}
	if err := netspace.Veth(ends[0], "near", ends[1], "far"); err != nil {
		t.Fatal(err)
	}
	for i, addr := range []string{here, device} {
		if err := ends[i].Address([]string{"near", "far"}[i], addr+"/16"); err != nil {
			t.Fatal(err)
		}
	}
	return ends[0], ends[1]
}

// TestDeviceIsAnsweredAfterAFlood sends queries from addresses that nobody on the
// cable has, so that their answers stay in the socket's buffer. The device must get
// its answer soon.
func TestDeviceIsAnsweredAfterAFlood(t *testing.T) {
	testlab.Long(t, "a flood")
	near, far := networks(t)
	pool, err := dns.NewPool(netip.MustParsePrefix("198.18.0.0/15"), netip.Prefix{})
	if err != nil {
		t.Fatal(err)
	}
	var s *dns.Server
	err = near.Do(func() (err error) {
		s, err = dns.Listen(dns.Config{Addr: here + ":53", Pool: pool, Clock: lab.Monotonic, Control: roomy})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	table := dns.NewTable()
	table.AddHost("www.shop.test", netip.MustParseAddr("203.0.113.1"))
	s.Use(table)
	var conn net.Conn
	raw := -1
	err = far.Do(func() (err error) {
		if conn, err = net.Dial("udp", here+":53"); err != nil {
			return err
		}
		raw, err = syscall.Socket(syscall.AF_INET, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, syscall.IPPROTO_RAW)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	defer syscall.Close(raw)
	question := new(mdns.Msg).SetQuestion("www.shop.test.", mdns.TypeA)
	packed, err := question.Pack()
	if err != nil {
		t.Fatal(err)
	}
	ask := func() error {
		c := mdns.Client{Timeout: 500 * time.Millisecond}
		_, _, err := c.ExchangeWithConn(question, &mdns.Conn{Conn: conn})
		return err
	}
	answered := func() (took time.Duration, err error) {
		start := time.Now()
		for err = ask(); err != nil && time.Since(start) < 10*time.Second; err = ask() {
		}
		return time.Since(start), err
	}
	if _, err := answered(); err != nil {
		t.Fatalf("before the flood: %v", err)
	}
	for i := range forged {
		p := packet([4]byte{10, 9, byte(1 + i/250), byte(1 + i%250)}, packed)
		if err := syscall.Sendto(raw, p, 0, &syscall.SockaddrInet4{Addr: netip.MustParseAddr(here).As4()}); err != nil {
			t.Fatal(err)
		}
	}
	took, err := answered()
	if err != nil {
		t.Errorf("%v after the flood the device has no answer: %v", took, err)
	}
	t.Logf("answered after %v, %d dropped", took, s.Dropped())
}

// roomy enlarges the socket's receive buffer for all forged queries.
func roomy(_, _ string, c syscall.RawConn) (err error) {
	done := c.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUFFORCE, 16<<20)
	})
	return errors.Join(done, err)
}

// packet returns an IPv4 packet with a query over UDP, without a checksum.
func packet(from [4]byte, question []byte) []byte {
	const ip, udp = 20, 8
	p := make([]byte, ip+udp, ip+udp+len(question))
	p[0], p[8], p[9] = 0x45, 64, syscall.IPPROTO_UDP // the kernel fills in length and checksum
	to := netip.MustParseAddr(here).As4()
	copy(p[12:], from[:])
	copy(p[16:], to[:])
	binary.BigEndian.PutUint16(p[ip:], 5353)
	binary.BigEndian.PutUint16(p[ip+2:], 53)
	binary.BigEndian.PutUint16(p[ip+4:], uint16(udp+len(question)))
	return append(p, question...)
}
