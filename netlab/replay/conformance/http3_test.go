package conformance

import (
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

	"github.com/chromedp/chromedp"
	mdns "github.com/miekg/dns"
	"github.com/quic-go/quic-go/http3"
	"golang.org/x/sys/unix"

	"eidetic/internal/lab"
	"eidetic/internal/testlab"
	"eidetic/netlab"
	"eidetic/netlab/archive"
	"eidetic/netlab/ca"
	"eidetic/netlab/dns"
	"eidetic/netlab/nstest"
	"eidetic/netlab/proxy"
	"eidetic/netlab/replay"
)

// quicLab is a device, a box and origins in three network namespaces; the
// test's own is the box's.
type quicLab struct {
	device    *nstest.Namespace
	origins   *http.Server
	origins3  *http3.Server
	authority *ca.Authority // the box's
	network   *netlab.Network
}

const (
	originAddress = "203.0.113.10"
	quicHost      = "quic.test"  // HTTPS record says h3
	laterHost     = "later.test" // Alt-Svc says h3
	plainHost     = "plain.test" // no HTTP/3
)

func newQUICLab(t *testing.T) *quicLab {
	box, device, away := nstest.Here(t), nstest.New(t), nstest.New(t)
	nstest.Veth(t, box, "lab0", device, "eth0")
	nstest.Veth(t, box, "up0", away, "eth0")
	box.Address(t, "lab0", "192.168.77.1/24")
	device.Address(t, "eth0", "192.168.77.2/24")
	device.Default(t, "192.168.77.1")
	box.Address(t, "up0", "203.0.113.1/24")
	away.Address(t, "eth0", originAddress+"/24")

	// An address that comes late (duplicate address detection) would make the
	// browser drop its connections.
	check(t, device.Do(func() error {
		return os.WriteFile("/proc/sys/net/ipv6/conf/eth0/disable_ipv6", []byte("1"), 0)
	}))
	resolv := filepath.Join(t.TempDir(), "resolv.conf")
	check(t, os.WriteFile(resolv, []byte("nameserver 192.168.77.1\n"), 0o644))
	check(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	check(t, unix.Mount(resolv, "/etc/resolv.conf", "", unix.MS_BIND, ""))

	l := &quicLab{device: device}
	origin, err := ca.New(time.Now)
	check(t, err)
	check(t, away.Do(func() error { return l.serveOrigins(t, origin) }))
	l.authority, err = ca.New(time.Now)
	check(t, err)
	l.network, err = netlab.Start(t.Context(), netlab.Config{
		Gateway: netip.MustParseAddr("192.168.77.1"), Routes: true, HTTP3: true,
		HTTPAddr: "0.0.0.0:80", HTTPSAddr: "0.0.0.0:443", DNSAddr: "192.168.77.1:53",
		OnQuery: func(q dns.Query) {
			if q.Error != "" || strings.HasSuffix(q.Name, ".test") {
				t.Logf("%s %s: %s by %s %v %s", q.Name, q.Type, q.RCode, q.Source, q.Answers, q.Error)
			}
		},
		CA: l.authority, Clock: lab.Monotonic,
		Upstream: &proxy.UpstreamConfig{Resolver: netip.MustParseAddrPort(originAddress + ":53"), Roots: origin.Pool()},
	})
	check(t, err)
	t.Cleanup(func() { check(t, l.network.Close()) })
	return l
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// serveOrigins opens the origins' sockets in the thread's namespace.
func (l *quicLab) serveOrigins(t *testing.T, authority *ca.Authority) error {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host == laterHost {
			w.Header().Set("Alt-Svc", `h3=":443"; ma=600`)
		}
		switch r.URL.Path {
		case "/":
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, quicPage)
		case "/favicon.ico":
			w.WriteHeader(http.StatusNoContent)
		default:
			b, _ := io.ReadAll(r.Body)
			fmt.Fprintf(w, "%s %s %s", r.Method, r.URL.Path, b)
		}
	})
	tcp, err := net.Listen("tcp", originAddress+":443")
	if err != nil {
		return err
	}
	udp, err := net.ListenPacket("udp", originAddress+":443")
	if err != nil {
		return err
	}
	names, err := net.ListenPacket("udp", originAddress+":53")
	if err != nil {
		return err
	}
	l.origins = &http.Server{Handler: handler, TLSConfig: &tls.Config{GetCertificate: authority.GetCertificate}, ErrorLog: log.New(io.Discard, "", 0)}
	l.origins3 = &http3.Server{Handler: handler, TLSConfig: http3.ConfigureTLSConfig(&tls.Config{GetCertificate: authority.GetCertificate})}
	resolver := &mdns.Server{PacketConn: names, Handler: mdns.HandlerFunc(answerNames)}
	done := make(chan struct{}, 3)
	go func() { _ = l.origins.ServeTLS(tcp, "", ""); done <- struct{}{} }()
	go func() { _ = l.origins3.Serve(udp); done <- struct{}{} }()
	go func() { _ = resolver.ActivateAndServe(); done <- struct{}{} }()
	t.Cleanup(func() {
		l.down()
		_ = udp.Close()
		_ = names.Close()
		for range cap(done) {
			<-done
		}
	})
	return nil
}

