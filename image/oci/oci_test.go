package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"eidetic/internal/rigs/testlab"
)

// made is the image, as make oci writes it.
const made = "../../out/oci/eidetic.tar"

// engine runs containers of the image.
type engine interface {
	// run prepares a container with the options of docs/container.md and a command.
	run(ctx context.Context, options, command []string) *exec.Cmd
}

// documented returns the options of the line "podman run OPTIONS eidetic COMMAND" in docs/container.md.
func documented(t *testing.T, command string) []string {
	t.Helper()
	text, err := os.ReadFile("../../docs/container.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^podman run (.*) eidetic ` + command).FindSubmatch(text)
	if m == nil {
		t.Fatalf("docs/container.md has no line podman run … eidetic %s", command)
	}
	return strings.Fields(string(m[1]))
}

// TestContainer does what docs/container.md promises: the demo, whose panel answers, and the
// service behind TLS, with the rights that it names and no fewer.
func TestContainer(t *testing.T) {
	testlab.Long(t, "the demo, in a container")
	testlab.NeedRoot(t)
	_, err := os.Stat(made)
	testlab.Need(t, err == nil, "the image: make oci")
	e := choose(t)
	options := documented(t, "demo")

	if _, ok := e.(*podman); ok {
		t.Run("rights", func(t *testing.T) { checkRights(t, e, options) })
	}
	t.Run("demo", func(t *testing.T) {
		// The demo makes trials again that a busy machine spoils: half as many as were asked for, at most. Of two it
		// would be one.
		at := freePort(t)
		lines := start(t, e, options, []string{"demo", "--trials", "4", "--listen", at, "--out", "/tmp/demo"})
		said := await(t, lines, "The panel is at http://"+at)
		var list struct {
			Runs []struct {
				State string
				Valid int
			}
		}
		get(t, "http://"+at+"/api/v1/runs", &list)
		if len(list.Runs) != 1 || list.Runs[0].State != "done" || list.Runs[0].Valid < 2 {
			t.Errorf("the panel lists %+v; want one run that is done, with two valid trials or more:\n%s", list.Runs, said)
		}
		var health struct{ Status string }
		if get(t, "http://"+at+"/api/v1/health", &health); health.Status != "ok" {
			t.Errorf("health %+v; want ok", health)
		}
	})
	t.Run("service", func(t *testing.T) {
		at := freePort(t)
		_, port, _ := net.SplitHostPort(at)
		lines := start(t, e, options, []string{"serve", "--listen", "0.0.0.0:" + port, "--data", "/var/lib/appliance"})
		said := await(t, lines, "asks for the token")
		var health struct {
			Status, Fingerprint string
			Token, Starts       bool
		}
		seen := get(t, "https://"+at+"/api/v1/health", &health)
		if health.Status != "ok" || !health.Token || !health.Starts || health.Fingerprint != seen {
			t.Errorf("health %+v; want ok, a token, runs, and the certificate's fingerprint %s", health, seen)
		}
		if !strings.Contains(said, "kept in /var/lib/appliance/token") {
			t.Errorf("the service says %q; want where its token is, and not the token: a log is read by others", said)
		}
	})
}

// checkRights takes each of the documented rights away: appliance doctor says what is lacking then.
func checkRights(t *testing.T, e engine, all []string) {
	check := func(options []string, want bool) {
		t.Helper()
		out, _ := e.run(t.Context(), options, []string{"doctor", "packet", "sandbox"}).CombinedOutput()
		if good := strings.Contains(string(out), "ok  packet") && strings.Contains(string(out), "ok  sandbox"); good != want {
			t.Errorf("with %s: packet and sandbox work: %v, want %v:\n%s", strings.Join(options, " "), good, want, out)
		}
	}
	check(all, true)
	for _, right := range []string{"--cap-add SYS_CHROOT", "--security-opt unmask=ALL"} {
		without := strings.Fields(strings.Replace(strings.Join(all, " "), right, "", 1))
		if len(without) == len(all) {
			t.Fatalf("docs/container.md does not give %s", right)
		}
		check(without, false)
	}
}

// freePort is an address at which nobody listens.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// start runs a container until the test ends, and returns its lines.
func start(t *testing.T, e engine, options, command []string) *bufio.Scanner {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testlab.Hang)
	cmd := e.run(ctx, options, command)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = w, w
	cmd.WaitDelay = time.Minute
	if err := testlab.Start(t, cmd); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was killed
		// The pipe ends when the last process of the container has ended.
		if err := r.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Error(err)
		}
		if _, err := io.Copy(io.Discard, r); err != nil {
			t.Errorf("processes of the container are left: %v", err)
		}
		_ = r.Close()
	})
	return bufio.NewScanner(r)
}

// await reads lines until one holds the text, and returns all so far.
func await(t *testing.T, lines *bufio.Scanner, text string) string {
	t.Helper()
	var all strings.Builder
	for lines.Scan() {
		fmt.Fprintln(&all, lines.Text())
		if strings.Contains(lines.Text(), text) {
			return all.String()
		}
	}
	t.Fatalf("the container ended without %q:\n%s", text, all.String())
	return ""
}

func get(t *testing.T, url string, out any) (fingerprint string) {
	t.Helper()
	return getAs(t, "", url, out)
}

// getAs decodes an answer of a panel, and returns the SHA-256 of its certificate.
func getAs(t *testing.T, token, url string, out any) (fingerprint string) {
	t.Helper()
	client := http.Client{Timeout: testlab.Hang, Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // the caller compares the fingerprint
	}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("GET %s = %s, %v: %s", url, answer.Status, err, text)
	}
	if err := json.Unmarshal(text, out); err != nil {
		t.Fatalf("GET %s: %v: %s", url, err, text)
	}
	if answer.TLS == nil {
		return ""
	}
	return sha256Of(answer.TLS.PeerCertificates[0].Raw)
}
