package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/samplesite"
	"eidetic/internal/rigs/testlab"
	"eidetic/netlab/archive"
	"eidetic/netlab/ca"
	"eidetic/netlab/nstest"
)

// proxied is a record or replay that listens.
type proxied struct {
	cmd  *exec.Cmd
	url  *url.URL
	said <-chan string // all that it printed, once it has ended
}

// listens starts a command and waits until it names its proxy.
func listens(t *testing.T, args ...string) *proxied {
	t.Helper()
	cmd := appliance(t, args...)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = write, write
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	write.Close()
	found, said := make(chan *url.URL, 1), make(chan string, 1)
	go func() {
		defer close(found)
		defer read.Close()
		var all strings.Builder
		address := regexp.MustCompile(`^  proxy +(http://\S+)$`)
		for lines := bufio.NewScanner(read); lines.Scan(); {
			fmt.Fprintln(&all, lines.Text())
			if m := address.FindStringSubmatch(lines.Text()); m != nil {
				if u, err := url.Parse(m[1]); err == nil {
					found <- u
				}
			}
		}
		said <- all.String()
	}()
	p := &proxied{cmd: cmd, said: said}
	if p.url = <-found; p.url == nil {
		t.Fatalf("%v: %v\n%s", args, cmd.Wait(), <-said)
	}
	return p
}

// get asks through the proxy.
func (p *proxied) get(t *testing.T, roots *x509.CertPool, address string) (status int, body string) {
	t.Helper()
	tr := &http.Transport{Proxy: http.ProxyURL(p.url), TLSClientConfig: &tls.Config{RootCAs: roots}}
	defer tr.CloseIdleConnections()
	resp, err := (&http.Client{Transport: tr, Timeout: testlab.Hang}).Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// interrupt presses Ctrl-C and returns how it ended.
func (p *proxied) interrupt(t *testing.T) (status int, said string) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	said = <-p.said
	_ = p.cmd.Wait() // the status says it
	return p.cmd.ProcessState.ExitCode(), said
}

func TestRecordAndReplayByProxy(t *testing.T) {
	hits := 0
	origin := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits++
		fmt.Fprintf(w, "%s, answer %d", r.URL.Path, hits)
	}))
	defer origin.Close()
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	root := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: origin.Certificate().Raw})
	if err := os.WriteFile(in("root.pem"), root, 0o644); err != nil {
		t.Fatal(err)
	}
	record := listens(t, "record", "--archive", in("a.wacz"), "--proxy", "127.0.0.1:0", "--ca-dir", in("ca"), "--trust", in("root.pem"), "--allow-private")
	authority, err := ca.LoadOrCreate(in("ca"), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if _, body := record.get(t, authority.Pool(), origin.URL+"/a"); body != "/a, answer 1" {
		t.Errorf("recording: %q", body)
	}
	if status, body := record.get(t, nil, "http://box.test/ca.pem"); status != 200 || body != string(authority.PEM()) {
		t.Errorf("the certificate through the proxy: %d %q", status, body)
	}
	if status, said := record.interrupt(t); status != exitGood || !strings.Contains(said, "1 exchanges") ||
		!strings.Contains(said, "score 1.000") {
		t.Errorf("recording ended with %d:\n%s", status, said)
	}

	replay := listens(
		t,
		"replay",
		"--archive",
		in("a.wacz"),
		"--proxy",
		"127.0.0.1:0",
		"--ca-dir",
		in("ca"),
		"--miss",
		"fail",
		"--log",
		in("log.jsonl"),
	)
	for _, c := range []struct {
		path   string
		status int
	}{{"/a", 200}, {"/a", 200}, {"/never", 404}} {
		if status, _ := replay.get(t, authority.Pool(), origin.URL+c.path); status != c.status {
			t.Errorf("replaying %s: %d, want %d", c.path, status, c.status)
		}
	}
	status, said := replay.interrupt(t)
	if status != exitFailed || !strings.Contains(said, "3 requests, 2 exact, 1 miss; replay_confidence 0.667") ||
		!strings.Contains(said, origin.URL+"/never") {
		t.Errorf("replaying ended with %d:\n%s", status, said)
	}
	if hits != 1 {
		t.Errorf("the origin was asked %d times, want once, while recording", hits)
	}
	if log, err := os.ReadFile(in("log.jsonl")); err != nil || strings.Count(string(log), "\n") != 3 ||
		!strings.Contains(string(log), `"stage":"miss"`) {
		t.Errorf("the log (%v):\n%s", err, log)
	}

	fill := listens(
		t,
		"replay",
		"--archive",
		in("a.wacz"),
		"--proxy",
		"127.0.0.1:0",
		"--ca-dir",
		in("ca"),
		"--miss",
		"fill",
		"--fill",
		in("b.wacz"),
		"--trust",
		in("root.pem"), "--allow-private",
	)
	for range 2 {
		if _, body := fill.get(t, authority.Pool(), origin.URL+"/b"); body != "/b, answer 2" {
			t.Errorf("what was missing is filled with %q", body)
		}
	}
	if status, said := fill.interrupt(t); status != exitGood || !strings.Contains(said, "1 exact, 1 live") {
		t.Errorf("filling ended with %d:\n%s", status, said)
	}
	if a, err := archive.Open(in("b.wacz")); err != nil || len(a.Exchanges()) != 1 {
		t.Errorf("the filled archive: %v", err)
	}
}