// down takes the origins away.
func (l *quicLab) down() {
	_ = l.origins.Close()
	_ = l.origins3.Close()
}

// answerNames is the origins' name server.
func answerNames(w mdns.ResponseWriter, r *mdns.Msg) {
	m := new(mdns.Msg).SetReply(r)
	q := r.Question[0]
	line := ""
	switch host := strings.TrimSuffix(q.Name, "."); {
	case host != quicHost && host != laterHost && host != plainHost:
		m.Rcode = mdns.RcodeNameError
	case q.Qtype == mdns.TypeA:
		line = q.Name + " 60 IN A " + originAddress
	case q.Qtype == mdns.TypeHTTPS && host == quicHost:
		line = q.Name + ` 60 IN HTTPS 1 . alpn="h3,h2" ipv4hint="` + originAddress + `"`
	}
	if rr, err := mdns.NewRR(line); err == nil && rr != nil {
		m.Answer = append(m.Answer, rr)
	}
	_ = w.WriteMsg(m)
}

// quicPage asks until the protocol is what the query says, as a site would
// that is visited for a while, and tells what it was at first and at last.
const quicPage = `<!doctype html><title>x</title><script>
(async () => {
  const used = name => performance.getEntriesByName(new URL(name, location).href).at(-1).nextHopProtocol;
  const want = location.hash.slice(1), first = performance.getEntriesByType('navigation')[0].nextHopProtocol;
  const post = await (await fetch('/post', {method: 'POST', body: 'b'})).text();
  let last;
  for (let i = 0; i < 40; i++) {
    await (await fetch('/r' + i)).text();
    last = used('/r' + i);
    if (last === want) break;
    await new Promise(go => setTimeout(go, 100));
  }
  window.result = [first, last, post, (await fetch('/')).headers.get('alt-svc')].join(' ');
})().catch(e => { window.result = 'error ' + e });
</script>`

// chromium starts a browser in the device's namespace.
func (l *quicLab) chromium(t *testing.T, flags ...chromedp.ExecAllocatorOption) (browser context.Context, end func()) {
	program := testlab.NeedProgram(t, "chromium", "chromium-browser", "google-chrome")
	home := trusting(t, l.authority)
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.UserDataDir(filepath.Join(home, "profile")),
		chromedp.Env("HOME="+home), chromedp.Flag("disable-component-update", true), chromedp.WSURLReadTimeout(time.Minute),
	)
	alloc, stop := chromedp.NewExecAllocator(t.Context(), append(options, flags...)...)
	browser, stopBrowser := chromedp.NewContext(alloc)
	end = sync.OnceFunc(func() {
		_ = chromedp.Cancel(browser) // waits for the process to end
		stopBrowser()
		stop()
	})
	t.Cleanup(end)
	check(t, l.device.Do(func() error { // its processes inherit the thread's namespace
		_, err := chromedp.Run(browser, chromedp.Navigate("about:blank"))
		return err
	}))
	return browser, end
}

