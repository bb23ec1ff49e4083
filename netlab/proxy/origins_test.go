package proxy

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"eidetic/internal/rigs/testlab"
	"eidetic/netlab/message"
)

// TestClosedJustThen: an origin that closes a connection when the second request comes on it, with or without saying so
// (408), is asked again, also with a POST, as browsers do. One that never answers is not asked for ever.
func TestClosedJustThen(t *testing.T) {
	for name, last := range map[string]string{"closed": "", "timed out": "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\nlate"} {
		t.Run(name, func(t *testing.T) { closesJustThen(t, last) })
	}
}

// closesJustThen tries an origin that says something last when it closes a connection.
func closesJustThen(t *testing.T, last string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var asked atomic.Int64
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				r := bufio.NewReader(c)
				for range 2 {
					h, err := message.ReadHead(r, 1<<20)
					if err != nil {
						return
					}
					body := make([]byte, len("order"))
					if _, err := io.ReadFull(r, body); err != nil {
						return
					}
					if asked.Add(1); strings.Contains(h.Start, "/never") || asked.Load() == 2 {
						_, _ = io.WriteString(c, last)
						return
					}
					fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
				}
			}()
		}
	}()
	u := NewUpstream(UpstreamConfig{})
	defer u.Close()
	post := func(path string) (string, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+l.Addr().String()+path, strings.NewReader("order"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := u.RoundTrip(r)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		return string(text), err
	}
	for i := range 2 { // the second one is closed, and sent again on a connection of its own
		if got, err := post("/"); got != "order" || err != nil {
			t.Errorf("request %d: %q, %v; want its answer", i+1, got, err)
		}
	}
	if n := asked.Load(); n != 3 {
		t.Errorf("the origin was asked %d times; want 3", n)
	}
	if got, err := post("/never"); (err == nil) != (last != "") || err == nil && got != "late" {
		t.Errorf("an origin that never answers: %q, %v; want what it says at last, or an error", got, err)
	}
	if n := asked.Load(); n > 5 {
		t.Errorf("the origin was asked %d times; want no more than once on an old connection and once on a new one", n-3)
	}
}

// signed makes a certificate for key, by an issuer or by itself.
func signed(t *testing.T, name string, key *ecdsa.PrivateKey, issuer *x509.Certificate, by *ecdsa.PrivateKey, at string) *x509.Certificate {
	t.Helper()
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true, IsCA: !strings.Contains(name, "."),
	}
	if c.IsCA {
		c.KeyUsage = x509.KeyUsageCertSign
	} else {
		c.DNSNames, c.KeyUsage = []string{name}, x509.KeyUsageDigitalSignature
	}
	if at != "" {
		c.IssuingCertificateURL = []string{at}
	}
	if issuer == nil {
		issuer, by = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, issuer, &key.PublicKey, by)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// TestForgottenIssuer: the certificate between the server's and the authority's, which the server does not send, is
// fetched from where the server's says; without it, or with another in its place, the server is not trusted.
func TestForgottenIssuer(t *testing.T) {
	var keys [3]*ecdsa.PrivateKey
	for i := range keys {
		var err error
		if keys[i], err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			t.Fatal(err)
		}
	}
	root := signed(t, "root", keys[0], nil, nil, "")
	between := signed(t, "between", keys[1], root, keys[0], "")
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/between.cer":
			_, _ = w.Write(between.Raw)
		case "/other.cer":
			_, _ = w.Write(root.Raw)
		default:
			http.NotFound(w, r)
		}
	}))
	defer store.Close()
	roots := x509.NewCertPool()
	roots.AddCert(root)
	for _, c := range []struct {
		host, at string
		roots    *x509.CertPool
		want     bool
	}{
		{"shop.test", "/between.cer", roots, true},
		{"shop.test", "/other.cer", roots, false},
		{"shop.test", "/gone.cer", roots, false},
		{"shop.test", "/between.cer", x509.NewCertPool(), false},
		{"else.test", "/between.cer", roots, false},
	} {
		leaf := signed(t, "shop.test", keys[2], between, keys[1], store.URL+c.at)
		origin := httptest.NewUnstartedServer(http.NotFoundHandler())
		origin.Config.ErrorLog = log.New(io.Discard, "", 0)
		origin.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{leaf.Raw}, PrivateKey: keys[2]}}}
		origin.StartTLS()
		device := dialTCP(t, origin.Listener.Addr().String())
		client := tls.Client(device, OriginTLS{Host: c.host, Roots: c.roots, Dial: new(net.Dialer).DialContext}.Config())
		err := client.HandshakeContext(t.Context())
		var why *tls.CertificateVerificationError
		if (err == nil) != c.want || err != nil && !errors.As(err, &why) {
			t.Errorf("%s with the issuer at %s: %v; want trust: %v", c.host, c.at, err, c.want)
		}
		_ = device.Close()
		origin.Close()
	}
}

