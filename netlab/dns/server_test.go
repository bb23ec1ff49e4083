package dns

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
)

func TestMain(m *testing.M) { testlab.NoLeaks(m) }

var (
	gateway = netip.MustParseAddr("192.168.77.1")
	v4      = netip.MustParsePrefix("198.18.0.0/15")
	v6      = netip.MustParsePrefix("fd00:198:18::/48")
)

// started is a server with its log.
type started struct {
	*Server
	pool    *Pool
	mu      sync.Mutex
	queries []Query
}

func start(t testing.TB, prefix6 netip.Prefix, change func(*Config)) *started {
	t.Helper()
	pool, err := NewPool(v4, prefix6)
	if err != nil {
		t.Fatal(err)
	}
	s := &started{pool: pool}
	c := Config{
		Addr: "127.0.0.1:0", Pool: pool, Box: map[string][]netip.Addr{"box.test": {gateway}},
		Fallback: map[string][]netip.Addr{"captive.apple.com": {gateway}, "*.pool.time.test": {gateway}},
		Clock:    lab.Monotonic,
		OnQuery: func(q Query) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.queries = append(s.queries, q)
		},
	}
	if change != nil {
		change(&c)
	}
	if s.Server, err = Listen(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func (s *started) ask(t testing.TB, network, name string, qtype uint16) *dns.Msg {
	t.Helper()
	m := new(dns.Msg).SetQuestion(dns.Fqdn(name), qtype)
	m.SetEdns0(1232, false)
	c := dns.Client{Net: network, Timeout: testlab.Hang}
	r, _, err := c.Exchange(m, s.Addr().String())
	if err != nil {
		t.Fatalf("%s %s over %s: %v", name, dns.TypeToString[qtype], network, err)
	}
	return r
}

func addrs(m *dns.Msg) []netip.Addr {
	var out []netip.Addr
	for _, rr := range m.Answer {
		if a, ok := address(rr); ok {
			out = append(out, a)
		}
	}
	return out
}

func table() *Table {
	t := NewTable()
	for _, h := range [][2]string{
		{"www.shop.test", "203.0.113.1"}, {"www.shop.test", "2001:db8::1"}, {"cdn.shop.test", "203.0.113.1"},
		{"api.shop.test", "203.0.113.2"}, {"six.shop.test", "2001:db8::6"},
	} {
		t.AddHost(h[0], netip.MustParseAddr(h[1]))
	}
	t.AddAnswer("none.shop.test", "A", "NOERROR", nil)
	t.AddAnswer("gone.shop.test", "A", "NXDOMAIN", nil)
	t.AddAnswer("alias.shop.test", "A", "NOERROR", []string{"alias.shop.test. 9 IN CNAME edge.shop.test.",
		"edge.shop.test. 9 IN A 203.0.113.7"})
	t.AddAnswer("api.shop.test", "HTTPS", "NOERROR", []string{
		`api.shop.test. 9 IN HTTPS 1 . alpn="h3,h2" ipv4hint="203.0.113.2" ech="AEX+DQBBZAAgACCdKYyIdDqYZa+qv4ifJVjGBQWOUnXUPMwR4eYfSg6RVAAEAAEAAQASY2xvdWRmbGFyZS1lY2guY29tAAA="`,
		`api.shop.test. 9 IN HTTPS 2 elsewhere.test. port="8443"`,
	})
	t.AddAnswer("2.113.0.203.in-addr.arpa", "PTR", "NOERROR", []string{"2.113.0.203.in-addr.arpa. 9 IN PTR host.provider.test."})
	return t
}

func TestTableAnswersWithSyntheticAddresses(t *testing.T) {
	for _, network := range []string{"udp", "tcp"} {
		s := start(t, v6, nil)
		s.Use(table())
		www := addrs(s.ask(t, network, "WWW.Shop.Test", dns.TypeA))
		cdn := addrs(s.ask(t, network, "cdn.shop.test", dns.TypeA))
		api := addrs(s.ask(t, network, "api.shop.test", dns.TypeA))
		if len(www) != 1 || !v4.Contains(www[0]) {
			t.Fatalf("%s: www has %v, want one address of %v", network, www, v4)
		}
		if d := cmp.Diff(www, cdn, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); d != "" {
			t.Errorf("%s: two names of one origin address got different synthetic addresses: %s", network, d)
		}
		if len(api) != 1 || api[0] == www[0] {
			t.Errorf("%s: api has %v, want an address of its own", network, api)
		}
		six := addrs(s.ask(t, network, "www.shop.test", dns.TypeAAAA))
		if len(six) != 1 || !v6.Contains(six[0]) {
			t.Errorf("%s: AAAA is %v, want one address of %v", network, six, v6)
		}
		if origin, ok := s.pool.Origin(api[0]); !ok || origin != netip.MustParseAddr("203.0.113.2") {
			t.Errorf("%s: %v stands for %v, want 203.0.113.2", network, api[0], origin)
		}
	}
}

func TestRules(t *testing.T) {
	s := start(t, netip.Prefix{}, nil)
	s.Use(table())
	for _, c := range []struct {
		name    string
		qtype   uint16
		rcode   int
		answers int
		source  string
	}{
		{"box.test", dns.TypeA, dns.RcodeSuccess, 1, "box"},
		{"box.test", dns.TypeAAAA, dns.RcodeSuccess, 0, "box"},
		{"captive.apple.com", dns.TypeA, dns.RcodeSuccess, 1, "box"},
		{"use-application-dns.net", dns.TypeA, dns.RcodeNameError, 0, "policy"},
		{"2.android.pool.time.test", dns.TypeA, dns.RcodeSuccess, 1, "box"},
		{"pool.time.test", dns.TypeA, dns.RcodeSuccess, 0, "none"},
		{"box.test", dns.TypeANY, dns.RcodeSuccess, 1, "box"},
		{"alias.shop.test", dns.TypeANY, dns.RcodeSuccess, 2, "table"},
		{"www.shop.test", dns.TypeHTTPS, dns.RcodeSuccess, 0, "table"},
		{"www.shop.test", dns.TypeAAAA, dns.RcodeSuccess, 0, "policy"},
		{"six.shop.test", dns.TypeA, dns.RcodeSuccess, 1, "table"},
		{"none.shop.test", dns.TypeA, dns.RcodeSuccess, 0, "table"},
		{"unknown.test", dns.TypeA, dns.RcodeNameError, 0, "none"},
		{"unknown.test", dns.TypeHTTPS, dns.RcodeNameError, 0, "none"},
		{"gone.shop.test", dns.TypeA, dns.RcodeNameError, 0, "table"},
		{"gone.shop.test", dns.TypeHTTPS, dns.RcodeNameError, 0, "table"},
		{"alias.shop.test", dns.TypeA, dns.RcodeSuccess, 2, "table"},
		{"alias.shop.test", dns.TypeMX, dns.RcodeSuccess, 0, "table"},
		{"1.77.168.192.in-addr.arpa", dns.TypePTR, dns.RcodeSuccess, 1, "box"},
		{"8.8.8.8.in-addr.arpa", dns.TypePTR, dns.RcodeNameError, 0, "policy"},
	} {
		r := s.ask(t, "udp", c.name, c.qtype)
		if r.Rcode != c.rcode || len(r.Answer) != c.answers {
			t.Errorf("%s %s: %s with %d answers, want %s with %d", c.name, dns.TypeToString[c.qtype],
				dns.RcodeToString[r.Rcode], len(r.Answer), dns.RcodeToString[c.rcode], c.answers)
		}
		if r.IsEdns0() == nil {
			t.Errorf("%s: the answer to a query with EDNS has none", c.name)
		}
		if c.answers == 0 { // a device forgets it before the next trial (RFC 2308, 5)
			if soa, ok := append(r.Ns, nil)[0].(*dns.SOA); !ok || min(soa.Hdr.Ttl, soa.Minttl) > 5 {
				t.Errorf("%s %s: no such name for %v; want a start of authority that keeps it for 5 s", c.name, dns.TypeToString[c.qtype], r.Ns)
			}
		}
	}
	s.Use(nil)
	if r := s.ask(t, "udp", "www.shop.test", dns.TypeA); r.Rcode != dns.RcodeNameError {
		t.Errorf("without a source www.shop.test is %s, want NXDOMAIN", dns.RcodeToString[r.Rcode])
	}
	_ = s.Close() // again by the clean-up: must do no harm, and flushes the log
	// A query is logged after its answer, so that the order of the log can differ.
	line := func(name string) (q Query) {
		if i := slices.IndexFunc(s.queries, func(q Query) bool { return q.Name == name && q.Type == "A" }); i >= 0 {
			q = s.queries[i]
		}
		return q
	}
	if len(s.queries) != 21 || line("box.test").Source != "box" || !slices.Contains(line("six.shop.test").Origins,
		netip.MustParseAddr("2001:db8::6")) {
		t.Errorf(
			"the log has %d queries, want 21 with box.test from the box and six.shop.test with its origin: %+v",
			len(s.queries),
			s.queries,
		)
	}
}

func TestServiceRecordsSayWhatIsServed(t *testing.T) {
	for http3, want := range map[bool]string{
		true:  `api.shop.test.	60	IN	HTTPS	1 . alpn="h3,h2"`,
		false: `api.shop.test.	60	IN	HTTPS	1 . alpn="h2"`,
	} {
		s := start(t, v6, func(c *Config) { c.HTTP3 = func(host string) bool { return http3 && host == "api.shop.test" } })
		s.Use(table())
		r := s.ask(t, "udp", "api.shop.test", dns.TypeHTTPS)
		if len(r.Answer) != 1 || r.Answer[0].String() != want {
			t.Errorf("with HTTP/3 %v the records are %v, want only %s", http3, r.Answer, want)
		}
	}
}

func TestPointersOfSyntheticAddresses(t *testing.T) {
	s := start(t, v6, nil)
	s.Use(table())
	for name, want := range map[string]string{"api.shop.test": "host.provider.test.", "cdn.shop.test": "www.shop.test."} {
		for _, qtype := range []uint16{dns.TypeA, dns.TypeAAAA} {
			for _, a := range addrs(s.ask(t, "udp", name, qtype)) {
				arpa, err := dns.ReverseAddr(a.String())
				if err != nil {
					t.Fatal(err)
				}
				r := s.ask(t, "tcp", arpa, dns.TypePTR)
				if len(r.Answer) != 1 || r.Answer[0].(*dns.PTR).Ptr != want {
					t.Errorf("%s has the address %v, whose name is %v, want %s", name, a, r.Answer, want)
				}
			}
		}
	}
}

func TestReversed(t *testing.T) {
	for _, text := range []string{"192.0.2.7", "fd00:198:18::abcd:1"} {
		want := netip.MustParseAddr(text)
		arpa, err := dns.ReverseAddr(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := reversed(Canonical(arpa)); !ok || got != want {
			t.Errorf("reversed(%s) = %v, want %v", arpa, got, want)
		}
	}
	for _, name := range []string{"in-addr.arpa", "1.2.3.in-addr.arpa", "256.1.1.1.in-addr.arpa", "x.ip6.arpa", "www.shop.test"} {
		if a, ok := reversed(name); ok {
			t.Errorf("reversed(%s) = %v, want none", name, a)
		}
	}
}

func TestDelayHoldsTheAnswer(t *testing.T) {
	const want = 60 * time.Millisecond
	s := start(t, netip.Prefix{}, func(c *Config) { c.Delay = func(up, down int) time.Duration { return want } })
	var all []time.Duration
	for range 5 { // a busy machine is late now and then
		begin := time.Now()
		s.ask(t, "udp", "box.test", dns.TypeA)
		d := time.Since(begin)
		all = append(all, d)
		if d < want {
			break
		}
		if d <= want+100*time.Millisecond {
			return
		}
	}
	t.Errorf("the answer took %v, want %v", all, want)
}

func TestForwarderAsksOnceAndRecords(t *testing.T) {
	upstream := fakeResolver(t)
	var mu sync.Mutex
	var recorded []Recorded
	f := NewForwarder(upstream, nil, func(r Recorded) {
		mu.Lock()
		defer mu.Unlock()
		recorded = append(recorded, r)
	})
	s := start(t, netip.Prefix{}, nil)
	s.Use(f)
	first := addrs(s.ask(t, "udp", "www.live.test", dns.TypeA))
	again := addrs(s.ask(t, "tcp", "www.live.test", dns.TypeA))
	if len(first) != 2 || first[0] != again[0] {
		t.Fatalf("answers %v and %v, want the same two", first, again)
	}
	if r := s.ask(t, "udp", "gone.test", dns.TypeA); r.Rcode != dns.RcodeNameError {
		t.Errorf("gone.test is %s, want NXDOMAIN", dns.RcodeToString[r.Rcode])
	}
	for range 2 { // and recorded once
		if r := s.ask(t, "udp", "broken.test", dns.TypeA); r.Rcode != dns.RcodeServerFailure {
			t.Errorf("broken.test is %s, want SERVFAIL", dns.RcodeToString[r.Rcode])
		}
	}
	if r := s.ask(t, "udp", "www.live.test", dns.TypeHTTPS); r.Rcode != dns.RcodeSuccess || len(r.Answer) != 1 {
		t.Errorf("the answer for HTTPS is %v, want only the alias", r.Answer)
	}
	mu.Lock()
	said := slices.Clone(recorded)
	mu.Unlock()
	if len(said) != 4 || said[0].Name != "www.live.test" || len(said[0].Records) != 3 || said[1].RCode != "NXDOMAIN" ||
		said[2].RCode != "SERVFAIL" {
		t.Errorf("recorded %+v, want the chain of www.live.test, the NXDOMAIN and the SERVFAIL", said)
	}
	got, err := f.Addrs(t.Context(), "www.live.test")
	if err != nil || len(got) != 2 || got[0] != netip.MustParseAddr("203.0.113.9") {
		t.Errorf("Addrs() = %v, %v; want the origins", got, err)
	}
	if _, err := f.Addrs(t.Context(), "gone.test"); err == nil {
		t.Error("Addrs() of a name that does not exist = nil, want an error")
	}
	if _, err := f.Addrs(t.Context(), "broken.test"); err == nil || !strings.Contains(err.Error(), "SERVFAIL") {
		t.Errorf("Addrs() of a name for which the resolver fails = %v, want an error that says SERVFAIL", err)
	}
	var inRecords []string
	for _, line := range said[0].Records {
		fields := strings.Fields(line) // a record in zone-file form ends with what it says
		inRecords = append(inRecords, fields[len(fields)-1])
	}
	if d := cmp.Diff([]string{"edge.live.test.", "203.0.113.9", "203.0.113.10"}, inRecords); d != "" {
		t.Errorf("the answer's name and addresses in the records (-want +got):\n%s", d)
	}
}

// TestFailuresAreReplayed: recorded failures are replayed, unless a later answer or an
// exchange shows that the name exists.
func TestFailuresAreReplayed(t *testing.T) {
	table := NewTable()
	table.AddAnswer("refused.test", "A", "REFUSED", nil)
	table.AddAnswer("failed.test", "A", "SERVFAIL", nil)
	table.AddAnswer("passing.test", "A", "SERVFAIL", nil)
	table.AddAnswer("passing.test", "A", "NOERROR", []string{"passing.test. 5 IN A 203.0.113.7"})
	table.AddAnswer("passing.test", "A", "REFUSED", nil)
	table.AddAnswer("spoken.test", "A", "SERVFAIL", nil)
	table.AddHost("spoken.test", netip.MustParseAddr("203.0.113.8"))
	table.AddAnswer("gone.test", "AAAA", "SERVFAIL", nil)
	table.AddAnswer("gone.test", "A", "NXDOMAIN", nil)
	s := start(t, netip.Prefix{}, nil)
	s.Use(table)
	for name, want := range map[string]int{
		"refused.test": dns.RcodeRefused, "failed.test": dns.RcodeServerFailure, "passing.test": dns.RcodeSuccess,
		"spoken.test": dns.RcodeSuccess, "gone.test": dns.RcodeNameError,
	} {
		r := s.ask(t, "udp", name, dns.TypeA)
		if r.Rcode != want || (len(addrs(r)) == 1) != (want == dns.RcodeSuccess) {
			t.Errorf("%s is %s %v, want %s", name, dns.RcodeToString[r.Rcode], r.Answer, dns.RcodeToString[want])
		}
	}
}

// TestNXDOMAINForOneType: a name that has addresses exists, whatever its server
// answers for other types, in whatever order (RFC 4074, 4.2).
func TestNXDOMAINForOneType(t *testing.T) {
	table := NewTable()
	address := func(name string) { table.AddAnswer(name, "A", "NOERROR", []string{name + ". 5 IN A 203.0.113.7"}) }
	address("before.test")
	table.AddAnswer("before.test", "AAAA", "NXDOMAIN", nil)
	table.AddAnswer("before.test", "HTTPS", "NXDOMAIN", nil)
	table.AddAnswer("after.test", "HTTPS", "NXDOMAIN", nil)
	address("after.test")
	table.AddAnswer("empty.test", "AAAA", "NXDOMAIN", nil)
	table.AddAnswer("empty.test", "A", "NOERROR", nil)
	table.AddAnswer("gone.test", "AAAA", "NXDOMAIN", nil)
	for name, want := range map[string]struct{ rcode, addrs int }{
		"before.test": {dns.RcodeSuccess, 1}, "after.test": {dns.RcodeSuccess, 1}, "empty.test": {dns.RcodeSuccess, 0},
		"gone.test": {dns.RcodeNameError, 0},
	} {
		for _, qtype := range []uint16{dns.TypeA, dns.TypeAAAA, dns.TypeHTTPS} {
			addrs := want.addrs
			if qtype != dns.TypeA {
				addrs = 0
			}
			a, err := table.Lookup(t.Context(), name, qtype)
			if err != nil || a.RCode != want.rcode || len(a.Origins) != addrs {
				t.Errorf("Lookup(%s %s) = %+v, %v; want %+v", name, dns.TypeToString[qtype], a, err, want)
			}
		}
	}
}

// fakeResolver answers for www.live.test with a CNAME, and fails for broken.test.
func fakeResolver(t *testing.T) netip.AddrPort {
	t.Helper()
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ready, done := make(chan struct{}), make(chan struct{})
	srv := &dns.Server{PacketConn: pc, NotifyStartedFunc: func() { close(ready) },
		Handler: dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
			m := new(dns.Msg).SetReply(r)
			switch r.Question[0].Name {
			case "www.live.test.":
				for _, s := range []string{"www.live.test. 5 IN CNAME edge.live.test.", "edge.live.test. 5 IN A 203.0.113.9",
					"edge.live.test. 5 IN A 203.0.113.10"} {
					rr, _ := dns.NewRR(s)
					m.Answer = append(m.Answer, rr)
				}
			case "broken.test.":
				m.Rcode = dns.RcodeServerFailure
			default:
				m.Rcode = dns.RcodeNameError
			}
			_ = w.WriteMsg(m)
		})}
	go func() { _ = srv.ActivateAndServe(); close(done) }()
	<-ready
	t.Cleanup(func() { _ = srv.Shutdown(); <-done })
	return pc.LocalAddr().(*net.UDPAddr).AddrPort()
}

