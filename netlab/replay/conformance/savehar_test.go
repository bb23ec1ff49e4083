package conformance

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"eidetic/internal/rigs/samplesite"
	"eidetic/internal/rigs/testlab"
	"eidetic/netlab/inject"
)

// saveHARs makes TestBrowserHAR write the files that it reads.
var saveHARs = flag.Bool("save-hars", false, "let Chromium and Firefox save the files in testdata/*.har again")

// tunnels is an explicit proxy (CONNECT, RFC 9110 §9.3.6) that leads to the site's listeners, so that a
// browser reaches the site by its own names and over its own TLS.
func tunnels(t *testing.T, site *shop) (addr string) {
	var open sync.WaitGroup
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out, err := site.dial(r.Context(), r.Host)
		if r.Method != http.MethodConnect || err != nil {
			http.Error(w, "the sample site has no such address", http.StatusBadGateway)
			return
		}
		defer out.Close()
		w.WriteHeader(http.StatusOK)
		in, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer in.Close()
		open.Add(1)
		defer open.Done()
		ended := make(chan struct{})
		go func() {
			_, _ = io.Copy(out, buffered)
			_ = out.(*net.TCPConn).CloseWrite()
			close(ended)
		}()
		_, _ = io.Copy(in, out)
		_ = in.Close()
		<-ended
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.Listener.Addr().String()
}

// preload is what the browsers that save a HAR run before each document: the seeded script, so that the
// page asks for what it asks for when the HAR is replayed. Nothing of it gets into the HAR.
func preload() string { return inject.NewScript(inject.Options{Date: time.Now()}).Text() }

// savedHARs are what one browser saved of the sample page, by the name that the file gets.
type savedHARs map[string][]byte

// The loads of which a HAR is kept. A reload from the cache is kept because browsers leave bodies out of it.
const (
	firstLoad    = "first"  // by a browser that was never there
	reloaded     = "reload" // after that, with "Disable cache" ticked in the developer tools
	reloadCached = "cached" // the same, with the cache
	harSuffix    = ".zhar"  // compressed with zlib, as mitmproxy does it
)

// saveChromium lets the network panel of Chromium's developer tools save loads of the page. Only the panel
// knows the bodies, so it runs as a page of the same browser, attached to the page's target, and its own
// HAR writer is called.
func saveChromium(t *testing.T, s *stand, site *shop) savedHARs {
	program := testlab.NeedProgram(t, "chromium", "chromium-browser", "google-chrome")
	home := trusting(t, s.origins)
	cmd := exec.Command(program, "--headless=new", "--no-sandbox", "--remote-debugging-port=0", "--remote-allow-origins=*",
		"--user-data-dir="+filepath.Join(home, "profile"), "--proxy-server="+tunnels(t, site), "--disable-component-update",
		"--disable-background-networking", "about:blank")
	cmd.Env = append(os.Environ(), "HOME="+home)
	output, err := cmd.StderrPipe()
	check(t, err)
	check(t, testlab.Start(t, cmd))
	at := firstMatch(t, output, regexp.MustCompile(`DevTools listening on ws://([^/]+)/`))
	ctx, cancel := context.WithTimeout(t.Context(), testlab.Hang)
	defer cancel()
	page, panel := newTarget(ctx, t, at, "about:blank"), newTarget(ctx, t, at, "about:blank")
	panel.call("Page.navigate", map[string]any{
		"url": "devtools://devtools/bundled/inspector.html?ws=" + at + "/devtools/page/" + page.id + "&panel=network",
	})
	const log = `const L = await import('devtools://devtools/bundled/models/logs/logs.js');
		const log = L.NetworkLog.NetworkLog.instance();`
	page.call("Page.enable", nil)
	panel.await(`(async () => { try { ` + log + ` return !!log } catch { return false } })()`)
	for heard := "0"; heard == "0"; { // until the panel hears of the page's requests
		page.call("Page.navigate", map[string]any{"url": "data:text/html,ready"})
		heard = string(panel.evaluate(`(async () => { ` + log + ` return log.requests().length })()`))
	}
	page.call("Page.addScriptToEvaluateOnNewDocument", map[string]any{"source": preload()})
	save := func() []byte {
		page.await(`(async () => document.title !== 'old' && location.href.startsWith("https:") && document.readyState === "complete" &&` +
			shopSettled + `)()`)
		// Requests that are being finished would have no body in the file.
		text := panel.evaluate(`(async () => { ` + log + `
			const H = await import('devtools://devtools/bundled/models/har/har.js');
			while (log.requests().some(r => !r.finished && !r.failed)) await new Promise(r => setTimeout(r, 100));
			let out = '';
			const none = () => {}, progress = {setTitle: none, setTotalWork: none, setWorked: none, incrementWorked: none, isCanceled: () => false, done: none};
			await H.Writer.Writer.write({write: async s => { out += s }}, log.requests(), {sanitize: false}, progress);
			return out })()`)
		page.call("Runtime.evaluate", map[string]any{"expression": "document.title = 'old'"})
		var har string
		check(t, json.Unmarshal(text, &har))
		return []byte(har)
	}
	saved := savedHARs{}
	page.call("Page.navigate", map[string]any{"url": samplesite.Home})
	saved[firstLoad] = save()
	page.call("Network.enable", nil)
	page.call("Network.setCacheDisabled", map[string]any{"cacheDisabled": true})
	page.call("Page.reload", nil)
	saved[reloaded] = save()
	page.call("Network.setCacheDisabled", map[string]any{"cacheDisabled": false})
	page.call("Page.reload", nil)
	saved[reloadCached] = save()
	return saved
}

