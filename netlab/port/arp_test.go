package port

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"eidetic/internal/rigs/testlab"
	"eidetic/netlab/nstest"
)

// TestOtherAddressesAreFree: the box answers ARP for its own address alone, though packets to every address are
// delivered to it. A device that hears an answer to its announcement gives its address up (RFC 5227, 2.4).
func TestOtherAddressesAreFree(t *testing.T) {
	if !nstest.Inside(t) {
		return
	}
	w := newWorld(t)
	device := newPhone(t, w, "dev0")
	w.port(t, "dev0", nil)
	device.lease(t)
	own, gateway := netip.MustParseAddr("192.168.77.2"), netip.MustParseAddr("192.168.77.1")
	asked := [][2]netip.Addr{
		{own, own}, // announces it
		{netip.IPv4Unspecified(), netip.MustParseAddr("192.168.77.3")}, // probes whether it is free
		{own, netip.MustParseAddr("192.168.77.99")},
		{own, netip.MustParseAddr("198.18.0.1")},
		{own, netip.MustParseAddr("169.254.7.7")},
		{own, gateway},
	}
	var answered []netip.Addr
	if err := device.Do(func() (err error) { answered, err = askARP("eth0", asked); return err }); err != nil {
		t.Fatalf("after answers for %v: %v", answered, err)
	}
	if !slices.Equal(answered, []netip.Addr{gateway}) {
		t.Errorf("the box answers ARP for %v, want for %v alone", answered, gateway)
	}
}

// askARP sends requests, each from an address for another, and returns the addresses that are answered for until the
// last one is.
func askARP(name string, asked [][2]netip.Addr) (answered []netip.Addr, err error) {
	ifi, err := net.InterfaceByName(name)
	if err != nil {
		return nil, err
	}
	arp := binary.NativeEndian.Uint16([]byte{unix.ETH_P_ARP >> 8, unix.ETH_P_ARP & 0xff}) // in network order
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(arp))
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	limit := unix.NsecToTimeval(int64(testlab.Hang))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
		return nil, err
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: arp, Ifindex: ifi.Index}); err != nil {
		return nil, err
	}
	me := []byte{2, 0, 0, 0, 0, 0x99} // which tells the answers from those to the kernel
	for _, a := range asked {
		b := slices.Concat(bytes.Repeat([]byte{0xff}, 6), me, []byte{8, 6, 0, 1, 8, 0, 6, 4, 0, 1},
			me, a[0].AsSlice(), make([]byte, 6), a[1].AsSlice())
		if _, err := unix.Write(fd, b); err != nil {
			return nil, err
		}
	}
	for b := make([]byte, 1500); ; {
		n, err := unix.Read(fd, b)
		if err != nil {
			return answered, err
		}
		const reply = 2
		if n < 42 || b[21] != reply || !bytes.Equal(b[32:38], me) {
			continue
		}
		answered = append(answered, netip.AddrFrom4([4]byte(b[28:32])))
		if answered[len(answered)-1] == asked[len(asked)-1][1] {
			return answered, nil
		}
	}
}
