package port

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	mdns "github.com/miekg/dns"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/netlab/ca"
	"eidetic/netlab/nstest"
	"eidetic/netlab/proxy"
)

// world is a box with an uplink to an internet: a site at
// 203.0.113.80 on ports 80, 443 and 8443, and its name server.
type world struct {
	box, internet *nstest.Namespace
	site, boxCA   *ca.Authority

	mu     sync.Mutex
	hits   []string // requests that reached the site
	events []Event
}

const siteAddr = "203.0.113.80"

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{box: nstest.Here(t), internet: nstest.New(t)}
	// Addresses must not change by themselves during a test.
	if err := w.box.Do(func() error { return os.WriteFile("/proc/sys/net/ipv6/conf/default/accept_dad", []byte("0"), 0) }); err != nil {
		t.Fatal(err)
	}
	nstest.Veth(t, w.box, "up0", w.internet, "eth0")
	w.box.Address(t, "up0", "203.0.113.2/24")
	w.internet.Address(t, "eth0", siteAddr+"/24")
	w.box.Default(t, siteAddr)
	w.internet.Default(t, "203.0.113.2") // a careless internet that would route back to devices
	var err error
	if w.site, err = ca.New(time.Now); err != nil {
		t.Fatal(err)
	}
	if w.boxCA, err = ca.New(time.Now); err != nil {
		t.Fatal(err)
	}
	handler := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.hits = append(w.hits, r.Host+r.URL.Path)
		w.mu.Unlock()
		rw.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(rw, "<!doctype html><title>%s</title><h1>%s%s</h1>", r.Host, r.Host, r.URL.Path)
	})
	err = w.internet.Do(func() error {
		for _, port := range []string{"80", "443", "8443"} {
			l, err := net.Listen("tcp", siteAddr+":"+port)
			if err != nil {
				return err
			}
			if port != "80" {
				l = tls.NewListener(l, &tls.Config{GetCertificate: w.site.GetCertificate, NextProtos: []string{"http/1.1"}})
			}
			s := &http.Server{Handler: handler, ErrorLog: log.New(io.Discard, "", 0)}
			go func() { _ = s.Serve(l) }()
			t.Cleanup(func() { _ = s.Close() })
		}
		pc, err := net.ListenPacket("udp", siteAddr+":53")
		if err != nil {
			return err
		}
		s := &mdns.Server{PacketConn: pc, Handler: mdns.HandlerFunc(answerSite)}
		go func() { _ = s.ActivateAndServe() }()
		t.Cleanup(func() { _ = pc.Close() })
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func answerSite(rw mdns.ResponseWriter, r *mdns.Msg) {
	m := new(mdns.Msg).SetReply(r)
	switch q := r.Question[0]; {
	case q.Name != "www.shop.test.":
		m.Rcode = mdns.RcodeNameError
	case q.Qtype == mdns.TypeA:
		rr, err := mdns.NewRR("www.shop.test. 30 IN A " + siteAddr)
		if err == nil {
			m.Answer = append(m.Answer, rr)
		}
	}
	_ = rw.WriteMsg(m) // the test sees that it did not come
}

// port starts a Port on an interface of the box.
func (w *world) port(t *testing.T, device string, change func(*Config)) *Port {
	t.Helper()
	c := Config{
		Interface: device, CA: w.boxCA, Clock: lab.Monotonic, Wall: time.Now,
		Upstream: &proxy.UpstreamConfig{Resolver: netip.MustParseAddrPort(siteAddr + ":53"), Roots: w.site.Pool()},
		OnEvent:  func(e Event) { w.mu.Lock(); w.events = append(w.events, e); w.mu.Unlock() },
	}
	if change != nil {
		change(&c)
	}
	p, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("close the port: %v", err)
		}
	})
	return p
}

func (w *world) reached() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.hits...)
}

// phone is a device: a namespace with one cable, whose other end is the port.
type phone struct {
	*nstest.Namespace
	dir    string
	caFile string
}

func newPhone(t *testing.T, w *world, port string) *phone {
	t.Helper()
	p := &phone{Namespace: nstest.New(t), dir: t.TempDir()}
	nstest.Veth(t, w.box, port, p.Namespace, "eth0")
	p.caFile = filepath.Join(p.dir, "box.pem")
	if err := os.WriteFile(p.caFile, w.boxCA.PEM(), 0o644); err != nil {
		t.Fatal(err)
	}
	return p
}