// firstMatch reads lines until one matches, and returns its group; the rest is read and dropped.
func firstMatch(t *testing.T, r io.Reader, pattern *regexp.Regexp) string {
	var seen bytes.Buffer
	buffer := make([]byte, 4096)
	for {
		n, err := r.Read(buffer)
		seen.Write(buffer[:n])
		if m := pattern.FindSubmatch(seen.Bytes()); m != nil {
			go func() { _, _ = io.Copy(io.Discard, r) }() // ends with the browser
			return string(m[1])
		}
		if err != nil {
			t.Fatalf("wait for %v: %v in %s", pattern, err, seen.Bytes())
		}
	}
}

// target is a page of Chromium and a connection of the DevTools protocol to it.
type target struct {
	ctx  context.Context
	t    *testing.T
	id   string
	conn *websocket.Conn
	last int
}

func newTarget(ctx context.Context, t *testing.T, at, url string) *target {
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://"+at+"/json/new?"+url, nil)
	check(t, err)
	resp, err := http.DefaultClient.Do(req)
	check(t, err)
	defer resp.Body.Close()
	var made struct{ ID string }
	check(t, json.NewDecoder(resp.Body).Decode(&made))
	conn, _, err := websocket.Dial(ctx, "ws://"+at+"/devtools/page/"+made.ID, nil)
	check(t, err)
	t.Cleanup(func() { _ = conn.CloseNow() })
	conn.SetReadLimit(256 << 20)
	return &target{ctx: ctx, t: t, id: made.ID, conn: conn}
}

// call sends a command and returns its result.
func (p *target) call(method string, params any) json.RawMessage {
	p.t.Helper()
	p.last++
	text, err := json.Marshal(map[string]any{"id": p.last, "method": method, "params": params})
	check(p.t, err)
	check(p.t, p.conn.Write(p.ctx, websocket.MessageText, text))
	for {
		_, m, err := p.conn.Read(p.ctx)
		check(p.t, err)
		var reply struct {
			ID            int
			Result, Error json.RawMessage
		}
		check(p.t, json.Unmarshal(m, &reply))
		if reply.ID != p.last {
			continue
		}
		if reply.Error != nil {
			p.t.Fatalf("%s: %s", method, reply.Error)
		}
		return reply.Result
	}
}

