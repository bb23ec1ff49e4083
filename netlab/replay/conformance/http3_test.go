package conformance

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	mdns "github.com/miekg/dns"
	"github.com/quic-go/quic-go/http3"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/netlab"
	"eidetic/netlab/archive"
	"eidetic/netlab/ca"
	"eidetic/netlab/dns"
	"eidetic/netlab/nstest"
	"eidetic/netlab/replay"
)

// quicLab has origins with and without HTTP/3.
type quicLab struct {
	*farLab
	origins  *http.Server
	origins3 *http3.Server
}

const (
	quicHost  = "quic.test"  // HTTPS record says h3
	laterHost = "later.test" // Alt-Svc says h3
	plainHost = "plain.test" // no HTTP/3
)

func newQUICLab(t *testing.T) *quicLab {
	l := &quicLab{}
	origin, err := ca.New(time.Now)
	check(t, err)
	l.farLab = newFarLab(t, netlab.Config{HTTP3: true, OnQuery: func(q dns.Query) {
		if q.Error != "" || strings.HasSuffix(q.Name, ".test") {
			t.Logf("%s %s: %s by %s %v %s", q.Name, q.Type, q.RCode, q.Source, q.Answers, q.Error)
		}
	}}, origin, func(far *farLab) {
		check(t, far.away.Do(func() error { return l.serveOrigins(t, origin) }))
		far.serveNames(t, answerNames)
	})
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
	l.origins = &http.Server{
		Handler:   handler,
		TLSConfig: &tls.Config{GetCertificate: authority.GetCertificate},
		ErrorLog:  log.New(io.Discard, "", 0),
	}
	l.origins3 = &http3.Server{Handler: handler, TLSConfig: http3.ConfigureTLSConfig(&tls.Config{GetCertificate: authority.GetCertificate})}
	done := make(chan struct{}, 2)
	go func() { _ = l.origins.ServeTLS(tcp, "", ""); done <- struct{}{} }()
	go func() { _ = l.origins3.Serve(udp); done <- struct{}{} }()
	t.Cleanup(func() {
		l.down()
		_ = udp.Close()
		for range cap(done) {
			<-done
		}
	})
	return nil
}

// down stops the origins.
func (l *quicLab) down() {
	_ = l.origins.Close()
	_ = l.origins3.Close()
}

// answerNames returns the records of the origins' name server.
func answerNames(host string, qtype uint16) (rdata string, known bool) {
	known = host == quicHost || host == laterHost || host == plainHost
	switch {
	case known && qtype == mdns.TypeA:
		return originAddress, true
	case host == quicHost && qtype == mdns.TypeHTTPS:
		return `1 . alpn="h3,h2" ipv4hint="` + originAddress + `"`, true
	}
	return "", known
}

// quicPage sends requests until their protocol is the one in the query, as during a visit of a
// site, and reports the first and the last protocol.
const quicPage = `<!doctype html><title>x</title><script>
(async () => {
  const used = name => performance.getEntriesByName(new URL(name, location).href).at(-1)?.nextHopProtocol; // its entry may come later
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
func (l *farLab) chromium(t *testing.T, flags ...chromedp.ExecAllocatorOption) (browser context.Context, end func()) {
	program := testlab.NeedProgram(t, "chromium", "chromium-browser", "google-chrome")
	home := trusting(t, l.authority)
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.UserDataDir(filepath.Join(home, "profile")),
		chromedp.Env("HOME="+home), chromedp.Flag("disable-component-update", true), chromedp.WSURLReadTimeout(time.Minute),
		// It asks for the accounts of its user by itself, which would be in the recording (see package device).
		chromedp.Flag("host-resolver-rules", "MAP accounts.google.com ~NOTFOUND"),
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
			err := navigate(ctx, v.url)
			// An origin on a busy machine may announce HTTP/3 late.
			for again := 0; again < 2 && err != nil && when == "live"; again++ {
				t.Logf("%s: %s: %v; again", when, v.url, err)
				err = navigate(ctx, v.url)
			}
			var got string
			if err == nil {
				got, err = chromedp.Run(
					ctx,
					chromedp.Poll[string](
						"window.result",
						chromedp.WithPollingInterval(20*time.Millisecond),
						chromedp.WithPollingTimeout(2*time.Minute),
					),
				)
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
	l.askHTTPS(t, quicHost) // Chromium asks so too; what is recorded must not depend on that
	l.network.Disarm()
	check(t, w.Close())
	l.down()
	a, err := archive.Open(path)
	check(t, err)
	for _, e := range a.Exchanges() {
		if !strings.Contains(e.URL, ".test/") { // what Chromium asks for by itself
			continue
		}
		if want := map[bool]string{true: "h2", false: "h3"}[strings.Contains(e.URL, plainHost)]; e.Protocol != want ||
			e.Server.Port() != 443 {
			t.Errorf("%s %s was recorded over %s from %v, want %s", e.Method, e.URL, e.Protocol, e.Server, want)
		}
	}
	for range 2 {
		session, err := l.network.Replay(t.Context(), a, replay.Options{Wall: time.Now(), Log: func(line lab.Served) {
			// Whether the browser asks for an icon before its tab is closed is random.
			if line.Stage == lab.StageMiss && strings.Contains(line.URL, ".test/") && !strings.HasSuffix(line.URL, "/favicon.ico") {
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

// askHTTPS asks the box for a host's HTTPS record, as the device.
func (l *quicLab) askHTTPS(t *testing.T, host string) (r *mdns.Msg) {
	t.Helper()
	check(t, l.device.Do(func() (err error) {
		r, err = askServer("udp", new(mdns.Msg).SetQuestion(host+".", mdns.TypeHTTPS), "192.168.77.1:53")
		return err
	}))
	return r
}

// names checks what the device's resolver is told of HTTP/3.
func (l *quicLab) names(t *testing.T) {
	for host, want := range map[string]string{quicHost: `1 . alpn="h3,h2"`, laterHost: "", plainHost: ""} {
		got := ""
		for _, rr := range l.askHTTPS(t, host).Answer {
			_, got, _ = strings.Cut(rr.String(), "HTTPS\t")
		}
		if got != want {
			t.Errorf("the HTTPS record of %s is %q, want %q", host, got, want)
		}
	}
}
