package conformance

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"eidetic/internal/rigs/testlab"
)

// junction leads all connections of a browser to the origin or to the box.
type junction struct {
	listen net.Listener
	to     atomic.Pointer[string]
}

func newJunction(t *testing.T) *junction {
	j := &junction{}
	var err error
	j.listen, err = net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	var open sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() {
		_ = j.listen.Close()
		cancel()
		open.Wait()
	})
	open.Go(func() {
		for {
			c, err := j.listen.Accept()
			if err != nil {
				return
			}
			if to := j.to.Load(); to != nil { // a browser that starts has requests of its own
				open.Go(func() { join(ctx, c, *to) })
			} else {
				_ = c.Close()
			}
		}
	})
	return j
}

// join connects c with an address until both sides have ended.
func join(ctx context.Context, c net.Conn, address string) {
	defer c.Close()
	far, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return
	}
	defer far.Close()
	stop := context.AfterFunc(ctx, func() { _, _ = c.Close(), far.Close() })
	defer stop()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{c, far}, {far, c}} {
		both.Go(func() {
			if _, err := io.Copy(way[1], way[0]); err != nil {
				_, _ = way[0].Close(), way[1].Close()
				return
			}
			_ = way[1].(*net.TCPConn).CloseWrite() // the end of one way is told on the other
		})
	}
	both.Wait()
}

// watching leaves out what differs between two direct loads, or has to: the sample of a violation of Trusted Types is
// the text as it is put, with the box's script, and the line is that of the box's function, which calls the browser's.
//
// watching runs before everything in each document, and notes what a page cannot tell once its policy forbids its
// scripts.
const watching = `(() => {
	const list = [];
	Object.defineProperty(window, "__seen", {value: list});
	const place = s => String(s || "").slice(0, 200);
	addEventListener("securitypolicyviolation", e => /favicon.ico$/.test(e.blockedURI) || list.push(["policy", e.effectiveDirective, e.disposition, place(e.blockedURI)].join(" ")), true);
	addEventListener("error", e => list.push(["error", e.message, place(e.filename), e.lineno].join(" ")), true);
	addEventListener("unhandledrejection", e => list.push("rejection " + (e.reason && e.reason.name)), true);
})()`

// look returns what a page shows and knows once it is at rest; before, a tilde and what it waits for.
const look = `(() => {
	if (document.readyState !== "complete" || window.pending > 0) {
		return "~" + [document.readyState, window.pending, Object.keys(window.report || {}).pop()];
	}
	const or = f => { try { return f() } catch (e) { return "error " + e.name } };
	// Addresses of blobs are drawn by lot, and a data URL in markup has the box's script in it.
	const drawn = s => s.replace(/(blob:[^ ]*\/)[-0-9a-f]{36}/g, "$1…").replace(/^\s*data:text\/html.*/i, "data:…");
	const dom = n => {
		if (n.nodeType === 3) return n.nodeValue;
		if (n.nodeType !== 1) return n.nodeType === 10 ? "<!" + n.name + n.publicId + ">" : n.nodeType === 8 ? "<!--" + n.nodeValue + "-->" : "";
		const isPolicy = n.localName === "meta" && /policy/i.test(n.httpEquiv);
		let text = "<" + n.nodeName + [...n.attributes].map(a => " " + a.name + "=" + (isPolicy && a.name === "content" ? "its policy" : drawn(n.getAttribute(a.name)))).join("") + ">";
		for (const c of n.childNodes) text += dom(c);
		if (n.localName === "iframe" || n.localName === "object") text += or(() => n.contentDocument ? "{" + whole(n.contentWindow) + "}" : "{}");
		return text;
	};
	// The box speaks HTTP/1.1 where an origin answers in HTTP/1.0. Whether a beacon is listed is chance.
	const entry = e => [e.entryType, e.name.slice(0, 300), e.initiatorType, e.nextHopProtocol.replace("http/1.0", "http/1.1"), e.transferSize, e.encodedBodySize, e.decodedBodySize,
		e.responseStatus, e.contentType, e.contentEncoding, e.deliveryType, (e.serverTiming || []).map(s => s.name + s.duration + s.description)].join("\t");
	const whole = w => JSON.stringify([drawn(w.location.href.slice(0, 2000)), w.document.characterSet, w.document.compatMode, w.document.contentType, w.document.title,
		[...w.document.childNodes].map(dom).join(""), (w.__seen || []).slice().sort()]);
	return JSON.stringify({
		url: location.href.slice(0, 2000), referrer: document.referrer, charset: document.characterSet, mode: document.compatMode, type: document.contentType,
		cookies: or(() => document.cookie.split("; ").sort().join("; ")), text: or(() => document.documentElement.innerText), dom: or(() => [...document.childNodes].map(dom).join("")),
		seen: (window.__seen || []).slice().sort(), report: or(() => JSON.stringify(report)), seeds: or(() => Object.fromEntries(Object.entries(seeds).sort())),
		entries: performance.getEntries().filter(e => /^(navigation|resource)$/.test(e.entryType) && e.initiatorType !== "beacon" && !/favicon.ico$|\/report|^blob:|^data:/.test(e.name)).map(entry).sort(),
		origin: or(() => self.origin), isolated: self.crossOriginIsolated, secure: self.isSecureContext, lang: document.documentElement && document.documentElement.lang,
	});
})()`