// lossyResolver loses the first packets, and signals each packet.
func lossyResolver(t *testing.T, lose int) (netip.AddrPort, <-chan struct{}) {
	t.Helper()
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	came, done := make(chan struct{}, 10), make(chan struct{})
	go func() {
		defer close(done)
		b := make([]byte, 1500)
		for i := 0; ; i++ {
			n, from, err := pc.ReadFrom(b)
			if err != nil {
				return
			}
			came <- struct{}{}
			m := new(dns.Msg)
			if m.Unpack(b[:n]) != nil || i < lose {
				continue
			}
			rr, _ := dns.NewRR(m.Question[0].Name + " 5 IN A 203.0.113.9")
			answer := new(dns.Msg).SetReply(m)
			answer.Answer = []dns.RR{rr}
			b, _ := answer.Pack()
			_, _ = pc.WriteTo(b, from)
		}
	}()
	t.Cleanup(func() { _ = pc.Close(); <-done })
	return pc.LocalAddr().(*net.UDPAddr).AddrPort(), came
}

func TestLostPacketsAreSentAgain(t *testing.T) {
	resolver, _ := lossyResolver(t, 2)
	f := NewForwarder(resolver, nil, nil)
	f.waits = []time.Duration{50 * time.Millisecond, 50 * time.Millisecond, time.Minute}
	if a, err := f.Lookup(t.Context(), "www.live.test", dns.TypeA); err != nil || len(a.Origins) != 1 {
		t.Errorf("Lookup() = %+v, %v; want one address", a, err)
	}
}

