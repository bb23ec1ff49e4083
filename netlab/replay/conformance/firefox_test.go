package conformance

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"eidetic/internal/rigs/testlab"
	"eidetic/netlab/ca"
)

// firefox is a Firefox that uses the box as its explicit proxy and has the box's authority in its
// profile's certificate store. WebDriver BiDi (www.w3.org/TR/webdriver-bidi), which Firefox speaks
// itself, drives it.
type firefox struct {
	conn *websocket.Conn
	last int
}

// quietPrefs keep Firefox from sending requests of its own.
var quietPrefs = map[string]any{
	"app.update.enabled": false, "browser.shell.checkDefaultBrowser": false, "browser.safebrowsing.downloads.enabled": false,
	"browser.safebrowsing.malware.enabled": false, "browser.safebrowsing.phishing.enabled": false, "browser.region.update.enabled": false,
	"browser.newtabpage.activity-stream.feeds.system.topstories": false, "browser.topsites.contile.enabled": false,
	"datareporting.policy.dataSubmissionEnabled": false, "extensions.update.enabled": false, "extensions.getAddons.cache.enabled": false,
	"network.captive-portal-service.enabled": false, "network.connectivity-service.enabled": false, "network.dns.disablePrefetch": true,
	"security.OCSP.enabled": 0, "services.settings.server": "data:,#remote-settings-dummy/v1", "toolkit.telemetry.enabled": false,
	"dom.push.connection.enabled": false, "media.gmp-manager.updateEnabled": false, "privacy.userContext.enabled": true,
}

// newFirefox starts a Firefox that uses the stand.
func newFirefox(t *testing.T, s *stand) *firefox {
	host, port, err := net.SplitHostPort(s.explicit)
	check(t, err)
	prefs := map[string]any{"network.proxy.type": 1}
	for _, scheme := range []string{"http", "ssl"} {
		prefs["network.proxy."+scheme], prefs["network.proxy."+scheme+"_port"] = host, json.Number(port)
	}
	return startFirefox(t, s.authority, prefs, func(cmd *exec.Cmd) error { return testlab.Start(t, cmd) }, http.DefaultTransport)
}

// firefox starts a Firefox in the device's namespace.
func (l *farLab) firefox(t *testing.T) *firefox {
	return startFirefox(t, l.authority, nil, func(cmd *exec.Cmd) error { return start(t, l.device, cmd) }, &http.Transport{
		DialContext: func(_ context.Context, network, addr string) (net.Conn, error) { return dial(l.device, network, addr) },
	})
}

func startFirefox(
	t *testing.T,
	authority *ca.Authority,
	more map[string]any,
	start func(*exec.Cmd) error,
	transport http.RoundTripper,
) *firefox {
	program := testlab.NeedProgram(t, "firefox-esr", "firefox")
	profile, home := testlab.TempDir(t), testlab.TempDir(t)
	trust(t, authority, profile)
	var prefs strings.Builder
	set := func(name string, value any) {
		b, err := json.Marshal(value)
		check(t, err)
		fmt.Fprintf(&prefs, "user_pref(%q, %s);\n", name, b)
	}
	for _, list := range []map[string]any{quietPrefs, more} {
		for name, value := range list {
			set(name, value)
		}
	}
	check(t, os.WriteFile(filepath.Join(profile, "user.js"), []byte(prefs.String()), 0o644))

	cmd := exec.Command(program, "--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0", "about:blank")
	cmd.Env = append(os.Environ(), "HOME="+home, "MOZ_CRASHREPORTER_DISABLE=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StderrPipe()
	check(t, err)
	check(t, start(cmd))
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // its helpers too
		_ = cmd.Wait()
	})
	listening := regexp.MustCompile(`WebDriver BiDi listening on (ws://\S+)`)
	address := make(chan string, 1)
	go func() { // it ends with the browser
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if m := listening.FindStringSubmatch(lines.Text()); m != nil {
				address <- m[1]
			}
		}
		close(address)
	}()
	url, ok := <-address
	if !ok {
		t.Fatal("start Firefox: it ended")
	}
	f := &firefox{}
	ctx, cancel := context.WithTimeout(t.Context(), testlab.Hang)
	defer cancel()
	f.conn, _, err = websocket.Dial(ctx, url+"/session", &websocket.DialOptions{HTTPClient: &http.Client{Transport: transport}})
	check(t, err)
	t.Cleanup(func() { _ = f.conn.CloseNow() })
	f.conn.SetReadLimit(16 << 20)
	f.call(t, "session.new", map[string]any{"capabilities": map[string]any{}}, nil)
	return f
}

// call sends a command and waits for its result.
func (f *firefox) call(t *testing.T, method string, params map[string]any, result any) {
	t.Helper()
	if err := f.try(t, method, params, result); err != nil {
		t.Fatalf("%s %v: %v", method, params, err)
	}
}

// try is call for a command that may fail.
func (f *firefox) try(t *testing.T, method string, params map[string]any, result any) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testlab.Hang)
	defer cancel()
	f.last++
	check(t, wsjson.Write(ctx, f.conn, map[string]any{"id": f.last, "method": method, "params": params}))
	for {
		var m struct {
			ID             int
			Type           string
			Result         json.RawMessage
			Error, Message string
		}
		check(t, wsjson.Read(ctx, f.conn, &m))
		switch {
		case m.ID != f.last:
		case m.Type == "error":
			return fmt.Errorf("%s: %s", m.Error, m.Message)
		case result == nil:
			return nil
		default:
			return json.Unmarshal(m.Result, result)
		}
	}
}

// awaitResult is evaluated in the page.
const awaitResult = `new Promise(done => { const look = () => window.result === undefined ? setTimeout(look, 20) : done(String(window.result)); look(); })`

func (f *firefox) load(t *testing.T, address string) string {
	t.Helper()
	var user struct{ UserContext string }
	f.call(t, "browser.createUserContext", map[string]any{}, &user) // cookies, caches and workers of its own
	defer f.call(t, "browser.removeUserContext", map[string]any{"userContext": user.UserContext}, nil)
	var tab struct{ Context string }
	f.call(t, "browsingContext.create", map[string]any{"type": "tab", "userContext": user.UserContext}, &tab)
	f.call(t, "browsingContext.navigate", map[string]any{"context": tab.Context, "url": address, "wait": "interactive"}, nil)
	var got struct {
		Result           struct{ Value string }
		ExceptionDetails json.RawMessage
	}
	f.call(
		t,
		"script.evaluate",
		map[string]any{"expression": awaitResult, "awaitPromise": true, "target": map[string]any{"context": tab.Context}},
		&got,
	)
	if got.ExceptionDetails != nil {
		t.Fatalf("load %s: %s", address, got.ExceptionDetails)
	}
	return got.Result.Value
}
