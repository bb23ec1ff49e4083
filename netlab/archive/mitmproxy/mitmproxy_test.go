package mitmproxy

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/testlab"
	"eidetic/netlab/archive"
)

// testdata has what TestExport exports, of mitmproxy 8.1.1 of Debian 12, for releases that have no mitmproxy:
//
//	go test ./netlab/archive/mitmproxy -run TestExport -update
var update = flag.Bool("update", false, "write testdata anew, from the mitmproxy of this machine")

// samples are the exports, plain and compressed, and the flows themselves.
var samples = [...]string{"export.har", "export.zhar", flows}

const flows = "export.flows"

// resource is what the origin has at a path.
type resource struct {
	kind, body string
	gzip       bool
}

var binary = strings.Repeat("\x00\xff\x80PNG", 20)

func resources() map[string]resource {
	return map[string]resource{
		"/":            {kind: "text/html; charset=utf-8", body: "<!doctype html><title>Größe – ☃</title>\n", gzip: true},
		"/latin1":      {kind: "text/plain; charset=iso-8859-1", body: "Gr\xf6\xdfe in Latin 1\n"},
		"/unsaid":      {kind: "text/plain", body: "Größe in UTF-8, and no charset\n"},
		"/unsaid.html": {kind: "text/html", body: "<meta charset=utf-8><p>Größe\n"},
		"/broken":      {kind: "text/plain; charset=utf-8", body: "a byte \xf6 that is no UTF-8, \\ucafe and ☃ and 𝄞\n"},
		"/binary":      {kind: "image/png", body: binary},
		"/style.css":   {kind: "text/css", body: "p::before { content: '→' }\n", gzip: true},
		"/empty":       {kind: "text/plain"},
	}
}

