package sandbox

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
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

	"eidetic/netlab/reach"
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

// names is a name server that knows the IPv4 addresses of some names, and of no other that it exists.
func names(t *testing.T, known map[string]string) netip.AddrPort {
	t.Helper()
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &mdns.Server{PacketConn: packets, Handler: mdns.HandlerFunc(func(w mdns.ResponseWriter, q *mdns.Msg) {
		a := new(mdns.Msg).SetReply(q)
		addrs, exists := known[q.Question[0].Name]
		if !exists {
			a.Rcode = mdns.RcodeNameError
		} else if q.Question[0].Qtype == mdns.TypeA {
			for _, addr := range strings.Fields(addrs) {
				a.Answer = append(a.Answer, &mdns.A{
					Hdr: mdns.RR_Header{Name: q.Question[0].Name, Rrtype: mdns.TypeA, Class: mdns.ClassINET}, A: net.ParseIP(addr),
				})
			}
		}
		_ = w.WriteMsg(a) // a test that gets no answer fails
	})}
	started, done := make(chan struct{}), make(chan struct{})
	server.NotifyStartedFunc = func() { close(started) }
	go func() { _ = server.ActivateAndServe(); close(done) }()
	<-started
	t.Cleanup(func() { _ = server.Shutdown(); <-done })
	return netip.MustParseAddrPort(packets.LocalAddr().String())
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
	silent, err := net.ListenPacket("udp", "127.0.0.1:0") // a name server that never answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	resolver, nobody := names(t, nil), netip.MustParseAddrPort(silent.LocalAddr().String())
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

// Pages that a person names at private addresses open their own hosts, there and nowhere else; whoever owns the name of
// a page from the Internet cannot open anything by adding addresses to it.
func TestPagesOpenTheirOwnHosts(t *testing.T) {
	resolver := names(t, map[string]string{
		"lan.example.": "10.0.0.7", "both.example.": "198.51.100.7 127.0.0.1", "clouds.example.": "169.254.169.254",
		"public.example.": "198.51.100.7", "evil.example.": "127.0.0.1", "mixed.example.": "10.0.0.7 169.254.169.254",
	})
	for page, want := range map[string]map[string]bool{
		"http://localhost:3000/": {
			"localhost:3000 127.0.0.1": true, "localhost:3000 ::1": true, "localhost:8080 127.0.0.1": true, "127.0.0.1:8080 127.0.0.1": true,
			"api.localhost:80 127.0.0.1": true, "evil.example:3000 127.0.0.1": false, "10.0.0.7:80 10.0.0.7": false,
			"localhost:80 10.0.0.7": false, "169.254.169.254:80 169.254.169.254": false, "public.example:80 198.51.100.7": true,
		},
		"https://10.0.0.7/":       {"10.0.0.7:80 10.0.0.7": true, "evil.example:80 10.0.0.7": false, "10.0.0.8:80 10.0.0.8": false},
		"http://[::1]/":           {"::1:80 ::1": true, "localhost:80 127.0.0.1": true},
		"http://169.254.169.254/": {"169.254.169.254:80 169.254.169.254": true, "evil.example:80 169.254.169.254": false},
		"http://lan.example/": {
			"lan.example:80 10.0.0.7": true, "LAN.example.:443 10.0.0.7": true, "10.0.0.7:443 10.0.0.7": true,
			// Its name server leads elsewhere while it is recorded.
			"lan.example:80 127.0.0.1": false, "lan.example:80 198.51.100.7": false, "evil.example:80 10.0.0.7": false,
		},
		"http://both.example/": {
			"both.example:80 198.51.100.7": true, "both.example:80 127.0.0.1": false, "127.0.0.1:80 127.0.0.1": false,
		},
		"http://mixed.example/":   {"mixed.example:80 10.0.0.7": false, "mixed.example:80 169.254.169.254": false},
		"http://clouds.example/":  {"clouds.example:80 169.254.169.254": false},
		"https://public.example/": {"public.example:443 198.51.100.7": true, "public.example:80 10.0.0.1": false, "127.0.0.1:80 127.0.0.1": false},
	} {
		r := Reach{Resolver: resolver}
		r.Open(t.Context(), []string{page})
		for target, open := range want {
			at, address, _ := strings.Cut(target, " ")
			host, port, _ := strings.Cut(at, ":")
			if strings.HasPrefix(at, "::1") {
				host, port = "::1", "80"
			}
			to := netip.MustParseAddrPort(net.JoinHostPort(address, port))
			if err := r.rule().Check(host, to); (err == nil) != open || err != nil && !errors.Is(err, reach.ErrRefused) {
				t.Errorf("with the page %s, Check(%s, %v) = %v; want it open: %t", page, host, to, err, open)
			}
		}
	}
}

// What the inner half asks for is judged in the outer half: a host where the rule lets it, and without a host the name
// server alone.
func TestOuterHalfJudges(t *testing.T) {
	s := httptest.NewServer(nil)
	defer s.Close()
	at := s.Listener.Addr().String()
	r := Reach{Resolver: netip.MustParseAddrPort(at)}
	if c, err := r.forInside(t.Context(), "tcp", "", at); err != nil {
		t.Errorf("forInside() of the name server = %v; want nil", err)
	} else {
		c.Close()
	}
	if _, err := r.forInside(t.Context(), "tcp", "", "127.0.0.1:1"); !errors.Is(err, reach.ErrRefused) {
		t.Errorf("forInside() without a host = %v; want ErrRefused", err)
	}
	if _, err := r.forInside(t.Context(), "tcp", "evil.example", at); !errors.Is(err, reach.ErrRefused) {
		t.Errorf("forInside() of a private address = %v; want ErrRefused", err)
	}
	r.Open(t.Context(), []string{"http://" + at})
	if c, err := r.forInside(t.Context(), "tcp", "127.0.0.1", at); err != nil {
		t.Errorf("forInside() of the page's own host = %v; want nil", err)
	} else {
		c.Close()
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
