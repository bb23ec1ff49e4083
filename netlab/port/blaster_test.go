package port

import (
	"encoding/binary"
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"
	mdns "github.com/miekg/dns"
	"golang.org/x/sys/unix"
)

// blast sends frames on a device's interface as fast as the kernel accepts them,
// until stop is closed, and returns how many were sent.
func (p *phone) blast(t *testing.T, seed uint64, stop <-chan struct{}) (sent int) {
	t.Helper()
	err := p.Do(func() error {
		ifi, err := net.InterfaceByName("eth0")
		if err != nil {
			return err
		}
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		to := &unix.SockaddrLinklayer{Ifindex: ifi.Index, Halen: 6}
		r := rand.New(rand.NewPCG(seed, 0))
		list := hostile(t, r)
		for {
			select {
			case <-stop:
				return nil
			default:
			}
			for range 64 {
				f := list[r.IntN(len(list))]
				if r.IntN(2) == 0 {
					f = mutated(r, f)
				}
				if unix.Sendto(fd, f, 0, to) == nil { // a full queue is an answer too
					sent++
				}
			}
		}
	})
	if err != nil {
		t.Errorf("blast: %v", err)
	}
	return sent
}

// mutated returns a copy that is truncated or has some bytes behind the addresses
// changed.
func mutated(r *rand.Rand, f []byte) []byte {
	f = append([]byte(nil), f...)
	for range 1 + r.IntN(8) {
		f[6+r.IntN(len(f)-6)] = byte(r.Uint32())
	}
	if r.IntN(4) == 0 {
		f = f[:14+r.IntN(len(f)-13)]
	}
	return f
}

var (
	broadcast = net.HardwareAddr{255, 255, 255, 255, 255, 255}
	boxMAC    = hardwareAddr("dev1 lab1")
	box78     = netip.MustParseAddr("192.168.78.1")
)

// hostile returns frames of all kinds that must do no harm to the box.
func hostile(t *testing.T, r *rand.Rand) (list [][]byte) {
	mac := func() net.HardwareAddr {
		return net.HardwareAddr{2, byte(r.Uint32()), 0, 0, byte(r.Uint32()), byte(r.Uint32())}
	}
	src := func() netip.Addr { return netip.AddrFrom4([4]byte{192, 168, 78, byte(2 + r.IntN(250))}) }
	for range 50 {
		from := mac()
		kinds := []dhcpv4.MessageType{dhcpv4.MessageTypeDiscover, dhcpv4.MessageTypeRequest, dhcpv4.MessageTypeDecline,
			dhcpv4.MessageTypeRelease, dhcpv4.MessageTypeInform}
		m, err := dhcpv4.New(dhcpv4.WithHwAddr(from), dhcpv4.WithMessageType(kinds[r.IntN(len(kinds))]),
			dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(src().AsSlice())))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, udpFrame(from, broadcast, netip.IPv4Unspecified(), netip.AddrFrom4([4]byte{255, 255, 255,
			255}), 68, 67, m.ToBytes()))

		q := new(mdns.Msg).SetQuestion(mdns.Fqdn("host.test"), uint16(r.Uint32()))
		b, err := q.Pack()
		if err != nil {
			t.Fatal(err)
		}
		list = append(list,
			udpFrame(from, boxMAC, src(), box78, uint16(r.Uint32()), 53, b),
			udpFrame(from, boxMAC, src(), box78, uint16(r.Uint32()), 53, noise(r, 600)),
			udpFrame(from, boxMAC, src(), box78, 123, 123, noise(r, 48)),
			udpFrame(from, boxMAC, src(), box78, uint16(r.Uint32()), 443, noise(r, 1200)),
			ipFrame(from, boxMAC, src(), box78, unix.IPPROTO_TCP, syn(r, []uint16{53, 80, 443, 3128, 8080}[r.IntN(5)])),
			ipFrame(from, boxMAC, src(), netip.AddrFrom4([4]byte{198, 18, 1, 1}), unix.IPPROTO_TCP, syn(r, 443)),
			ipFrame(from, broadcast, src(), box78, byte(r.Uint32()), noise(r, 400)),
			ipFrame(from, boxMAC, box78, box78, unix.IPPROTO_ICMP, noise(r, 1400)), // in the box's own name
			ether(from, boxMAC, 0x86dd, noise(r, 300)),
			ether(from, net.HardwareAddr{0x33, 0x33, 0, 0, 0, 2}, 0x86dd, noise(r, 64)),
			ether(from, broadcast, 0x0806, noise(r, 28)),
			ether(from, boxMAC, 0x8100, noise(r, 100)),
			ether(from, boxMAC, uint16(r.Uint32()), noise(r, 1500)),
			ether(from, boxMAC, 0x0800, noise(r, 20)),
		)
	}
	return list
}

func noise(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func ether(from, to net.HardwareAddr, kind uint16, payload []byte) []byte {
	f := append(append([]byte(nil), to...), from...)
	return append(binary.BigEndian.AppendUint16(f, kind), payload...)
}

func ipFrame(from, to net.HardwareAddr, src, dst netip.Addr, protocol byte, payload []byte) []byte {
	h := make([]byte, 20, 20+len(payload))
	h[0], h[8], h[9] = 0x45, 64, protocol
	binary.BigEndian.PutUint16(h[2:], uint16(20+len(payload)))
	copy(h[12:], src.AsSlice())
	copy(h[16:], dst.AsSlice())
	binary.BigEndian.PutUint16(h[10:], ^sum(0, h))
	return ether(from, to, 0x0800, append(h, payload...))
}

func udpFrame(from, to net.HardwareAddr, src, dst netip.Addr, sport, dport uint16, payload []byte) []byte {
	u := binary.BigEndian.AppendUint16(nil, sport)
	u = binary.BigEndian.AppendUint16(u, dport)
	u = binary.BigEndian.AppendUint16(u, uint16(8+len(payload)))
	return ipFrame(from, to, src, dst, unix.IPPROTO_UDP, append(append(u, 0, 0), payload...)) // without a checksum
}

func syn(r *rand.Rand, port uint16) []byte {
	b := make([]byte, 20)
	binary.BigEndian.PutUint16(b, uint16(r.Uint32()))
	binary.BigEndian.PutUint16(b[2:], port)
	binary.BigEndian.PutUint32(b[4:], r.Uint32())
	b[12], b[13] = 5<<4, 2
	return b // its checksum is wrong: most are dropped, as a careless device's would be
}

// sum returns the internet checksum (RFC 1071).
func sum(start uint32, b []byte) uint16 {
	for i := 0; i+1 < len(b); i += 2 {
		start += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for start > 0xffff {
		start = start>>16 + start&0xffff
	}
	return uint16(start)
}