func origin(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // what came is answered
	switch {
	case r.Method == "POST":
		w.Header().Add("Set-Cookie", "a=1; Path=/; Expires=Wed, 02 Jan 2030 03:04:05 GMT")
		w.Header().Add("Set-Cookie", "b=2; Secure; HttpOnly")
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write(body)
		return
	case r.URL.Path == "/moved":
		http.Redirect(w, r, "/?from=moved&x=1&x=2", http.StatusFound)
		return
	case r.URL.Path == "/nothing":
		w.WriteHeader(http.StatusNoContent)
		return
	}
	x, ok := resources()[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	text := []byte(x.body)
	if x.gzip {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write(text)
		_ = z.Close()
		text = b.Bytes()
		w.Header().Set("Content-Encoding", "gzip")
	}
	w.Header().Set("Content-Type", x.kind)
	_, _ = w.Write(text)
}

// bodies are sent by POST.
func bodies() map[string]string {
	return map[string]string{
		"application/x-www-form-urlencoded": "name=Gr%C3%B6%C3%9Fe&a=1&a=2",
		"application/json":                  `{"q":"Größe"}`,
		"application/octet-stream":          "bytes \x00\xf6\xff, then text",
	}
}

func TestSample(t *testing.T) {
	for _, name := range samples {
		t.Run(name, func(t *testing.T) {
			a, err := archive.Open(filepath.Join("testdata", name))
			if err != nil {
				t.Fatal(err)
			}
			check(t, a, name == flows)
		})
	}
}

// check compares what was imported with what the origin served. isCoded: bodies have their content coding.
func check(t *testing.T, a *archive.Archive, isCoded bool) {
	t.Helper()
	if w := a.Warnings(); len(w) > 0 {
		t.Errorf("warnings: %q", w)
	}
	if !strings.HasPrefix(a.Options().Software, "mitmproxy") {
		t.Errorf("made by %q", a.Options().Software)
	}
	found := map[string]*lab.Exchange{}
	for _, e := range a.Exchanges() {
		u, err := url.Parse(e.URL)
		if err != nil {
			t.Fatal(err)
		}
		found[e.Method+" "+u.RequestURI()] = e
		if e.Protocol != "h2" || !e.Server.Addr().IsLoopback() || e.Wall.IsZero() || e.Truncated != "" {
			t.Errorf("%s %s: %s from %s at %v, %q", e.Method, e.URL, e.Protocol, e.Server, e.Wall, e.Truncated)
		}
	}
	get := func(key string, status int) *lab.Exchange {
		t.Helper()
		e := found[key]
		if e == nil {
			t.Fatalf("%s is not in the export: %v", key, found)
		}
		if e.Status != status {
			t.Errorf("%s: status %d instead of %d", key, e.Status, status)
		}
		return e
	}
	for path, x := range resources() {
		e := get("GET "+path, 200)
		body, err := archive.Decoded(&e.Response)
		hasCoding := e.Response.Get("Content-Encoding") != ""
		if err != nil || string(body) != x.body || e.Response.Get("Content-Type") != x.kind || hasCoding != (isCoded && x.gzip) {
			t.Errorf("%s: %q, %v, %v; served was %q, %s", path, body, err, e.Response.Header, x.body, x.kind)
		}
		if n := e.Response.Get("Content-Length"); n != fmt.Sprint(len(e.Response.Body)) {
			t.Errorf("%s: Content-Length %s of %d bytes", path, n, len(e.Response.Body))
		}
	}
	if e := get("HEAD /binary", 200); len(e.Response.Body) > 0 || e.Response.Get("Content-Length") != fmt.Sprint(len(binary)) {
		t.Errorf("HEAD: %d bytes, %v", len(e.Response.Body), e.Response.Header)
	}
	if e := get("GET /moved", 302); e.Response.Get("Location") != "/?from=moved&x=1&x=2" {
		t.Errorf("redirect: %v", e.Response.Header)
	}
	get("GET /nothing", 204)
	get("GET /missing", 404)
	for kind, body := range bodies() {
		e := get("POST /echo?"+url.Values{"kind": {kind}}.Encode(), 200)
		if string(e.Request.Body) != body || string(e.Response.Body) != body {
			t.Errorf("%s: asked with %q, answered with %q, sent was %q", kind, e.Request.Body, e.Response.Body, body)
		}
		cookies := 0
		for _, f := range e.Response.Header {
			if strings.EqualFold(f.Name, "Set-Cookie") {
				cookies++
			}
		}
		if cookies != 2 {
			t.Errorf("%s: cookies of %v", kind, e.Response.Header)
		}
	}
}

// TestExport has the installed mitmproxy record and export, plain and compressed.
func TestExport(t *testing.T) {
	testlab.Long(t, "the export of TestSample, made anew by mitmproxy itself")
	program := testlab.NeedPackage(t, "mitmproxy", "mitmdump")
	server := httptest.NewUnstartedServer(http.HandlerFunc(origin))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	for _, name := range samples {
		file := filepath.Join(t.TempDir(), name)
		export(t, program, server.URL, file)
		a, err := archive.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		check(t, a, name == flows)
		if *update {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join("testdata", name), data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// export asks the origin for all that it has through mitmproxy.
func export(t *testing.T, program, origin, file string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	_, port, _ := net.SplitHostPort(addr)
	args := []string{
		"-q", "--set", "confdir=" + t.TempDir(), "--set", "ssl_insecure=true",
		"--listen-host", "127.0.0.1", "--listen-port", port,
	}
	if filepath.Base(file) == flows {
		args = append(args, "-w", file)
	} else {
		args = append(args, harOptions(t, program, file)...)
	}
	var said bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := testlab.Start(t, cmd); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // then it writes
		if err := cmd.Wait(); err != nil {
			t.Fatalf("mitmdump: %v: %s", err, said.String())
		}
	}()
	listens(t, addr)
	client := &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: addr}), ForceAttemptHTTP2: true,
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableCompression: true,
		},
	}
	defer client.CloseIdleConnections()
	ask := func(method, path, kind, body string) {
		r, err := http.NewRequest(method, origin+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if kind != "" {
			r.Header.Set("Content-Type", kind)
		}
		answer, err := client.Do(r)
		if err != nil {
			t.Fatalf("%s %s: %v: %s", method, path, err, said.String())
		}
		defer answer.Body.Close()
		if _, err := io.Copy(io.Discard, answer.Body); err != nil {
			t.Fatal(err)
		}
	}
	for path := range resources() {
		ask("GET", path, "", "")
	}
	for _, path := range []string{"/moved", "/nothing", "/missing"} {
		ask("GET", path, "", "")
	}
	ask("HEAD", "/binary", "", "")
	for kind, body := range bodies() {
		ask("POST", "/echo?"+url.Values{"kind": {kind}}.Encode(), kind, body)
	}
}

// harOptions are those by which mitmproxy writes a HAR.
func harOptions(t *testing.T, program, file string) []string {
	t.Helper()
	args := []string{"--set", "hardump=" + file}
	// Since 10.1 that is built in; before, it came as a script.
	const script = "/usr/share/doc/mitmproxy/examples/contrib/har_dump.py"
	options, err := exec.Command(program, "--options").Output()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(options), "hardump") {
		_, err := os.Stat(script)
		testlab.Need(t, err == nil, script+" of the package mitmproxy, which this system leaves out")
		args = append(args, "-s", script)
	}
	return args
}

// listens waits until mitmproxy takes connections.
func listens(t *testing.T, addr string) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for range 1200 {
		if c, err := net.Dial("tcp", addr); err == nil {
			_ = c.Close()
			return
		}
		<-tick.C
	}
	t.Fatal("mitmdump does not listen after a minute")
}