// sight is what a browser showed of a page.
type sight struct {
	Failed                                                                       string // the browser's error
	URL, Referrer, Charset, Mode, Type, Cookies, Text, DOM, Report, Origin, Lang string
	Isolated, Secure                                                             bool
	Seen, Entries                                                                []string
	Seeds                                                                        json.RawMessage
	Asked                                                                        []string // of the origin
	picture                                                                      []byte
}

// show opens a page in a tab.
type show func(t *testing.T, address string) *sight

// viewer shows pages, each in a profile that those of one way (direct, recorded, replayed) share.
type viewer interface {
	begin(t *testing.T) (tabs []show, end func())
}

// patience bounds the wait for a page that says nothing, or nothing new, as one that could not be decoded. One that does
// not come to rest is compared like any other.
const patience = 30 * time.Second

// await polls until a page is at rest and stays the same.
func await(ctx context.Context, poll func() string) (s *sight) {
	tick := time.NewTicker(15 * time.Millisecond)
	defer tick.Stop()
	limit, silent := time.After(testlab.Hang), time.NewTimer(patience)
	defer silent.Stop()
	for last := ""; ; {
		text := poll()
		if text != last {
			silent.Reset(patience)
		}
		if text != "" && text[0] != '~' && text == last {
			s = &sight{}
			if err := json.Unmarshal([]byte(text), s); err != nil {
				s.Failed = err.Error()
			}
			return s
		}
		last = text
		select {
		case <-tick.C:
		case <-limit:
			return &sight{Failed: "it did not come to rest " + last}
		case <-silent.C:
			if text != "" {
				return &sight{Failed: "it did not come to rest " + text}
			}
			return &sight{Failed: "it has no document"}
		case <-ctx.Done():
			return &sight{Failed: "stopped"}
		}
	}
}

// chromiumViewer drives a Chromium by its developer tools.
type chromiumViewer struct{ context.Context }

func (c chromiumViewer) begin(t *testing.T) (tabs []show, end func()) {
	profile, cancel := chromedp.NewContext(c.Context, chromedp.WithNewBrowserContext())
	check(t, chromedp.Do(profile, chromedp.Navigate("about:blank")))
	for range 4 {
		tab, _ := chromedp.NewContext(profile, chromedp.WithNewWindow(true)) // a tab behind another has no picture
		_, err := chromedp.Call(tab, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: watching})
		check(t, err)
		tabs = append(tabs, func(t *testing.T, address string) *sight { return openInChromium(t, tab, address) })
	}
	return tabs, cancel
}

func openInChromium(t *testing.T, tab context.Context, address string) *sight {
	ctx, stop := context.WithTimeout(tab, testlab.Hang)
	defer stop()
	got, err := chromedp.Call(ctx, page.Navigate, page.NavigateParams{URL: address})
	if err != nil {
		t.Errorf("open %s: %v", address, err)
		return &sight{Failed: err.Error()}
	}
	if got.ErrorText != "" {
		return &sight{Failed: got.ErrorText}
	}
	s := await(ctx, func() string {
		text, _ := chromedp.Run(ctx, chromedp.Evaluate[string](look)) // a page that goes elsewhere just now has none
		return text
	})
	if s.Failed != "" { // Chromium draws no frame of a document that it could not decode
		return s
	}
	if s.picture, err = pictureOf(ctx); err != nil {
		t.Errorf("the picture of %s: %v", address, err)
	}
	return s
}

// pictureOf takes a picture. Chromium forgets that it was asked for one when a window loses its place, above all on a
// busy machine.
func pictureOf(ctx context.Context) ([]byte, error) {
	for try := 1; ; try++ {
		bounded, stop := context.WithTimeout(ctx, 5*time.Second)
		got, err := chromedp.Call(bounded, page.CaptureScreenshot, page.CaptureScreenshotParams{OptimizeForSpeed: &[]bool{true}[0]})
		stop()
		if err == nil || try == 5 || ctx.Err() != nil {
			return got.Data, err
		}
		if _, err := chromedp.Call(ctx, page.BringToFront, cdp.Empty{}); err != nil {
			return nil, err
		}
	}
}

// firefoxViewer drives a Firefox by WebDriver BiDi.
type firefoxViewer struct{ *firefox }

