package main

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"eidetic/internal/lab"
	"eidetic/netlab/archive"
)

// ownPage is an application as a developer runs it: on any port, with a script that asks
// its own origin, and with what a browser grants to a page of this machine alone.
func ownPage(asked func(*http.Request)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked(r)
		switch r.URL.Path {
		case "/":
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, `<!doctype html><title>own</title><link rel="icon" href="data:,"><body style="background:#dff">
<h1 id="h">loading</h1><script>fetch("/api?secure="+isSecureContext+"&origin="+location.origin).then(r=>r.text()).then(t=>{h.textContent=t})</script>`)
		case "/api":
			fmt.Fprint(w, "at "+r.Host)
		default:
			http.NotFound(w, r)
		}
	})
}

// serveOwn serves ownPage at an address, and returns its port.
func serveOwn(t *testing.T, address string, overTLS bool, asked func(*http.Request)) (s *httptest.Server, port string) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s = &httptest.Server{Listener: l, Config: &http.Server{Handler: ownPage(asked)}}
	if overTLS {
		s.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	_, port, err = net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return s, port
}

// TestMeasureOwnServers measures a page of localhost over TLS against one of [::1] in
// one command, and replays pages of other local addresses when their servers are gone.
func TestMeasureOwnServers(t *testing.T) {
	needLab(t)
	var mu sync.Mutex
	var secure []string
	asked := func(r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.URL.Path == "/api" {
			secure = append(secure, r.URL.Query().Get("secure"))
		}
	}
	four, fourPort := serveOwn(t, "127.0.0.1:0", true, asked)
	_, sixPort := serveOwn(t, "[::1]:0", false, asked)
	out := t.TempDir()
	page, other := "https://localhost:"+fourPort+"/", "http://[::1]:"+sixPort+"/"

	refused := finishCmd(t, appliance(t, "measure", page, "--no-serve", "--out", filepath.Join(out, "none")))
	if refused.status != exitCannot || !strings.Contains(refused.err, "--insecure-origin") {
		t.Errorf("an unknown certificate: status %d, %q; want %d and the flag", refused.status, refused.err, exitCannot)
	}
	got := finishCmd(t, appliance(t, "measure", page, "--against", other, "--trials", "1", "--insecure-origin", "--no-serve", "--out", out))
	t.Log(got.out)
	dir, run := readRun(t, out)
	if len(run.Trials) < 2 {
		t.Fatalf("status %d, %d trials: %s%s; want both arms", got.status, len(run.Trials), got.out, got.err)
	}
	for _, trial := range run.Trials {
		if !trial.Valid && !slowed(trial) {
			t.Errorf("trial %d of the %s is invalid: %q", trial.Number, trial.Arm, trial.Invalid)
		}
		for _, born := range trial.Machine.Born {
			if born.Name == "renderer" {
				t.Errorf("trial %d: %d of the browser's processes were born within a load that needs none", trial.Number, born.Count)
			}
		}
		lines := bag(t, dir, trial)
		if len(lines) != 2 || !strings.Contains(strings.Join(lines, "\n"), "secure=true") || trial.Misses != 0 {
			t.Errorf("trial %d of the %s asked for %q with %d misses; want the page and its API, in a secure context",
				trial.Number, trial.Arm, lines, trial.Misses)
		}
	}
	if !slices.Equal(secure, []string{"true", "true"}) {
		t.Errorf("the servers were asked in contexts that are secure: %q; want one recording each, in a secure one", secure)
	}
	if text := strings.Join(run.Warnings, "\n"); !strings.Contains(text, "--insecure-origin") {
		t.Errorf("the warnings are %q; want the certificates that were not verified", text)
	}

	// The server is gone, and the page is asked for under its recorded name.
	four.Close()
	file, log := filepath.Join(dir, "archive.wacz"), filepath.Join(out, "log")
	if a, err := archive.Open(file); err != nil || a.Pages()[0].URL != page {
		t.Fatalf("the recording: %v; want the page %s", err, page)
	}
	replayed := finishCmd(t, appliance(t, "replay", "--archive", file, "--log", log, "--still", "500ms", page))
	text, err := os.ReadFile(log)
	if replayed.status != exitGood || err != nil {
		t.Fatalf("replay: status %d, %v: %s", replayed.status, err, replayed.err)
	}
	for line := range strings.Lines(string(text)) {
		var s lab.Served
		if err := json.Unmarshal([]byte(line), &s); err != nil || s.Stage != lab.StageExact && s.Stage != lab.StageBox {
			t.Errorf("replay: %v, %s; want exact answers", err, line)
		}
	}
}

// What cannot be recorded leaves no file and is told at once.
func TestRecordOfADeadServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	dir := t.TempDir()
	got := finishCmd(t, appliance(t, "record", "--archive", filepath.Join(dir, "a.wacz"), "http://"+l.Addr().String()+"/"))
	if got.status != exitCannot || !strings.Contains(got.err, "nothing listens on "+l.Addr().String()) {
		t.Errorf("status %d, %q; want %d and what is wrong", got.status, got.err, exitCannot)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v; want nothing", left, err)
	}
}

// TestMeasureWithoutAPage: without a page the command says that one is missing, and how it is written.
func TestMeasureWithoutAPage(t *testing.T) {
	var out, errs bytes.Buffer
	status := run(t.Context(), []string{"measure"}, &streams{strings.NewReader(""), &out, &errs})
	if status != exitUsage || !strings.Contains(errs.String(), "name the page") {
		t.Errorf("status %d, %q", status, errs.String())
	}
}
