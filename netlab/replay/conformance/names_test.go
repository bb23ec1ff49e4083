package conformance

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	mdns "github.com/miekg/dns"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/netlab"
	"eidetic/netlab/archive"
	"eidetic/netlab/ca"
	"eidetic/netlab/nstest"
	"eidetic/netlab/proxy"
	"eidetic/netlab/replay"
)

// nameCase is a question with the answers that a device must get, the same while recording and
// replaying: the response code and the records, in which <host> stands for the synthetic address
// of that host.
type nameCase struct {
	what, name string
	qtype      uint16
	want       string
}

func nameCases() []nameCase {
	return []nameCase{
		{"an address", "shop.test", mdns.TypeA, "NOERROR <shop.test>"},
		{"an alias", "www.shop.test", mdns.TypeA, "NOERROR shop.test. <shop.test>"},
		{"no data", "shop.test", mdns.TypeTXT, "NOERROR"},
		{"no such name", "gone.test", mdns.TypeA, "NXDOMAIN"},
		{"SERVFAIL", "broken.test", mdns.TypeA, "SERVFAIL"},
		{"REFUSED", "refused.test", mdns.TypeA, "REFUSED"},
		{"an HTTPS record without ECH", "shop.test", mdns.TypeHTTPS, `NOERROR 1 . alpn="h2"`},
		{"a service record", "_imap._tcp.shop.test", mdns.TypeSRV, "NOERROR 0 1 993 mail.shop.test."},
		{"the canary of DNS over HTTPS", "use-application-dns.net", mdns.TypeA, "NXDOMAIN"},
	}
}

// originNames are the records of the origins' resolver.
func originNames(w mdns.ResponseWriter, r *mdns.Msg, flaky *atomic.Int32) {
	m := new(mdns.Msg).SetReply(r)
	q := r.Question[0]
	var lines []string
	switch q.Name + " " + mdns.TypeToString[q.Qtype] {
	case "shop.test. A":
		lines = []string{"shop.test. 60 IN A 203.0.113.7"}
	case "www.shop.test. A":
		lines = []string{"www.shop.test. 60 IN CNAME shop.test.", "shop.test. 60 IN A 203.0.113.7"}
	case "shop.test. HTTPS":
		lines = []string{`shop.test. 60 IN HTTPS 1 . alpn="h3,h2" ech="AAAA" ipv4hint="203.0.113.7"`}
	case "_imap._tcp.shop.test. SRV":
		lines = []string{"_imap._tcp.shop.test. 60 IN SRV 0 1 993 mail.shop.test."}
	case "shop.test. TXT":
	case "broken.test. A":
		m.Rcode = mdns.RcodeServerFailure
	case "refused.test. A":
		m.Rcode = mdns.RcodeRefused
	case "flaky.test. A":
		if flaky.Add(1) == 1 {
			m.Rcode = mdns.RcodeServerFailure
		} else {
			lines = []string{"flaky.test. 60 IN A 203.0.113.8"}
		}
	default:
		m.Rcode = mdns.RcodeNameError
	}
	for _, line := range lines {
		if rr, err := mdns.NewRR(line); err == nil {
			m.Answer = append(m.Answer, rr)
		}
	}
	_ = w.WriteMsg(m)
}

