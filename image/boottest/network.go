package boottest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"sort"
	"sync"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv4/server4"
	"github.com/vishvananda/netlink"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"eidetic/netlab/netspace"
)

// Port is a network port of the machine and the namespace at the other end of its cable.
type Port struct {
	MAC   string
	ns    *netspace.Namespace
	tap   *os.File
	stops []func()
}

// tapName is the interface in the port's namespace.
const tapName = "cable"

// NewPort makes a namespace with one TAP that has address; the machine gets the other end.
func NewPort(mac string, address netip.Prefix) (*Port, error) {
	p := &Port{MAC: mac}
	if err := p.make(address); err != nil {
		p.Close()
		return nil, fmt.Errorf("port %s: %w", mac, err)
	}
	return p, nil
}

func (p *Port) make(address netip.Prefix) (err error) {
	if p.ns, err = netspace.New(); err != nil {
		return fmt.Errorf("%w (as root?)", err)
	}
	err = p.ns.Do(func() (err error) {
		p.tap, err = openTAP(tapName)
		return err
	})
	if err == nil {
		err = p.ns.Do(p.setMAC)
	}
	if err == nil {
		err = p.ns.Up(tapName)
	}
	if err == nil && address.IsValid() {
		err = p.ns.Address(tapName, address.String())
	}
	return err
}

// setMAC gives this end of the cable an address that follows from the machine's: a machine that was saved
// finds its neighbour again.
func (p *Port) setMAC() error {
	mac, err := net.ParseMAC(p.MAC)
	if err != nil {
		return err
	}
	mac[len(mac)-2] ^= 1
	tap, err := netlink.LinkByName(tapName)
	if err != nil {
		return err
	}
	return netlink.LinkSetHardwareAddr(tap, mac)
}

// openTAP makes a TAP in the current namespace; it exists for as long as the file is open.
func openTAP(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("/dev/net/tun: %w", err)
	}
	request, err := unix.NewIfreq(name)
	if err != nil {
		return nil, err
	}
	request.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("make a TAP: %w", err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// frameHead is struct virtio_net_hdr, which stands before each frame of a TAP; all zero it asks for nothing.
const frameHead = 10

// Carry carries the frames of a port that is no machine's over a connection, each after its length of 16 bits, until the
// connection ends or the port is closed.
func (p *Port) Carry(conn net.Conn) error {
	go func() {
		defer conn.Close()
		b := make([]byte, 2+frameHead+1<<16)
		for {
			n, err := p.tap.Read(b[2:])
			if err != nil {
				return
			}
			frame := b[2+frameHead : 2+n]
			head := b[frameHead:][:2] // the frame's own head is not needed any more
			binary.BigEndian.PutUint16(head, uint16(len(frame)))
			if _, err := conn.Write(b[frameHead : 2+n]); err != nil {
				return
			}
		}
	}()
	in := bufio.NewReader(conn)
	b := make([]byte, frameHead+1<<16)
	for {
		var head [2]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return err
		}
		n := int(binary.BigEndian.Uint16(head[:]))
		if _, err := io.ReadFull(in, b[frameHead:][:n]); err != nil {
			return err
		}
		if _, err := p.tap.Write(b[:frameHead+n]); err != nil {
			return err
		}
	}
}

// Do runs f in the port's namespace. Sockets that f opens stay there.
func (p *Port) Do(f func() error) error { return p.ns.Do(f) }

