package port

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	mdns "github.com/miekg/dns"

	"eidetic/netlab/archive"
	"eidetic/netlab/inject"
	"eidetic/netlab/nstest"
	"eidetic/netlab/proxy"
	"eidetic/netlab/reach"
	"eidetic/netlab/replay"
)

// answerSix is a name server with DNS64 (RFC 6147): both.test has addresses of both families, six.test has only IPv6, and
// four.test only IPv4, which a NAT64 leads to.
func answerSix(rw mdns.ResponseWriter, r *mdns.Msg) {
	m := new(mdns.Msg).SetReply(r)
	q := r.Question[0]
	records, ok := map[string]map[uint16]string{
		"both.test.": {mdns.TypeA: siteAddr, mdns.TypeAAAA: "2001:db8:80::80"},
		"six.test.":  {mdns.TypeAAAA: "2001:db8:80::80"},
		"four.test.": {mdns.TypeA: siteAddr, mdns.TypeAAAA: "64:ff9b::cb00:7150"},
	}[q.Name]
	if !ok {
		m.Rcode = mdns.RcodeNameError
	} else if text := records[q.Qtype]; text != "" {
		if rr, err := mdns.NewRR(fmt.Sprintf("%s 30 IN %s %s", q.Name, mdns.TypeToString[q.Qtype], text)); err == nil {
			m.Answer = append(m.Answer, rr)
		}
	}
	_ = rw.WriteMsg(m) // the test sees that it did not come
}

// TestUplinkOfIPv6Alone: behind an uplink without IPv4, hosts with and without IPv4 are recorded and replayed.
func TestUplinkOfIPv6Alone(t *testing.T) {
	if !nstest.Inside(t) {
		return
	}
	w := newWorld(t)
	ip := func(n *nstest.Namespace, args ...string) {
		t.Helper()
		if out, err := n.Output("ip", args...); err != nil {
			t.Fatalf("ip %v: %v\n%s", args, err, out)
		}
	}
	ip(w.box, "-4", "address", "flush", "dev", "up0") // the default route goes with it
	ip(w.box, "-6", "address", "add", "2001:db8:80::2/64", "dev", "up0", "nodad")
	ip(w.box, "-6", "route", "add", "default", "via", "2001:db8:80::80", "dev", "up0")
	for _, own := range []string{"2001:db8:80::80/64", "64:ff9b::cb00:7150/128"} {
		ip(w.internet, "-6", "address", "add", own, "dev", "eth0", "nodad")
	}
	l, err := listenIn(w.internet, "[::]:8080")
	if err != nil {
		t.Fatal(err)
	}
	site := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { fmt.Fprintf(rw, "page of %s", r.Host) })}
	go func() { _ = site.Serve(l) }()
	t.Cleanup(func() { _ = site.Close() })
	var queries net.PacketConn
	if err := w.internet.Do(func() error { queries, err = net.ListenPacket("udp", "[2001:db8:80::80]:53"); return err }); err != nil {
		t.Fatal(err)
	}
	names := &mdns.Server{PacketConn: queries, Handler: mdns.HandlerFunc(answerSix)}
	go func() { _ = names.ActivateAndServe() }()
	t.Cleanup(func() { _ = queries.Close() })

	phone := newPhone(t, w, "dev0")
	p := w.port(t, "dev0", func(c *Config) {
		c.Upstream = &proxy.UpstreamConfig{Resolver: netip.MustParseAddrPort("[2001:db8:80::80]:53"), IPv6First: func() bool { return !reach.HasIPv4() }}
	})
	phone.lease(t)
	phone.awaitIPv6(t)
	path := filepath.Join(t.TempDir(), "six.wacz")
	wall := time.Now()
	aw, err := archive.Create(path, archive.CreateOptions{Software: "test", Wall: wall, PageDate: wall})
	if err != nil {
		t.Fatal(err)
	}
	recorder, err := p.Network().Record(t.Context(), aw, replay.RecordOptions{Wall: time.Now, Inject: inject.Options{Date: wall}})
	if err != nil {
		t.Fatal(err)
	}
	hosts := []string{"both.test", "six.test", "four.test"}
	browse := func(doing string) {
		t.Helper()
		for _, host := range hosts {
			out, err := phone.curl(t, "http://"+host+":8080/")
			if want := "page of " + host + ":8080"; err != nil || out != want {
				t.Errorf("%s %s: %q, %v; want %q", doing, host, out, err, want)
			}
		}
	}
	browse("recording")
	p.Network().Disarm()
	if err := recorder.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := aw.Close(); err != nil {
		t.Fatal(err)
	}
	_ = site.Close()
	a, err := archive.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Network().Replay(t.Context(), a, replay.Options{Wall: time.Now(), Timing: replay.Timing{Mode: replay.TimingNone}}); err != nil {
		t.Fatal(err)
	}
	browse("replaying")
}