// TestCancelledQueryIsRepeated: when the query that asks the resolver is cancelled, an
// equal query that waits for it asks again.
func TestCancelledQueryIsRepeated(t *testing.T) {
	resolver, came := lossyResolver(t, 1)
	f := NewForwarder(resolver, nil, nil)
	f.waits = []time.Duration{time.Minute}
	first, leave := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := f.Lookup(first, "www.live.test", dns.TypeA)
		ended <- err
	}()
	<-came
	second := make(chan error, 1)
	go func() {
		a, err := f.Lookup(t.Context(), "www.live.test", dns.TypeA)
		if err == nil && len(a.Origins) != 1 {
			t.Errorf("Lookup() = %+v, want one address", a)
		}
		second <- err
	}()
	leave()
	if err := <-ended; err == nil {
		t.Error("the cancelled Lookup() = nil, want an error")
	}
	if err := <-second; err != nil {
		t.Errorf("the waiting Lookup() = %v, want nil", err)
	}
}

func TestListenSaysThatThePortIsTaken(t *testing.T) {
	s := start(t, netip.Prefix{}, nil)
	pool, _ := NewPool(v4, netip.Prefix{})
	if other, err := Listen(Config{Addr: s.Addr().String(), Pool: pool, Clock: lab.Monotonic}); err == nil {
		_ = other.Close()
		t.Error("a second Listen() on the port = nil, want an error")
	}
}