// TestHTTP3 records and replays with a Chromium that may use QUIC. Chromium
// refuses QUIC from a certificate whose root is not one of its own, except for
// the origins that it is told to speak nothing else with.
func TestHTTP3(t *testing.T) {
	if !nstest.Inside(t) {
		return
	}
	l := newQUICLab(t)
	force := chromedp.Flag("origin-to-force-quic-on", quicHost+":443,"+laterHost+":443")
	visits := []struct{ url, want string }{
		{"https://" + quicHost + "/#h3", "h3 h3 POST /post b "},
		{"https://" + laterHost + "/#h3", `h3 h3 POST /post b h3=":443"; ma=600`},
		{"https://" + plainHost + "/#h2", "h2 h2 POST /post b "},
	}
	visit := func(when string) {
		browser, end := l.chromium(t, force)
		for _, v := range visits {
			ctx, cancel := chromedp.NewContext(browser)
			_, err := chromedp.Run(ctx, chromedp.Navigate(v.url))
			var got string
			if err == nil {
				got, err = chromedp.Run(ctx, chromedp.Poll[string]("window.result", chromedp.WithPollingTimeout(time.Minute)))
			}
			cancel()
			if err != nil || got != v.want {
				t.Errorf("%s: %s saw %q (%v), want %q", when, v.url, got, err, v.want)
			}
		}
		end()
	}
	path := filepath.Join(t.TempDir(), "quic.wacz")
	w, err := archive.Create(path, archive.CreateOptions{Software: "conformance", Wall: time.Now()})
	check(t, err)
	defer func() { _ = w.Discard() }()
	_, err = l.network.Record(t.Context(), w, replay.RecordOptions{Wall: time.Now})
	check(t, err)
	visit("live")
	l.network.Disarm()
	check(t, w.Close())
	l.down()
	a, err := archive.Open(path)
	check(t, err)
	for _, e := range a.Exchanges() {
		if want := map[bool]string{true: "h2", false: "h3"}[strings.Contains(e.URL, plainHost)]; e.Protocol != want || e.Server.Port() != 443 {
			t.Errorf("%s %s was recorded over %s from %v, want %s", e.Method, e.URL, e.Protocol, e.Server, want)
		}
	}
	for range 2 {
		session, err := l.network.Replay(t.Context(), a, replay.Options{Wall: time.Now(), Log: func(line lab.Served) {
			if line.Stage == lab.StageMiss && strings.Contains(line.URL, ".test/") {
				t.Errorf("missed %s %s", line.Method, line.URL)
			}
		}})
		check(t, err)
		visit("replay")
		l.names(t)
		if session.HTTP3(plainHost) || !session.HTTP3(quicHost) {
			t.Error("the session does not know who speaks HTTP/3")
		}
		l.network.Disarm()
	}
}

// names checks what the device's resolver hears of HTTP/3.
func (l *quicLab) names(t *testing.T) {
	for host, want := range map[string]string{quicHost: `1 . alpn="h3,h2"`, laterHost: "", plainHost: ""} {
		var r *mdns.Msg
		check(t, l.device.Do(func() (err error) {
			r, _, err = new(mdns.Client).Exchange(new(mdns.Msg).SetQuestion(host+".", mdns.TypeHTTPS), "192.168.77.1:53")
			return err
		}))
		got := ""
		for _, rr := range r.Answer {
			_, got, _ = strings.Cut(rr.String(), "HTTPS\t")
		}
		if got != want {
			t.Errorf("the HTTPS record of %s is %q, want %q", host, got, want)
		}
	}
}