// TestNames records the answers of a resolver and replays them, over UDP and TCP.
func TestNames(t *testing.T) {
	if !nstest.Inside(t) { // synthetic addresses are routed
		return
	}
	var flaky atomic.Int32
	ready, done := make(chan struct{}), make(chan struct{})
	resolver := &mdns.Server{Addr: "127.0.0.1:5300", Net: "udp", NotifyStartedFunc: func() { close(ready) },
		Handler: mdns.HandlerFunc(func(w mdns.ResponseWriter, r *mdns.Msg) { originNames(w, r, &flaky) })}
	go func() { _ = resolver.ListenAndServe(); close(done) }()
	<-ready
	authority, err := ca.New(time.Now)
	check(t, err)
	n, err := netlab.Start(t.Context(), netlab.Config{
		Gateway: netip.MustParseAddr("192.168.77.1"), DNSAddr: "127.0.0.1:53", CA: authority, Clock: lab.Monotonic,
		Upstream: &proxy.UpstreamConfig{Resolver: netip.MustParseAddrPort("127.0.0.1:5300")},
	})
	check(t, err)
	defer func() { check(t, n.Close()) }()
	path := filepath.Join(t.TempDir(), "names.wacz")
	w, err := archive.Create(path, archive.CreateOptions{Software: "conformance", Wall: time.Now()})
	check(t, err)
	defer func() { _ = w.Discard() }()
	_, err = n.Record(t.Context(), w, replay.RecordOptions{Wall: time.Now})
	check(t, err)
	live := askAll(t)
	first := ask(t, "udp", "flaky.test", mdns.TypeA)
	asked := flaky.Load() // the box itself asks again where the resolver takes more than a second
	then := ask(t, "udp", "flaky.test", mdns.TypeA)
	if then.Rcode != mdns.RcodeSuccess || first.Rcode != mdns.RcodeServerFailure && asked < 2 {
		t.Errorf("live, a resolver that fails once says %v and %v", first, then)
	}
	n.Disarm()
	check(t, w.Close())
	check(t, resolver.Shutdown())
	<-done
	a, err := archive.Open(path)
	check(t, err)
	_, err = n.Replay(t.Context(), a, replay.Options{Wall: time.Now()})
	check(t, err)
	for i, got := range askAll(t) {
		if got != live[i] {
			t.Errorf("%s: replayed %q, live was %q", nameCases()[i/2].what, got, live[i])
		}
	}
	if r := ask(t, "udp", "flaky.test", mdns.TypeA); r.Rcode != mdns.RcodeSuccess || len(r.Answer) != 1 {
		t.Errorf("a failure that passed is replayed: %v", r)
	}
	if r := ask(t, "udp", "never.test", mdns.TypeA); r.Rcode != mdns.RcodeNameError {
		t.Errorf("a name that was never asked for: %v", r)
	}
}

// askAll asks every question over both protocols.
func askAll(t *testing.T) (got []string) {
	t.Helper()
	synthetic := map[string]string{}
	for _, k := range nameCases() {
		for _, network := range []string{"udp", "tcp"} {
			r := ask(t, network, k.name, k.qtype)
			text := mdns.RcodeToString[r.Rcode]
			for _, rr := range r.Answer {
				if a, ok := rr.(*mdns.A); ok {
					addr, known := netip.AddrFromSlice(a.A.To4())
					if !known || !netip.MustParsePrefix("198.18.0.0/15").Contains(addr) {
						t.Errorf("%s: %v is no synthetic address", k.what, a.A)
					}
					if host := synthetic[addr.String()]; host == "" {
						synthetic[addr.String()] = k.name
					}
					text += " <" + synthetic[addr.String()] + ">"
					continue
				}
				text += " " + rr.String()[len(rr.Header().String()):]
			}
			if text != k.want {
				t.Errorf("%s over %s: %q, want %q", k.what, network, text, k.want)
			}
			got = append(got, fmt.Sprint(r.Rcode, r.Answer))
		}
	}
	return got
}

func ask(t *testing.T, network, name string, qtype uint16) *mdns.Msg {
	t.Helper()
	r, err := askServer(network, new(mdns.Msg).SetQuestion(mdns.Fqdn(name), qtype), "127.0.0.1:53")
	check(t, err)
	return r
}

// askServer asks a name server, and asks again when no answer comes for long.
func askServer(network string, question *mdns.Msg, server string) (r *mdns.Msg, err error) {
	c := mdns.Client{Net: network, Timeout: testlab.Hang}
	for range 2 {
		if r, _, err = c.Exchange(question, server); err == nil {
			break
		}
	}
	return r, err
}