func TestRecordAndReplayRefuse(t *testing.T) {
	dir := t.TempDir()
	shop := shopArchive(t)
	junk := filepath.Join(dir, "junk")
	if err := os.WriteFile(junk, []byte("junk"), 0o644); err != nil {
		t.Fatal(err)
	}
	fresh := filepath.Join(dir, "new.wacz")
	for _, c := range []struct {
		args string
		says string
	}{
		{"record --archive " + fresh, "say what to record"},
		{"record --archive " + fresh + " --proxy 127.0.0.1:0 https://a.test/", "exclude each other"},
		{"record --archive " + fresh + " --min-score NaN https://a.test/", "--min-score NaN: from 0 to 1"},
		{"archive verify --min-score 95 " + fresh, "--min-score 95: from 0 to 1"},
		{"record --archive " + fresh + " shop.example", "http"},
		{"record --archive " + fresh + " --proxy localhost:8080", "127.0.0.1:8080"},
		{"record --archive " + fresh + " --proxy 127.0.0.1:0 --trust " + junk + " --ca-dir " + dir, "no certificate in PEM or DER form"},
		{"record --archive " + shop + " https://a.test/", "--force"},
		{"record --archive " + dir + "/none/a.wacz https://a.test/", "mkdir"},
		{"record --archive " + fresh + " --limit 1s --still 2s https://a.test/", "the limit no shorter"},
		{"replay --archive " + junk, "--archive"},
		{"replay --archive " + shop + " --timing soon", "fixed:20ms"},
		{"replay --archive " + shop + " --miss fill", "--fill B.wacz"},
		{"replay --archive " + shop + " --http3", "--https"},
		{"replay --archive " + shop + " --http3 --https 127.0.0.1:0 --link lte", "leave one of the two out"},
		{"replay --archive " + shop + " --link warp", "--link"},
		{"replay --archive " + shop + " --https 443", "IP:PORT"},
		{"replay --archive " + shop + " --log " + dir + "/none/log", "--log"},
	} {
		got := finishCmd(t, appliance(t, strings.Fields(c.args)...))
		if got.status != exitUsage || !strings.Contains(got.err, c.says) {
			t.Errorf("%s: status %d, %q; want %d and %q", c.args, got.status, got.err, exitUsage, c.says)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*.w*")); err != nil || len(left) > 0 {
		t.Errorf("what was refused left %v", left)
	}
}

// TestPagesAreRecordedAndReplayed does both with browsers of our own, from
// origins in another process, which are gone while replaying.
func TestPagesAreRecordedAndReplayed(t *testing.T) {
	needLab(t)
	if !nstest.Inside(t) {
		return
	}
	here := nstest.Here(t)
	seen := map[string]bool{}
	for _, a := range samplesite.Hosts() {
		seen[a.String()] = true
	}
	seen[samplesite.Resolver().Addr().String()] = true
	for a := range seen {
		here.Address(t, "lo", a+"/32")
	}
	dir := t.TempDir()
	root, shop := filepath.Join(dir, "root.pem"), filepath.Join(dir, "shop.wacz")
	site := appliance(t, "site", "--ca-out", root)
	out, err := site.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := site.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the site says %q (%v)", line, err)
	}
	stop := func() { _ = site.Process.Kill(); _ = site.Wait() } // it may be gone
	defer stop()
	record := func() result {
		return finishCmd(
			t,
			appliance(
				t,
				"record",
				"--archive",
				shop,
				"--force",
				"--resolver",
				samplesite.Resolver().String(),
				"--trust",
				root,
				"--allow-private", // all origins are at addresses of this machine
				samplesite.Home,
			),
		)
	}
	if got := record(); got.status != exitGood || !strings.Contains(got.out, "score 1.000") {
		t.Fatalf("recording: %+v", got)
	}
	stop()
	log := filepath.Join(dir, "log.jsonl")
	got := finishCmd(t, appliance(t, "replay", "--archive", shop, "--timing", "none", "--log", log, samplesite.Home))
	if got.status != exitGood || !strings.Contains(got.out, "replay_confidence 1.000") || strings.Contains(got.out, string(lab.StageMiss)) {
		t.Errorf("replaying: %+v", got)
	}
	if got := finishCmd(t, appliance(t, "replay", "--archive", shop, samplesite.Home+"none")); got.status != exitFailed ||
		!strings.Contains(got.err, samplesite.Home+"none") {
		t.Errorf("a page that was not recorded: %+v", got)
	}
	if got := finishCmd(t, appliance(t, "replay", "--archive", shop, "https://other.example:8443/")); got.status != exitUsage ||
		!strings.Contains(got.err, "nothing of other.example:8443 is in "+shop+", whose first page is "+samplesite.Home) {
		t.Errorf("a page of another host: %+v", got)
	}
	a, err := archive.Open(shop)
	if err != nil {
		t.Fatal(err)
	}
	if p := a.Pages(); len(p) != 1 || p[0].URL != samplesite.Home {
		t.Errorf("pages %v", p)
	}
}

