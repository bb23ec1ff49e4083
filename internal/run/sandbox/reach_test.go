package sandbox

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	mdns "github.com/miekg/dns"
)

// certificate makes a certificate for localhost. It is signed by itself, or, with an
// authority's name, by an authority that nobody knows.
func certificate(t *testing.T, authority string, until time.Time) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		NotBefore: until.Add(-24 * time.Hour), NotAfter: until,
	}
	parent, signer := leaf, key
	if authority != "" {
		parent = &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: authority}}
		if signer, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			t.Fatal(err)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// secure serves TLS with a certificate and returns the server's port.
func secure(t *testing.T, c tls.Certificate) string {
	t.Helper()
	s := httptest.NewUnstartedServer(nil)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{c}}
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // it tells of each handshake that Check refuses
	s.StartTLS()
	t.Cleanup(s.Close)
	return port(t, s.Listener.Addr())
}

func port(t *testing.T, a net.Addr) string {
	t.Helper()
	_, p, err := net.SplitHostPort(a.String())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Each thing that is wrong with an origin has a message that names it and what to do.
func TestCheckNamesWhatIsWrong(t *testing.T) {
	plain := httptest.NewServer(nil)
	defer plain.Close()
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead.Close()
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	names := &mdns.Server{PacketConn: packets, Handler: mdns.HandlerFunc(func(w mdns.ResponseWriter, q *mdns.Msg) {
		_ = w.WriteMsg(new(mdns.Msg).SetRcode(q, mdns.RcodeNameError)) // a test that gets no answer fails
	})}
	go func() { _ = names.ActivateAndServe() }()
	defer func() { _ = names.Shutdown() }()
	silent, err := net.ListenPacket("udp", "127.0.0.1:0") // a name server that never answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	resolver, nobody := netip.MustParseAddrPort(packets.LocalAddr().String()), netip.MustParseAddrPort(silent.LocalAddr().String())
	next := time.Now().Add(time.Hour)
	selfSigned := certificate(t, "", next)
	trusted := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: selfSigned.Certificate[0]}))
	own, unknown, expired := secure(t, selfSigned), secure(t, certificate(t, "Test Authority", next)),
		secure(t, certificate(t, "", time.Now().Add(-time.Hour)))
	private := Reach{Private: true, Resolver: resolver}
	for name, c := range map[string]struct {
		reach Reach
		page  string
		says  []string // none: the origin is good
	}{
		"plain":      {private, plain.URL, nil},
		"localhost":  {private, "http://localhost:" + port(t, plain.Listener.Addr()), nil},
		"sub":        {private, "http://app.localhost:" + port(t, plain.Listener.Addr()), nil},
		"dead":       {private, "http://" + dead.Addr().String(), []string{"nothing listens on", "start the server"}},
		"no name":    {private, "http://nosuch.example/", []string{"nosuch.example does not resolve", "/etc/hosts", "--resolver"}},
		"no server":  {Reach{Resolver: nobody}, "http://a.example/", []string{"did not answer", "--resolver"}},
		"self":       {private, "https://localhost:" + own, []string{"self-signed", "--trust", "--insecure-origin"}},
		"authority":  {private, "https://localhost:" + unknown, []string{`"Test Authority"`, "--trust"}},
		"expired":    {Reach{Private: true, Roots: trusted}, "https://localhost:" + expired, []string{"not trusted"}},
		"trusted":    {Reach{Private: true, Roots: trusted}, "https://localhost:" + own, nil},
		"other name": {Reach{Private: true, Roots: trusted}, "https://127.0.0.1:" + own, []string{"127.0.0.1", "not trusted"}},
		"any":        {Reach{Private: true, AnyCertificate: true}, "https://localhost:" + unknown, nil},
		"no TLS":     {private, "https://localhost:" + port(t, plain.Listener.Addr()), []string{"does not speak TLS", "try http://localhost:"}},
		"private":    {Reach{}, plain.URL, []string{"private network", "--allow-private", "network.allow_private"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.reach.Check(t.Context(), c.page)
			if len(c.says) == 0 {
				if err != nil {
					t.Errorf("Check(%s) = %v; want nil", c.page, err)
				}
				return
			}
			for _, want := range c.says {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("Check(%s) = %v; want an error with %q", c.page, err, want)
				}
			}
		})
	}
}

// A page that a person names at a private address may be reached, and what is beside it.
func TestNamesPrivate(t *testing.T) {
	for page, want := range map[string]bool{
		"http://localhost:3000/": true, "https://10.0.0.7/": true, "http://[::1]/": true, "http://169.254.169.254/": true,
		"http://198.51.100.7/": false, "http://[2001:db8::1]/": false,
	} {
		if got := NamesPrivate(t.Context(), Reach{}, []string{page}); got != want {
			t.Errorf("NamesPrivate(%s) = %t; want %t", page, got, want)
		}
	}
}

// A page of http:// at a port that speaks TLS gets a hint.
func TestHint(t *testing.T) {
	at := "localhost:" + secure(t, certificate(t, "", time.Now().Add(time.Hour)))
	problem := &OriginError{net.ErrClosed}
	if err := (Reach{Private: true}).hint(t.Context(), "http://"+at+"/x", problem); !strings.Contains(err.Error(), "try https://"+at+"/x") {
		t.Errorf("hint() = %v; want the address with https", err)
	}
	if err := (Reach{}).hint(t.Context(), "http://"+at, nil); err != nil {
		t.Errorf("hint() of no problem = %v; want nil", err)
	}
}
