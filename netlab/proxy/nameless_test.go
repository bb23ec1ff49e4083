package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"net/netip"
	"testing"
	"time"

	"eidetic/netlab/ca"
)

// TestClientsThatNameNoServer: a client without SNI, as of small devices, gets a certificate for all hosts that it may
// mean, and the protocols of the likeliest of them.
func TestClientsThatNameNoServer(t *testing.T) {
	authority, err := ca.New(time.Now)
	if err != nil {
		t.Fatal(err)
	}
	l, err := Listen(t.Context(), "127.0.0.1:0", "cubic")
	if err != nil {
		t.Fatal(err)
	}
	found := []string{"shop.test", "cdn.test"}
	s, err := Serve(Config{
		HTTPS: l, Certificates: authority, Core: &fakeCore{protocols: map[string][]string{"shop.test": {"h2", "http/1.1"}}},
		HostsAt: func(a netip.Addr) []string {
			if a != netip.AddrFrom4([4]byte{127, 0, 0, 1}) {
				return nil
			}
			return found
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	state := c.ConnectionState()
	if state.NegotiatedProtocol != "h2" {
		t.Errorf("the protocol is %s, want that of the likeliest host, h2", state.NegotiatedProtocol)
	}
	for _, name := range append(found, "127.0.0.1") {
		if _, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: authority.Pool(), DNSName: name}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
