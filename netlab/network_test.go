package netlab

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	mdns "github.com/miekg/dns"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/netlab/archive"
	"eidetic/netlab/ca"
	"eidetic/netlab/dns"
	"eidetic/netlab/link"
	"eidetic/netlab/nstest"
	"eidetic/netlab/proxy"
	"eidetic/netlab/replay"
)

func TestMain(m *testing.M) { testlab.NoLeaks(m) }

// world is two live origins (one h2, one not), their resolver, and counts of
// what reached them.
type world struct {
	roots    *x509.CertPool
	resolver netip.AddrPort
	mu       sync.Mutex
	hits     int
	down     bool
	servers  map[string]*httptest.Server // by address of the origin
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{roots: x509.NewCertPool(), servers: map[string]*httptest.Server{}}
	handler := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.hits++
		n := w.hits
		w.mu.Unlock()
		rw.Header().Set("Content-Type", "text/plain")
		fmt.Fprintf(rw, "%s %s%s, answer %d", r.Proto, r.Host, r.URL.Path, n)
	})
	authority, err := ca.New(time.Now)
	if err != nil {
		t.Fatal(err)
	}
	w.roots = authority.Pool()
	for addr, h2 := range map[string]bool{"203.0.113.1": true, "203.0.113.2": false} {
		s := httptest.NewUnstartedServer(handler)
		s.EnableHTTP2 = h2
		s.TLS = &tls.Config{GetCertificate: authority.GetCertificate}
		s.StartTLS()
		t.Cleanup(s.Close)
		w.servers[addr] = s
	}
	w.resolver = w.serveNames(t)
	return w
}

func (w *world) serveNames(t *testing.T) netip.AddrPort {
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ready, done := make(chan struct{}), make(chan struct{})
	names := map[string]string{"www.shop.test.": "203.0.113.1", "cdn.shop.test.": "203.0.113.1", "old.shop.test.": "203.0.113.2"}
	s := &mdns.Server{PacketConn: pc, NotifyStartedFunc: func() { close(ready) },
		Handler: mdns.HandlerFunc(func(rw mdns.ResponseWriter, r *mdns.Msg) {
			m := new(mdns.Msg).SetReply(r)
			if a, ok := names[r.Question[0].Name]; !ok {
				m.Rcode = mdns.RcodeNameError
			} else if r.Question[0].Qtype == mdns.TypeA {
				rr, _ := mdns.NewRR(r.Question[0].Name + " 30 IN A " + a)
				m.Answer = append(m.Answer, rr)
			}
			_ = rw.WriteMsg(m)
		})}
	go func() { _ = s.ActivateAndServe(); close(done) }()
	<-ready
	t.Cleanup(func() { _ = s.Shutdown(); <-done })
	return pc.LocalAddr().(*net.UDPAddr).AddrPort()
}

// dial connects to the servers of the origins' addresses, until the world is down.
func (w *world) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	w.mu.Lock()
	down := w.down
	w.mu.Unlock()
	if down {
		return nil, errors.New("the world is down")
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	if s := w.servers[host]; s != nil {
		addr = s.Listener.Addr().String()
	}
	return new(net.Dialer).DialContext(ctx, network, addr)
}

// device asks the box's name server and connects to the answer. Where the synthetic
// addresses are not routed it connects to the listeners instead.
type device struct {
	http.Client
	mu    sync.Mutex
	conns map[string]int // dials by address
}

func newDevice(t *testing.T, n *Network, authority *ca.Authority, routed bool) *device {
	d := &device{conns: map[string]int{}}
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, n.Addrs().DNS.String())
	}}
	tr := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: authority.Pool()}, ForceAttemptHTTP2: true, DisableCompression: true,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			host, port, err := net.SplitHostPort(addr)
			if err != nil {
				return nil, err
			}
			addrs, err := resolver.LookupNetIP(ctx, "ip4", host)
			if err != nil {
				return nil, err
			}
			to := net.JoinHostPort(addrs[0].Unmap().String(), port)
			d.mu.Lock()
			d.conns[to]++
			d.mu.Unlock()
			if !routed {
				to = n.Addrs().HTTPS.String()
				if port == "80" {
					to = n.Addrs().HTTP.String()
				}
			}
			return new(net.Dialer).DialContext(ctx, network, to)
		},
	}
	t.Cleanup(tr.CloseIdleConnections)
	d.Client = http.Client{Transport: tr, Timeout: 2 * time.Minute}
	return d
}