// TestOldCipherSuites: servers of TLS 1.2 that know no exchange of keys but RSA's are spoken to, as browsers do.
func TestOldCipherSuites(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"old.test"},
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	if c, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	origin := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "old") }))
	origin.TLS = &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MaxVersion: tls.VersionTLS12,
		CipherSuites: []uint16{tls.TLS_RSA_WITH_AES_128_CBC_SHA},
	}
	origin.StartTLS()
	defer origin.Close()
	roots := x509.NewCertPool()
	roots.AddCert(c)
	conn := dialTCP(t, origin.Listener.Addr().String())
	client := tls.Client(conn, OriginTLS{Host: "old.test", Roots: roots}.Config())
	if err := client.HandshakeContext(t.Context()); err != nil {
		t.Errorf("a server that knows only the key exchange of RSA: %v; want a connection", err)
	}
}

// TestSecondHandshake: an origin that begins another handshake on a connection, as servers do that ask for a visitor's
// certificate at some addresses alone, is answered.
func TestSecondHandshake(t *testing.T) {
	program := testlab.NeedProgram(t, "openssl")
	origin := httptest.NewUnstartedServer(nil)
	origin.StartTLS() // for its certificate
	defer origin.Close()
	key, err := x509.MarshalPKCS8PrivateKey(origin.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "both.pem")
	text := append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: origin.Certificate().Raw})...)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	server := exec.Command(program, "s_server", "-accept", address, "-cert", file, "-key", file, "-tls1_2", "-state")
	say, err := server.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	heard, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	server.Stderr = server.Stdout // has the steps of handshakes
	if err := testlab.Start(t, server); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = server.Process.Kill(), server.Wait() }()
	lines := bufio.NewScanner(heard)
	until := func(want string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), want) {
				return
			}
		}
		t.Fatalf("openssl s_server has ended, and said nothing of %q", want)
	}
	until("ACCEPT")
	roots := x509.NewCertPool()
	roots.AddCert(origin.Certificate())
	c := tls.Client(dialTCP(t, address), OriginTLS{Host: "example.com", Roots: roots}.Config())
	if err := c.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, "first\n"); err != nil {
		t.Fatal(err)
	}
	until("first")
	got := make(chan string, 1)
	go func() {
		text, err := bufio.NewReader(c).ReadString('\n')
		if got <- text; err != nil {
			t.Errorf("after another handshake: %v", err)
			_ = server.Process.Kill() // until waits for it
		}
	}()
	_, _ = io.WriteString(say, "R\n") // its command for another handshake, with a request for a certificate
	until("write finished")
	_, _ = io.WriteString(say, "answer\n")
	if text := <-got; text != "answer\n" {
		t.Errorf("after another handshake, read %q; want the answer", text)
	}
}

// TestHTTP11Required: a request that an origin takes over HTTP/1.1 only is sent over that, with its body.
func TestHTTP11Required(t *testing.T) {
	origin := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("the origin got %q, and %v; want the whole body", body, err)
		}
		fmt.Fprintf(w, "%s %s", r.Proto, body)
	}))
	origin.TLS = &tls.Config{NextProtos: []string{"h2", "http/1.1"}}
	serve := func(_ *http.Server, c *tls.Conn, _ http.Handler) {
		defer c.Close()
		if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
			return // a connection that was not used
		}
		f := http2.NewFramer(c, c)
		_ = f.WriteSettings()
		for {
			frame, err := f.ReadFrame()
			if err != nil {
				return
			}
			if h, ok := frame.(*http2.HeadersFrame); ok {
				_ = f.WriteRSTStream(h.StreamID, http2.ErrCodeHTTP11Required)
			}
		}
	}
	origin.Config.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){"h2": serve}
	origin.StartTLS()
	defer origin.Close()
	u := NewUpstream(UpstreamConfig{AnyCertificate: true})
	defer u.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, origin.URL+"/", strings.NewReader("order"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := u.RoundTrip(r)
	if err != nil {
		t.Fatalf("%v; want an answer over HTTP/1.1", err)
	}
	defer resp.Body.Close()
	if got, err := io.ReadAll(resp.Body); string(got) != "HTTP/1.1 order" || err != nil {
		t.Errorf("%s, %v; want HTTP/1.1 order", got, err)
	}
}