func (f firefoxViewer) begin(t *testing.T) (tabs []show, end func()) {
	var user struct{ UserContext string }
	f.call(t, "browser.createUserContext", map[string]any{}, &user)
	var script struct{ Script string }
	f.call(t, "script.addPreloadScript", map[string]any{"functionDeclaration": "() => { " + watching + " }", "userContexts": []string{user.UserContext}}, &script)
	var tab struct{ Context string }
	f.call(t, "browsingContext.create", map[string]any{"type": "tab", "userContext": user.UserContext}, &tab)
	target := map[string]any{"context": tab.Context}
	return []show{func(t *testing.T, address string) *sight {
		if err := f.try(t, "browsingContext.navigate", map[string]any{"context": tab.Context, "url": address, "wait": "none"}, nil); err != nil {
			return &sight{Failed: err.Error()}
		}
		s := await(t.Context(), func() string {
			var got struct{ Result struct{ Value string } }
			// A page that goes elsewhere just now has no result.
			_ = f.try(t, "script.evaluate", map[string]any{"expression": look, "awaitPromise": false, "target": target}, &got)
			return got.Result.Value
		})
		// A page whose encoding is named late is parsed again: it has no picture then, or not yet its last one.
		var last string
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for range 50 {
			var shot struct{ Data string }
			err := f.try(t, "browsingContext.captureScreenshot", map[string]any{"context": tab.Context}, &shot)
			if err == nil && shot.Data == last {
				s.picture, err = base64.StdEncoding.DecodeString(last)
				check(t, err)
				return s
			}
			last = shot.Data
			<-tick.C
		}
		t.Logf("%s has no picture that stays", address) // a page without a picture is compared as one
		return s
	}}, func() { f.call(t, "browser.removeUserContext", map[string]any{"userContext": user.UserContext}, nil) }
}

// newChromiumViewer resolves all names to two junctions.
func newChromiumViewer(t *testing.T, s *stand, plain, secure *junction) viewer {
	at := *s
	at.http, at.https = plain.listen.Addr().String(), secure.listen.Addr().String()
	return chromiumViewer{newChromium(t, &at, append(oneTile(), chromedp.WindowSize(640, 480),
		chromedp.Flag("disable-features", "Translate,BlinkGenPropertyTrees,BackForwardCache,HttpsUpgrades,site-per-process,IsolateOrigins,Prerender2,ProactivelySwapBrowsingInstance"),
		chromedp.Flag("autoplay-policy", "no-user-gesture-required"))...).Context}
}

// newFirefoxViewer uses SOCKS (RFC 1928), for which a Firefox sends the same bytes as directly.
func newFirefoxViewer(t *testing.T, s *stand, plain, secure *junction) viewer {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var open sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		cancel()
		open.Wait()
	})
	open.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			open.Go(func() {
				port, err := readSOCKS(c)
				to := secure
				if port == 80 {
					to = plain
				}
				if err != nil || port != 80 && port != 443 {
					_ = c.Close()
					return
				}
				join(ctx, c, to.listen.Addr().String())
			})
		}
	})
	host, port, err := net.SplitHostPort(l.Addr().String())
	check(t, err)
	prefs := map[string]any{
		"network.proxy.type": 1, "network.proxy.socks": host, "network.proxy.socks_port": json.Number(port), "network.proxy.socks_remote_dns": true,
		"dom.security.https_first": false, "dom.security.https_first_schemeless": false, "browser.sessionhistory.max_total_viewers": 0,
		"network.http.http3.enable": false, "layout.css.prefers-color-scheme.content-override": 1,
	}
	return firefoxViewer{startFirefox(t, s.authority, prefs, func(cmd *exec.Cmd) error { return testlab.Start(t, cmd) }, http.DefaultTransport)}
}

// readSOCKS reads a request to connect to a name, grants it, and returns its port.
func readSOCKS(c net.Conn) (port int, err error) {
	head := make([]byte, 2)
	if _, err := io.ReadFull(c, head); err != nil {
		return 0, err
	}
	if _, err := io.CopyN(io.Discard, c, int64(head[1])); err != nil { // its methods
		return 0, err
	}
	if _, err := c.Write([]byte{5, 0}); err != nil {
		return 0, err
	}
	request := make([]byte, 5)
	if _, err := io.ReadFull(c, request); err != nil {
		return 0, err
	}
	rest := make([]byte, int(request[4])+2) // a name, and the port
	if request[3] == 1 {                    // an address, of which one byte is read
		rest = make([]byte, 3+2)
	}
	if _, err := io.ReadFull(c, rest); err != nil {
		return 0, err
	}
	_, err = c.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
	return int(rest[len(rest)-2])<<8 | int(rest[len(rest)-1]), err
}