// What a proxy records reaches neither this machine, unless it may, nor the proxy itself.
func TestRecordReachesNoPrivateAddress(t *testing.T) {
	hits := 0
	origin := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits++ }))
	defer origin.Close()
	dir := t.TempDir()
	shut := listens(t, "record", "--archive", filepath.Join(dir, "a.wacz"), "--proxy", "127.0.0.1:0", "--ca-dir", dir)
	if status, body := shut.get(t, nil, origin.URL); status != http.StatusBadGateway || !strings.Contains(body, "--allow-private") || hits != 0 {
		t.Errorf("without --allow-private: %d %q, asked %d times; want 502 and the flag", status, body, hits)
	}
	shut.interrupt(t)
	open := listens(t, "record", "--archive", filepath.Join(dir, "b.wacz"), "--proxy", "127.0.0.1:0", "--ca-dir", dir, "--allow-private")
	if status, _ := open.get(t, nil, origin.URL); status != http.StatusOK || hits != 1 {
		t.Errorf("with --allow-private: %d, asked %d times; want 200 from the origin", status, hits)
	}
	if status, body := open.get(t, nil, open.url.String()+"/"); status != http.StatusBadGateway || !strings.Contains(body, "itself") {
		t.Errorf("the proxy asked for itself: %d %q; want 502 and why", status, body)
	}
	open.interrupt(t)
}