// TestShutdown: a request that an origin has accepted before it shuts its connection down (GOAWAY), and does not answer,
// is sent again, as browsers do.
func TestShutdown(t *testing.T) {
	origin := httptest.NewUnstartedServer(nil)
	origin.TLS = &tls.Config{NextProtos: []string{"h2"}}
	var asked atomic.Int32
	serve := func(_ *http.Server, c *tls.Conn, _ http.Handler) {
		defer c.Close()
		if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
			return // a connection that was not used
		}
		f := http2.NewFramer(c, c)
		_ = f.WriteSettings()
		for {
			frame, err := f.ReadFrame()
			if err != nil {
				return
			}
			h, ok := frame.(*http2.HeadersFrame)
			if !ok {
				continue
			}
			if asked.Add(1) == 2 {
				_ = f.WriteGoAway(1<<31-1, http2.ErrCodeNo, nil)
				return
			}
			const indexed200 = "\x88" // :status of HPACK's static table
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: h.StreamID, BlockFragment: []byte(indexed200), EndHeaders: true, EndStream: true})
		}
	}
	origin.Config.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){"h2": serve}
	origin.StartTLS()
	defer origin.Close()
	u := NewUpstream(UpstreamConfig{AnyCertificate: true})
	defer u.Close()
	for range 2 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, origin.URL+"/", strings.NewReader("order"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := u.RoundTrip(r)
		if err != nil {
			t.Fatalf("%v; want an answer on another connection", err)
		}
		_ = resp.Body.Close()
	}
	if n := asked.Load(); n != 3 {
		t.Errorf("the origin was asked %d times, want 3", n)
	}
}

// TestVisitorsCertificate: who reads that an origin of TLS 1.2 refuses us learns that it wants a visitor's certificate.
func TestVisitorsCertificate(t *testing.T) {
	origin := httptest.NewUnstartedServer(nil)
	origin.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MaxVersion: tls.VersionTLS12}
	origin.Config.ErrorLog = log.New(io.Discard, "", 0)
	origin.StartTLS()
	defer origin.Close()
	_, err := OriginTLS{Any: true}.Handshake(t.Context(), dialTCP(t, origin.Listener.Addr().String()))
	if !errors.Is(err, errNoCertificate) {
		t.Errorf("%v; want that the origin asks for a certificate", err)
	}
}

// TestNegativeSerial: the certificates that some devices make for themselves have a negative serial number.
func TestNegativeSerial(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der := signed(t, "device.test", key, nil, nil, "").Raw
	serial := bytes.Index(der, []byte{2, 8}) // an INTEGER of 8 bytes, since it is a time in ns
	der[serial+2] |= 0x80                    // which spoils the signature
	origin := httptest.NewUnstartedServer(nil)
	origin.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	origin.StartTLS()
	defer origin.Close()
	c, err := OriginTLS{Any: true}.Handshake(t.Context(), dialTCP(t, origin.Listener.Addr().String()))
	if err != nil {
		t.Fatalf("%v; want a connection", err)
	}
	if c.ConnectionState().PeerCertificates[0].SerialNumber.Sign() >= 0 {
		t.Error("the serial number of the test is not negative")
	}
}

// TestSpareThatEnded: a connection that was made to learn what an origin speaks, and that the origin has ended since, is
// not used. So it is after a preconnect.
func TestSpareThatEnded(t *testing.T) {
	for _, protocol := range []string{"http/1.1", "h2"} {
		origin := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
		origin.EnableHTTP2 = protocol == "h2"
		origin.StartTLS()
		u := NewUpstream(UpstreamConfig{AnyCertificate: true})
		if got := u.Protocols(origin.Listener.Addr().String()); got[0] != protocol {
			t.Errorf("Protocols() = %q, want %s first", got, protocol)
		}
		origin.CloseClientConnections()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, origin.URL, strings.NewReader("order"))
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := u.RoundTrip(r); err != nil {
			t.Errorf("%s: after the origin ended its connection: %v", protocol, err)
		} else if err := resp.Body.Close(); err != nil {
			t.Error(err)
		}
		u.Close()
		origin.Close()
	}
}
