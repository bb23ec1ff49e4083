package samplesite

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"eidetic/internal/rigs/testlab"
)

func TestMain(m *testing.M) { testlab.NoLeaks(m) }

// origins is a site served on loopback, with a map from its addresses to loopback ones.
type origins struct {
	mu        sync.Mutex
	at        map[string]string // "tcp 203.0.113.10:443" → "127.0.0.1:34567"
	authority *Authority
	roots     *x509.CertPool
}

// noThink does not wait.
func noThink(context.Context, time.Duration) error { return nil }

// start serves the options' site until the test ends.
func start(t *testing.T, opt Options) *origins {
	t.Helper()
	site, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	o := &origins{at: map[string]string{}, roots: x509.NewCertPool()}
	if o.authority, err = NewAuthority(time.Now()); err != nil {
		t.Fatal(err)
	}
	if !o.roots.AppendCertsFromPEM(o.authority.RootPEM()) {
		t.Fatal("the root is not PEM")
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- Serve(ctx, Config{Site: site, Certificates: o.authority.Certificate, Ready: func() { close(ready) },
			Listen: o.listen, ListenPacket: o.listenPacket})
	}()
	select {
	case <-ready:
	case err := <-done:
		t.Fatalf("Serve ended before it was ready: %v", err)
	}
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return o
}

func (o *origins) listen(ctx context.Context, network, address string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, network, "127.0.0.1:0")
	if err == nil {
		o.mu.Lock()
		o.at[network+" "+address] = l.Addr().String()
		o.mu.Unlock()
	}
	return l, err
}

func (o *origins) listenPacket(ctx context.Context, network, address string) (net.PacketConn, error) {
	p, err := new(net.ListenConfig).ListenPacket(ctx, network, "127.0.0.1:0")
	if err == nil {
		o.mu.Lock()
		o.at[network+" "+address] = p.LocalAddr().String()
		o.mu.Unlock()
	}
	return p, err
}

// client makes TLS connections to the origins as a browser does: no transparent gzip, and h2 if offered.
func (o *origins) client(t *testing.T) *http.Client {
	tr := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: o.roots}, DisableCompression: true, ForceAttemptHTTP2: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			host, port, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			to := o.at[fmt.Sprintf("tcp %s:%s", Hosts()[host], port)]
			return new(net.Dialer).DialContext(ctx, network, to)
		},
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// ask sends one request; header holds pairs of name and value.
func ask(t *testing.T, c *http.Client, verb, url string, body io.Reader, header ...string) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), verb, url, body)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", verb, url, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: body: %v", verb, url, err)
	}
	return resp, b
}

// seeded is a reproducible random source.
func seeded(n uint64) *rand.Rand { return rand.New(rand.NewPCG(n, n)) }

// hostPorts lists the address of each host's port 443, for a browser's resolver rules.
func (o *origins) hostPorts() map[string]string {
	out := map[string]string{}
	for h, a := range maps.All(Hosts()) {
		out[h] = o.at[fmt.Sprintf("tcp %s:443", a)]
	}
	return out
}