// evaluate returns the value of an expression, or of the promise that it is.
func (p *target) evaluate(expression string) json.RawMessage {
	p.t.Helper()
	var v struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	text := p.call("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true})
	check(p.t, json.Unmarshal(text, &v))
	if v.ExceptionDetails != nil {
		p.t.Fatalf("evaluate %.100s: %.500s", expression, v.ExceptionDetails)
	}
	return v.Result.Value
}

// await returns when the expression is true.
func (p *target) await(expression string) {
	p.t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for string(p.evaluate(expression)) != "true" {
		select {
		case <-tick.C:
		case <-p.ctx.Done():
			p.t.Fatalf("wait until %.200s: %v", expression, p.ctx.Err())
		}
	}
}

// saveFirefox lets the network monitor of Firefox save loads of the page, by its own export after each
// load. Whether the cache is used is a setting of the whole browser there, so there are two.
func saveFirefox(t *testing.T, s *stand, site *shop) savedHARs {
	saved := savedHARs{}
	list := firefoxLoads(t, s, site, true)
	saved[firstLoad], saved[reloaded] = list[0], list[1]
	saved[reloadCached] = firefoxLoads(t, s, newShop(t, s), false)[1]
	return saved
}

// firefoxLoads saves the first load and a reload.
func firefoxLoads(t *testing.T, s *stand, site *shop, noCache bool) (list [2][]byte) {
	host, port, err := net.SplitHostPort(tunnels(t, site))
	check(t, err)
	dir := t.TempDir()
	f := startFirefox(t, s.origins, map[string]any{
		"network.proxy.type": 1, "network.proxy.ssl": host, "network.proxy.ssl_port": json.Number(port),
		"devtools.toolbox.selectedTool": "netmonitor", "devtools.netmonitor.har.enableAutoExportToFile": true,
		"devtools.netmonitor.har.defaultLogDir": dir, "devtools.netmonitor.har.forceExport": true,
		"devtools.netmonitor.har.includeResponseBodies": true, "devtools.cache.disabled": noCache,
		"devtools.netmonitor.responseBodyLimit": 64 << 20,
	}, func(cmd *exec.Cmd) error {
		cmd.Args = append(cmd.Args, "--devtools") // a headless Firefox has them too
		return testlab.Start(t, cmd)
	}, http.DefaultTransport)
	f.call(t, "script.addPreloadScript", map[string]any{"functionDeclaration": "() => { " + preload() + " }"}, nil)
	var tree struct{ Contexts []struct{ Context string } }
	f.call(t, "browsingContext.getTree", map[string]any{}, &tree)
	saved := map[string]bool{}
	for i, method := range []string{"browsingContext.navigate", "browsingContext.reload"} {
		params := map[string]any{"context": tree.Contexts[0].Context, "wait": "complete"}
		if i == 0 {
			params["url"] = samplesite.Home
		}
		f.call(t, method, params, nil)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for deadline := time.After(testlab.Hang); list[i] == nil; {
			list[i] = newHAR(t, dir, saved)
			select {
			case <-tick.C:
			case <-deadline:
				t.Fatal("Firefox saved no HAR")
			}
		}
	}
	return list
}

// newHAR returns a complete HAR of the sample page that is not among the seen ones, or nil.
func newHAR(t *testing.T, dir string, seen map[string]bool) []byte {
	files, err := filepath.Glob(filepath.Join(dir, "*.har"))
	check(t, err)
	for _, name := range files {
		content, err := os.ReadFile(name)
		check(t, err)
		if !seen[name] && json.Valid(content) && bytes.Contains(content, []byte(samplesite.Home)) {
			seen[name] = true
			return content
		}
	}
	return nil
}

// shopSettled is true once every part of the sample page has loaded.
const shopSettled = ` document.querySelectorAll('#recommendations img').length === 6
	&& [...document.images].every(i => i.complete && i.naturalWidth)
	&& document.querySelector('#express').textContent.length > 9
	&& document.querySelector('#stock').textContent.length > 9
	&& document.querySelector('#review-count').textContent.length > 3
	&& document.querySelector('#swatch-size').textContent.startsWith('206')`

// slim replaces what is a file of the sample site, in the bodies of a HAR, by its length, so that the
// file stays small; filled puts it back. What a browser saved otherwise than it was sent stays.
func slim(t *testing.T, har []byte, site *shop) []byte {
	whole := eachContent(t, har, func(url string, status int, content map[string]any) {
		text, _ := content["text"].(string)
		if file := site.file(t, url, status); len(text) > 1000 && content["encoding"] == "base64" && text == file {
			content["text"] = fmt.Sprintf("%s%d", slimmed, len(file))
		}
	})
	var out bytes.Buffer
	z, err := zlib.NewWriterLevel(&out, zlib.BestCompression)
	check(t, err)
	_, err = z.Write(whole)
	check(t, err)
	check(t, z.Close())
	return out.Bytes()
}

// slimmed begins a body that was replaced.
const slimmed = "the sample site's file in base64, of length "

func filled(t *testing.T, packed []byte, site *shop) []byte {
	z, err := zlib.NewReader(bytes.NewReader(packed))
	check(t, err)
	har, err := io.ReadAll(z)
	check(t, err)
	return eachContent(t, har, func(url string, status int, content map[string]any) {
		text, _ := content["text"].(string)
		if !strings.HasPrefix(text, slimmed) {
			return
		}
		file := site.file(t, url, status)
		if text != fmt.Sprintf("%s%d", slimmed, len(file)) {
			t.Fatalf("%s is not the file that the browser saved: let the browsers save it again with "+
				"go test ./netlab/replay/conformance -run TestBrowserHAR -save-hars", url)
		}
		content["text"] = file
	})
}

// eachContent changes the contents in a HAR.
func eachContent(t *testing.T, har []byte, change func(url string, status int, content map[string]any)) []byte {
	d := json.NewDecoder(bytes.NewReader(har))
	d.UseNumber()
	var file map[string]any
	check(t, d.Decode(&file))
	for _, entry := range file["log"].(map[string]any)["entries"].([]any) {
		e := entry.(map[string]any)
		response := e["response"].(map[string]any)
		status, err := response["status"].(json.Number).Int64()
		check(t, err)
		if content, ok := response["content"].(map[string]any); ok {
			change(e["request"].(map[string]any)["url"].(string), int(status), content)
		}
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	check(t, encoder.Encode(file))
	return out.Bytes()
}
