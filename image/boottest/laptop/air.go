package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"

	"golang.org/x/sys/unix"

	"eidetic/netlab/netspace"
)

const (
	// maxFrame is more than a frame of the radio has.
	maxFrame = 4096
	// etherType is where a frame says what it carries: typeEAPOL are the keys on which a station and its access point
	// agree, which concern the radio alone.
	etherType, typeEAPOL = 12, 0x888e
)

// carryAir carries frames between a radio and a connection. The laptop has the radio's own address: an access point knows
// a station by it.
func carryAir(to, radio, namespace string) error {
	conn, err := net.Dial("tcp", to)
	if err != nil {
		return err
	}
	defer conn.Close()
	ns, err := netspace.Named(namespace)
	if err != nil {
		return err
	}
	defer ns.Close()
	fd := -1
	if err := ns.Do(func() (err error) {
		fd, err = openRadio(radio)
		return err
	}); err != nil {
		return fmt.Errorf("%s: %w", radio, err)
	}
	fmt.Println("ready")
	ended := make(chan error, 2)
	go func() { ended <- fromAir(conn, fd) }()
	go func() { ended <- toAir(fd, conn) }()
	if err := <-ended; !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

func network(n uint16) uint16 { return n<<8 | n>>8 }

// openRadio opens a socket for all frames of an interface of this namespace.
func openRadio(name string) (fd int, err error) {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return -1, err
	}
	if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
		return -1, err
	}
	return fd, unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: network(unix.ETH_P_ALL), Ifindex: i.Index})
}

// fromAir sends what the radio hears.
func fromAir(to io.Writer, fd int) error {
	b := make([]byte, 2+maxFrame)
	for {
		n, from, err := unix.Recvfrom(fd, b[2:], 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		a, ok := from.(*unix.SockaddrLinklayer)
		if !ok || a.Pkttype == unix.PACKET_OUTGOING || n <= etherType+2 || binary.BigEndian.Uint16(b[2+etherType:]) == typeEAPOL {
			continue
		}
		binary.BigEndian.PutUint16(b, uint16(n))
		if _, err := to.Write(b[:2+n]); err != nil {
			return err
		}
	}
}

// toAir has the radio send what comes. What it cannot send is lost, as on the air.
func toAir(fd int, from io.Reader) error {
	in := bufio.NewReader(from)
	var head [2]byte
	b := make([]byte, maxFrame)
	for {
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return err
		}
		n := int(binary.BigEndian.Uint16(head[:]))
		if n > maxFrame {
			return fmt.Errorf("a frame of %d bytes", n)
		}
		if _, err := io.ReadFull(in, b[:n]); err != nil {
			return err
		}
		_, _ = unix.Write(fd, b[:n])
	}
}
