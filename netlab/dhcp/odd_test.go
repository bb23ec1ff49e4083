package dhcp

import (
	"bytes"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// TestBOOTP: a device that speaks BOOTP alone, with DHCP's list of options or without one, gets an address and what
// it needs to use it, and keeps the address though it never asks again.
func TestBOOTP(t *testing.T) {
	x := newTable(t, nil)
	m, err := dhcpv4.New(dhcpv4.WithHwAddr(mac(1)))
	if err != nil {
		t.Fatal(err)
	}
	listed := m.ToBytes()
	plain := append(bytes.Clone(listed[:236]), make([]byte, 64)...) // RFC 951: a vendor's field, which is empty
	for _, sent := range [][]byte{plain, listed, plain} {
		m, err := parse(sent)
		if err != nil {
			t.Fatalf("parse(% x …) = %v", sent[232:244], err)
		}
		if !x.isAnswerable(m) {
			t.Fatal("the message of BOOTP is not answerable")
		}
		r := x.answer(m, mac(1).String())
		if r == nil {
			t.Fatal("the message of BOOTP has no answer")
		}
		b := r.ToBytes()
		for _, of := range []dhcpv4.OptionCode{dhcpv4.OptionDHCPMessageType, dhcpv4.OptionServerIdentifier, dhcpv4.OptionIPAddressLeaseTime} {
			if r.Options.Has(of) {
				t.Errorf("the answer has the option %v, which is DHCP's", of)
			}
		}
		if got := fmt.Sprint(r.YourIPAddr, " ", r.Router(), " ", r.DNS(), " ", net.IP(r.SubnetMask())); len(b) < 300 || b[0] != 2 ||
			got != "192.168.77.2 [192.168.77.1] [192.168.77.1] 255.255.255.0" {
			t.Errorf("the answer is %d bytes with %s", len(b), got)
		}
	}
	x.now = x.now.Add(12 * time.Hour)
	if got := said(x.ask(t, dhcpv4.MessageTypeDiscover, 2, "192.168.77.2")); got != "OFFER 192.168.77.3" {
		t.Errorf("half a day later another device that asks for the address gets %s, want another one", got)
	}
}

// TestRelay: what a repeater of a Wi-Fi passes on is answered to the repeater, with its option 82.
func TestRelay(t *testing.T) {
	x := newTable(t, nil)
	circuit := dhcpv4.OptRelayAgentInfo(dhcpv4.OptGeneric(dhcpv4.GenericOptionCode(1), []byte("wlan0")))
	relay := []dhcpv4.Modifier{dhcpv4.WithGatewayIP(net.IPv4(192, 168, 77, 200)), dhcpv4.WithOption(circuit)}
	peer := &net.UDPAddr{IP: net.IPv4(192, 168, 77, 200), Port: 67}
	for _, c := range []struct {
		kind dhcpv4.MessageType
		wish string
		want string
	}{
		{dhcpv4.MessageTypeDiscover, "", "OFFER 192.168.77.2"},
		{dhcpv4.MessageTypeRequest, "192.168.77.2", "ACK 192.168.77.2"},
		{dhcpv4.MessageTypeRequest, "10.0.0.7", "NAK"},
	} {
		r := x.ask(t, c.kind, 1, c.wish, relay...)
		if got := said(r); got != c.want {
			t.Fatalf("%v for %q by a relay: %s, want %s", c.kind, c.wish, got, c.want)
		}
		m, err := dhcpv4.New(relay...)
		if err != nil {
			t.Fatal(err)
		}
		if to := destination(m, r, peer); to.String() != "192.168.77.200:67" {
			t.Errorf("the %v goes to %v, want to the relay", r.MessageType(), to)
		}
		if !r.GatewayIPAddr.Equal(net.IPv4(192, 168, 77, 200)) || r.RelayAgentInfo() == nil || r.IsBroadcast() != (c.want == "NAK") {
			t.Errorf("the %v is %s, want the relay's address and option 82, and the flag of a broadcast for a refusal alone",
				r.MessageType(), r.Summary())
		}
	}
}