func TestHostilePackets(t *testing.T) {
	s := start(t, netip.Prefix{}, nil)
	c, err := net.Dial("udp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	good, _ := new(dns.Msg).SetQuestion("box.test.", dns.TypeA).Pack()
	for i := range good { // each cut, and each byte turned over
		_, _ = c.Write(good[:i])
		bad := append([]byte(nil), good...)
		bad[i] ^= 0xff
		_, _ = c.Write(bad)
	}
	if got := addrs(s.ask(t, "udp", "box.test", dns.TypeA)); len(got) != 1 {
		t.Errorf("after broken packets box.test has %v, want one address", got)
	}
}

func FuzzQuestion(f *testing.F) {
	for _, q := range []uint16{dns.TypeA, dns.TypeHTTPS, dns.TypeANY} {
		m := new(dns.Msg).SetQuestion("www.shop.test.", q)
		m.SetEdns0(1232, true)
		b, _ := m.Pack()
		f.Add(b)
	}
	f.Add([]byte{0})
	pool, err := NewPool(v4, v6)
	if err != nil {
		f.Fatal(err)
	}
	s := &Server{c: Config{Pool: pool, Clock: lab.Monotonic, Log: slog.New(slog.DiscardHandler)},
		inFlight: make(chan struct{}, 1), ctx: context.Background()}
	s.Use(table())
	f.Fuzz(func(t *testing.T, packet []byte) {
		defer testlab.Input(t)()
		m := new(dns.Msg)
		if m.Unpack(packet) != nil {
			return
		}
		var answers [2]sink // of equal queries
		for i := range answers {
			s.ServeDNS(&answers[i], m)
			answer := new(dns.Msg)
			if err := answer.Unpack(answers[i].packed); err != nil || !answer.Response || answer.Id != m.Id {
				t.Fatalf("the answer to %v is %v (%v), want an answer with the same id", m, answer, err)
			}
		}
		if !bytes.Equal(answers[0].packed, answers[1].packed) {
			t.Fatalf("%v is answered with\n%x, then with\n%x", m, answers[0].packed, answers[1].packed)
		}
	})
}

// sink is a dns.ResponseWriter that keeps the answer.
type sink struct {
	dns.ResponseWriter
	packed []byte
}

func (s *sink) LocalAddr() net.Addr         { return &net.UDPAddr{} }
func (s *sink) RemoteAddr() net.Addr        { return &net.UDPAddr{} }
func (s *sink) Write(b []byte) (int, error) { s.packed = b; return len(b), nil }

// Connections over TCP are bounded: whoever holds many loses the oldest, and a device is answered.
func TestConnectionsAreBounded(t *testing.T) {
	s := start(t, netip.Prefix{}, nil)
	const many = 400
	var open []net.Conn
	for range many {
		c, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		open = append(open, c)
	}
	if r := s.ask(t, "tcp", "box.test", dns.TypeA); r.Rcode != dns.RcodeSuccess {
		t.Errorf("beside %d connections the answer is %s; want NOERROR", many, dns.RcodeToString[r.Rcode])
	}
	// All but the youngest are closed at once, long before the limit of an idle one.
	for i, c := range open[:many-tcpLimits.Local] {
		if err := c.SetReadDeadline(time.Now().Add(testlab.Hang)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("Read() of connection %d = %v; want it closed", i, err)
		}
	}
}