// lease runs Debian's DHCP client once, as ifupdown does, and writes the name server
// to the device's resolv.conf (see run).
func (p *phone) lease(t *testing.T) {
	t.Helper()
	dhclient := testlab.NeedProgram(t, "dhclient")
	script, pid := filepath.Join(p.dir, "script"), filepath.Join(p.dir, "pid")
	const sh = `#!/bin/sh
case $reason in
BOUND|REBOOT|RENEW)
	ip address replace "$new_ip_address/24" dev "$interface"
	ip route replace default via "$new_routers"
	echo "nameserver $new_domain_name_servers" > "%[1]s/resolv.conf"
	echo "$new_ntp_servers" > "%[1]s/ntp"
	;;
esac
`
	if err := os.WriteFile(script, fmt.Appendf(nil, sh, p.dir), 0o755); err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(p.dir, "dhclient.conf")
	if err := os.WriteFile(conf,
		[]byte("timeout 90;\nrequest subnet-mask, routers, domain-name-servers, ntp-servers;\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	nstest.EndDaemons(t, pid)
	out, err := p.Output(dhclient, "-4", "-1", "-v", "-cf", conf, "-sf", script, "-lf", filepath.Join(p.dir, "leases"), "-pf", pid, "eth0")
	if err != nil {
		t.Fatalf("dhclient: %v\n%s", err, out)
	}
}

// run runs a program on the device, with its own /etc/resolv.conf.
func (p *phone) run(name string, args ...string) (string, error) {
	line := append([]string{"-m", "sh", "-c", `mount --bind "$0/resolv.conf" /etc/resolv.conf && exec "$@"`, p.dir, name}, args...)
	return p.Output("unshare", line...)
}

// curl fetches a URL as a program on the device that trusts the box.
func (p *phone) curl(t *testing.T, args ...string) (string, error) {
	t.Helper()
	line := append([]string{"-sS", "--max-time", "60", "--cacert", p.caFile, "--noproxy", "*"}, args...)
	return p.run(testlab.NeedProgram(t, "curl"), line...)
}

// reaches reports whether a connection to an address succeeds in time.
func (p *phone) reaches(network, addr string, within time.Duration) error {
	return p.Do(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err == nil {
			_ = c.Close()
		}
		return err
	})
}

// settled returns a snapshot of the time when the interfaces have their own
// addresses, duplicate address detection has ended and nothing changes any more. All
// that happens by itself some time after the cable is plugged in.
func (w *world) settled(t *testing.T) string {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	before := ""
	for deadline := time.Now().Add(testlab.Hang); ; <-tick.C {
		done, all := true, ""
		for _, name := range []string{"up0", "dev0"} {
			text, err := w.box.Output("ip", "-6", "address", "show", "dev", name)
			if err != nil {
				t.Fatal(err, text)
			}
			done, all = done && strings.Contains(text, "fe80::") && !strings.Contains(text, "tentative"), all+text
		}
		now := w.snapshot(t)
		if done && now == before {
			return now
		}
		before = now
		if time.Now().After(deadline) {
			t.Fatalf("the interfaces have no addresses of their own, or still change:\n%s", all)
		}
	}
}

// unchanged fails unless the box's network becomes what it was. It waits, because
// the kernel makes an interface's own address again after a while.
func (w *world) unchanged(t *testing.T, before string) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(testlab.Hang); ; <-tick.C {
		now := w.snapshot(t)
		if now == before {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("after Close (-before +after):\n%s", cmp.Diff(strings.Split(before, "\n"), strings.Split(now, "\n")))
			return
		}
	}
}

// snapshot returns the complete state of the box's network.
func (w *world) snapshot(t *testing.T) string {
	t.Helper()
	var out bytes.Buffer
	for _, args := range [][]string{
		{"-d", "-o", "link"}, {"-o", "address"}, {"route", "show", "table", "all"}, {"-6", "route", "show", "table",
			"all"}, {"rule"}, {"-6", "rule"},
	} {
		text, err := w.box.Output("ip", args...)
		if err != nil {
			t.Fatalf("ip %v: %v\n%s", args, err, text)
		}
		out.WriteString(text)
	}
	for _, name := range []string{"ipv6/conf/dev0/disable_ipv6", "ipv4/tcp_no_metrics_save", "ipv4/ip_forward"} {
		b, err := os.ReadFile("/proc/sys/net/" + name)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%s %s", name, b)
	}
	return out.String()
}

var (
	gateway78 = netip.MustParsePrefix("192.168.78.1/24")
	gateway79 = netip.MustParsePrefix("192.168.79.1/24")
)

func listenIn(n *nstest.Namespace, addr string) (l net.Listener, err error) {
	err = n.Do(func() error {
		l, err = net.Listen("tcp", addr)
		return err
	})
	return l, err
}
