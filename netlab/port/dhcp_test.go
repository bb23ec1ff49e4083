package port

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv4/server4"

	"eidetic/internal/rigs/testlab"
	"eidetic/netlab/nstest"
)

// TestAddressOfAnotherNetwork: a device that saw no end of its cable asks, from its old address, whether it may keep
// that, and is refused, so that it asks for another one.
func TestAddressOfAnotherNetwork(t *testing.T) {
	if !nstest.Inside(t) {
		return
	}
	w := newWorld(t)
	phone := newPhone(t, w, "p0")
	phone.Address(t, "eth0", "10.0.0.9/24")
	w.port(t, "p0", nil)
	if err := phone.Do(func() error { return isRefused("eth0", net.IPv4(10, 0, 0, 9)) }); err != nil {
		t.Error(err)
	}
}

// isRefused asks to keep an address, as a device does that its lease's server does not answer, until it is answered.
func isRefused(name string, had net.IP) error {
	eth, err := net.InterfaceByName(name)
	if err != nil {
		return err
	}
	conn, err := server4.NewIPv4UDPConn(name, &net.UDPAddr{Port: dhcpv4.ClientPort})
	if err != nil {
		return err
	}
	defer conn.Close()
	m, err := dhcpv4.New(dhcpv4.WithHwAddr(eth.HardwareAddr), dhcpv4.WithClientIP(had), dhcpv4.WithMessageType(dhcpv4.MessageTypeRequest))
	if err != nil {
		return err
	}
	buffer := make([]byte, 1500)
	for end := time.Now().Add(testlab.Hang); time.Now().Before(end); {
		if _, err := conn.WriteTo(m.ToBytes(), &net.UDPAddr{IP: net.IPv4bcast, Port: dhcpv4.ServerPort}); err != nil {
			return err
		}
		_ = conn.SetReadDeadline(time.Now().Add(time.Second)) // an open connection takes it
		n, _, err := conn.ReadFrom(buffer)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			continue // the port does not listen yet
		}
		if err != nil {
			return err
		}
		r, err := dhcpv4.FromBytes(buffer[:n])
		if err != nil {
			return err
		}
		if r.MessageType() != dhcpv4.MessageTypeNak || r.TransactionID != m.TransactionID {
			return errors.New("the answer is " + r.Summary() + "; want a refusal")
		}
		return nil
	}
	return errors.New("there is no answer")
}