func (d *device) get(t *testing.T, url string) (status int, body, proto string) {
	t.Helper()
	r, err := d.Get(url)
	if err != nil {
		t.Fatalf("GET %s: %v", url, err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatalf("GET %s: %v", url, err)
	}
	return r.StatusCode, string(b), r.Proto
}

func startNetwork(t *testing.T, change func(*Config)) (*Network, *ca.Authority) {
	t.Helper()
	authority, err := ca.New(time.Now)
	if err != nil {
		t.Fatal(err)
	}
	c := Config{
		Gateway: netip.MustParseAddr("192.168.77.1"), CA: authority, Clock: lab.Monotonic,
		HTTPAddr: "127.0.0.1:0", HTTPSAddr: "127.0.0.1:0", DNSAddr: "127.0.0.1:0", ProxyAddr: "127.0.0.1:0",
	}
	if change != nil {
		change(&c)
	}
	n, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return n, authority
}

var urls = []string{"https://www.shop.test/", "https://www.shop.test/a", "https://cdn.shop.test/b",
	"https://old.shop.test/c", "https://www.shop.test/"}

func TestRecordThenReplay(t *testing.T) {
	recordThenReplay(t, false)
}

// TestRecordThenReplayByAnyIP does the same in a namespace, where the device
// connects to the synthetic addresses themselves.
func TestRecordThenReplayByAnyIP(t *testing.T) {
	if nstest.Inside(t) {
		recordThenReplay(t, true)
	}
}

func recordThenReplay(t *testing.T, routed bool) {
	w := newWorld(t)
	var mu sync.Mutex
	var queries []dns.Query
	if routed {
		nstest.Here(t).Address(t, "lo", "192.168.77.1/32")
	}
	n, authority := startNetwork(t, func(c *Config) {
		c.Upstream = &proxy.UpstreamConfig{Resolver: w.resolver, Roots: w.roots, DialContext: w.dial}
		c.OnQuery = func(q dns.Query) { mu.Lock(); queries = append(queries, q); mu.Unlock() }
		if routed {
			c.Routes, c.HTTPAddr, c.HTTPSAddr = true, "0.0.0.0:80", "0.0.0.0:443"
		}
	})
	path := filepath.Join(t.TempDir(), "shop.wacz")
	aw, err := archive.Create(path, archive.CreateOptions{Software: "test", Wall: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Record(t.Context(), aw, replay.RecordOptions{Wall: time.Now}); err != nil {
		t.Fatal(err)
	}
	d := newDevice(t, n, authority, routed)
	var live []string
	for _, u := range urls {
		status, body, proto := d.get(t, u)
		if status != 200 {
			t.Fatalf("recording %s: %d %s", u, status, body)
		}
		live = append(live, proto+" "+body)
	}
	d.CloseIdleConnections()
	n.Disarm()
	if err := aw.Close(); err != nil {
		t.Fatal(err)
	}
	if status, _, _ := d.get(t, "https://box.test/"); status != 200 {
		t.Errorf("box.test answers %d when nothing is armed", status)
	}

	w.mu.Lock()
	w.down = true
	hits := w.hits
	w.mu.Unlock()
	a, err := archive.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range a.Exchanges() {
		t.Log(e.Order, e.Method, e.URL, e.Protocol, e.Status, e.Truncated, len(e.Response.Body), e.Server)
	}
	for trial := range 3 {
		s, err := n.Replay(t.Context(), a, replay.Options{Wall: time.Now(), Timing: replay.Timing{Mode: replay.TimingNone}})
		if err != nil {
			t.Fatal(err)
		}
		d := newDevice(t, n, authority, routed)
		for i, u := range urls {
			if _, body, proto := d.get(t, u); proto+" "+body != live[i] {
				t.Errorf("trial %d, request %d: %q, want %q, as recorded", trial, i, proto+" "+body, live[i])
			}
		}
		if status, _, _ := d.get(t, "https://www.shop.test/unknown"); status != http.StatusNotFound {
			t.Errorf("trial %d: a page that was not recorded has status %d, want 404", trial, status)
		}
		if st := s.Stats(); st.Misses != 1 {
			t.Errorf("trial %d: %d misses, want 1", trial, st.Misses)
		}
		if _, err := d.Get("https://unknown.test/"); err == nil {
			t.Error("a host that was not recorded has an address, want NXDOMAIN")
		}
		d.mu.Lock()
		if len(d.conns) != 2 {
			t.Errorf("trial %d: connected to %v, want www and cdn at one address and old at another", trial, d.conns)
		}
		d.mu.Unlock()
		d.CloseIdleConnections()
	}
	w.mu.Lock()
	if w.hits != hits {
		t.Errorf("%d requests reached the origins while replaying, want none", w.hits-hits)
	}
	w.mu.Unlock()
	mu.Lock()
	defer mu.Unlock()
	if len(queries) == 0 || len(queries[0].Origins) == 0 {
		t.Errorf("the DNS log is %+v", queries)
	}
}

// TestPreparesOnce: several trials of one archive prepare it once.
func TestPreparesOnce(t *testing.T) {
	n, _ := startNetwork(t, nil)
	a := archive.New([]*lab.Exchange{{ID: "1", Method: "GET", URL: "https://www.shop.test:8443/", Status: 200,
		Protocol: "h2"}}, nil, nil, archive.CreateOptions{Wall: time.Now()})
	b := archive.New(nil, nil, nil, archive.CreateOptions{Wall: time.Now()})
	arm := func(a *archive.Archive, seed uint64) *replay.Prepared {
		t.Helper()
		if _, err := n.Replay(t.Context(), a, replay.Options{Seed: seed}); err != nil {
			t.Fatal(err)
		}
		return n.prepared.replay
	}
	first := arm(a, 1)
	if len(n.prepared.ports) != 1 || n.prepared.ports[0] != 8443 {
		t.Errorf("the ports of the archive are %v", n.prepared.ports)
	}
	n.Disarm()
	if arm(a, 1) != first {
		t.Error("the same archive was prepared again")
	}
	if arm(a, 2) == first {
		t.Error("another seed made the same script, want another one")
	}
	if arm(b, 2) == nil || len(n.prepared.ports) != 0 {
		t.Error("another archive was not prepared")
	}
}

// While a recording is replayed there are certificates for its names, for those that it looked up and for the box;
// whoever asks for another is a miss.
func TestCertificatesOfARecording(t *testing.T) {
	n, authority := startNetwork(t, nil)
	a := archive.New([]*lab.Exchange{{
		Method: "GET", URL: "https://www.shop.test/", Protocol: "http/1.1", Status: 200,
	}}, []archive.DNS{{Name: "cdn.shop.test", Type: "A", RCode: "NOERROR", Records: []string{"cdn.shop.test. 60 IN A 203.0.113.9"}}}, nil,
		archive.CreateOptions{})
	var mu sync.Mutex
	var missed []string
	s, err := n.Replay(t.Context(), a, replay.Options{Wall: time.Now(), Log: func(l lab.Served) {
		mu.Lock()
		defer mu.Unlock()
		missed = append(missed, string(l.Stage)+" "+l.Method+" "+l.URL)
	}})
	if err != nil {
		t.Fatal(err)
	}
	handshake := func(name string) error {
		c, err := tls.Dial("tcp", n.Addrs().HTTPS.String(), &tls.Config{RootCAs: authority.Pool(), ServerName: name})
		if err == nil {
			err = c.Close()
		}
		return err
	}
	for name, known := range map[string]bool{
		"www.shop.test": true, "WWW.shop.test": true, "cdn.shop.test": true, BoxHost: true, "captive.apple.com": true,
		"bank.example": false, "shop.test": false, "x.www.shop.test": false,
	} {
		if err := handshake(name); (err == nil) != known {
			t.Errorf("a handshake for %s: %v; want a certificate: %v", name, err, known)
		}
	}
	mu.Lock()
	slices.Sort(missed)
	got := strings.Join(missed, ", ")
	mu.Unlock()
	want := "miss CONNECT https://bank.example/, miss CONNECT https://shop.test/, miss CONNECT https://x.www.shop.test/"
	if got != want || s.Stats().Misses != 3 {
		t.Errorf("the log has %s, and %d misses are counted; want %s", got, s.Stats().Misses, want)
	}
	n.Disarm()
	if err := handshake("bank.example"); err != nil {
		t.Errorf("a handshake when nothing is replayed: %v; want the page that says so", err)
	}
}

func TestNothingArmed(t *testing.T) {
	n, authority := startNetwork(t, nil)
	d := newDevice(t, n, authority, false)
	if status, body, _ := d.get(t, "http://box.test/sync"); status != 200 || !strings.Contains(body, "#00ff00") {
		t.Errorf("the synchronisation page has status %d: %s", status, body)
	}
	if status, _, _ := d.get(t, "http://captive.apple.com/hotspot-detect.html"); status != 200 {
		t.Errorf("a phone's probe has status %d, want 204", status)
	}
	r, err := http.NewRequest("GET", "http://"+n.Addrs().HTTP.String()+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "www.shop.test"
	resp, err := d.Do(r)
	if err == nil {
		resp.Body.Close()
	}
	_, err = n.Record(t.Context(), nil, replay.RecordOptions{Wall: time.Now})
	if err == nil || !strings.Contains(err.Error(), "Upstream") {
		t.Errorf("Record() without Config.Upstream = %v, want an error", err)
	}
	e := n.Environment()
	if e.CongestionControl != "cubic" || e.LinkBackEnd != "native" || e.Upstream {
		t.Errorf("Environment() = %+v; want cubic, the link native, no upstream", e)
	}
	p, err := link.Parse("rtt=40ms")
	if err != nil {
		t.Fatal(err)
	}
	if err := n.SetLink(p); err != nil {
		t.Fatal(err)
	}
	d.CloseIdleConnections()
	begin := time.Now()
	d.get(t, "http://box.test/red")
	if took := time.Since(begin); took < 120*time.Millisecond { // DNS, handshake, request
		t.Errorf("over a link of 40 ms a page took %v, want at least 120 ms", took)
	}
	if r := n.LinkReport(); r.Backend != "conn" || r.Down.Bytes == 0 {
		t.Errorf("LinkReport() = %+v", r)
	}
}

func TestStartRefuses(t *testing.T) {
	authority, err := ca.New(time.Now)
	if err != nil {
		t.Fatal(err)
	}
	good := Config{Gateway: netip.MustParseAddr("192.168.77.1"), CA: authority, Clock: lab.Monotonic}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for says, change := range map[string]func(*Config){
		"gateway":     func(c *Config) { c.Gateway = netip.Addr{} },
		"authority":   func(c *Config) { c.CA = nil },
		"198.18":      func(c *Config) { c.Synthetic = netip.MustParsePrefix("10.0.0.0/30") },
		"ss -ltnp":    func(c *Config) { c.HTTPAddr, c.ProxyAddr = "127.0.0.1:0", taken.Addr().String() },
		"name server": func(c *Config) { c.DNSAddr = taken.Addr().String() },
		"warp":        func(c *Config) { c.HTTPAddr, c.CongestionControl = "127.0.0.1:0", "warp" },
	} {
		c := good
		change(&c)
		n, err := Start(t.Context(), c)
		if err == nil {
			_ = n.Close()
		}
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("Start() = %v, want an error that says %q", err, says)
		}
	}
}

// TestWaits: what a device asks before the network is armed waits, and is answered from the recording then.
func TestWaits(t *testing.T) {
	authority, err := ca.New(time.Now)
	if err != nil {
		t.Fatal(err)
	}
	n, err := Start(t.Context(), Config{
		Gateway: netip.MustParseAddr("192.168.77.1"), HTTPAddr: "127.0.0.1:0", CA: authority, Clock: lab.Monotonic, Waits: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	c, err := net.Dial("tcp", n.Addrs().HTTP.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(testlab.Hang))
	if _, err := io.WriteString(c, "GET /early HTTP/1.1\r\nHost: early.test\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	e := &lab.Exchange{Method: "GET", URL: "http://early.test/early", Status: 200, Response: lab.Message{Body: []byte("recorded")}}
	if _, err := n.Replay(t.Context(), archive.New([]*lab.Exchange{e}, nil, nil, archive.CreateOptions{}), replay.Options{}); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(c); err != nil || !strings.Contains(string(got), "recorded") {
		t.Errorf("the early request gets %q, %v; want what was recorded", got, err)
	}
}