// Dial connects from the port's namespace.
func (p *Port) Dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	err = p.Do(func() error {
		var d net.Dialer
		conn, err = d.DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// Client is an HTTP client in the port's namespace. It takes any certificate: what answers
// over the cable is the box of the test.
func (p *Port) Client(timeout time.Duration) *http.Client {
	return &http.Client{Timeout: timeout, Transport: &http.Transport{
		DialContext: p.Dial, DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
}

// ServeLease answers DHCP in the namespace. It offers the box the address lease, with the port's
// own address as its router and name server.
func (p *Port) ServeLease(lease netip.Prefix, router netip.Addr) error {
	handler := func(conn net.PacketConn, peer net.Addr, m *dhcpv4.DHCPv4) {
		kind := dhcpv4.MessageTypeOffer
		if m.MessageType() == dhcpv4.MessageTypeRequest {
			kind = dhcpv4.MessageTypeAck
		}
		reply, err := dhcpv4.NewReplyFromRequest(m,
			dhcpv4.WithMessageType(kind),
			dhcpv4.WithYourIP(lease.Addr().AsSlice()),
			dhcpv4.WithServerIP(router.AsSlice()),
			dhcpv4.WithOption(dhcpv4.OptServerIdentifier(router.AsSlice())),
			dhcpv4.WithNetmask(net.CIDRMask(lease.Bits(), 32)),
			dhcpv4.WithRouter(router.AsSlice()),
			dhcpv4.WithDNS(router.AsSlice()),
			dhcpv4.WithLeaseTime(3600))
		if err != nil {
			return
		}
		_, _ = conn.WriteTo(reply.ToBytes(), peer)
	}
	var server *server4.Server
	err := p.Do(func() (err error) {
		server, err = server4.NewServer(tapName, &net.UDPAddr{IP: net.IPv4zero, Port: 67}, handler)
		return err
	})
	if err != nil {
		return fmt.Errorf("port %s: DHCP: %w", p.MAC, err)
	}
	go func() { _ = server.Serve() }()
	p.stops = append(p.stops, func() { _ = server.Close() })
	return nil
}

// Stop ends what the port serves and runs.
func (p *Port) Stop() {
	for _, stop := range p.stops {
		stop()
	}
	p.stops = nil
}

// Close removes the namespace.
func (p *Port) Close() {
	p.Stop()
	if p.tap != nil {
		_ = p.tap.Close()
	}
	if p.ns != nil {
		p.ns.Close()
	}
}

// OpenPorts connects to TCP ports of an address from the namespace, 512 at a
// time, and returns those that accept, sorted. A port that does not answer within
// wait counts as closed.
func (p *Port) OpenPorts(ctx context.Context, address netip.Addr, ports []int, wait time.Duration) ([]int, error) {
	var mu sync.Mutex
	var open []int
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(512)
	for _, port := range ports {
		group.Go(func() error {
			dial, cancel := context.WithTimeout(ctx, wait)
			defer cancel()
			conn, err := p.Dial(dial, "tcp", netip.AddrPortFrom(address, uint16(port)).String())
			if err != nil {
				return ctx.Err()
			}
			mu.Lock()
			open = append(open, port)
			mu.Unlock()
			return conn.Close()
		})
	}
	err := group.Wait()
	sort.Ints(open)
	return open, err
}

// ServeOnce sends what write writes to the first client that connects to the port's own
// address, and returns the TCP port. On the box: cat < /dev/tcp/ADDRESS/PORT. The
// receiver notices a connection that breaks.
func (p *Port) ServeOnce(write func(io.Writer) error) (int, error) {
	var listener net.Listener
	err := p.Do(func() (err error) {
		listener, err = net.Listen("tcp4", ":0")
		return err
	})
	if err != nil {
		return 0, err
	}
	p.stops = append(p.stops, func() { _ = listener.Close() })
	go func() {
		defer func() { _ = listener.Close() }()
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		_ = write(conn)
	}()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

// Start starts a program in the port's namespace: a browser, an origin site, a
// DHCP client. Close ends it and waits for it.
func (p *Port) Start(cmd *exec.Cmd) error {
	if err := p.Do(cmd.Start); err != nil {
		return fmt.Errorf("port %s: %w", p.MAC, err)
	}
	p.stops = append(p.stops, func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return nil
}

// Output runs a program in the port's namespace to its end and returns what it
// printed to both its outputs.
func (p *Port) Output(cmd *exec.Cmd) ([]byte, error) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := p.Do(cmd.Start); err != nil {
		return nil, fmt.Errorf("port %s: %w", p.MAC, err)
	}
	err := cmd.Wait()
	return out.Bytes(), err
}
