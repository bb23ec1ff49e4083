package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/image/box"
	"eidetic/internal/panel"
	"eidetic/systemd"

	"github.com/google/go-cmp/cmp"
)

func TestServeConfigSaysWhere(t *testing.T) {
	cases := []struct {
		name, text string
		want       []string
	}{
		{"unknown field", "log: info\npanel:\n  listn: x\n", []string{"box.yaml", "[3:3]", `unknown field "listn"`}},
		{"wrong type", "panel: 7\n", []string{"box.yaml", "[1:8]"}},
		{"not YAML", "panel: [\n", []string{"box.yaml", "[1:"}},
		{"log level", "\nlog: loud\n", []string{"box.yaml", "2 |", `"loud" is not one of debug, info, warn, error`}},
		{"host name", "box:\n  hostname: Box!\n", []string{"box.yaml", "2 |", "box.hostname", "not a host name"}},
		{"port", "box:\n  device_ports:\n    - ok0\n    - ../x\n", []string{"box.yaml", "4 |", "box.device_ports[1]"}},
		{"address", "panel:\n  listen: \"8080\"\n", []string{"box.yaml", "2 |", "panel.listen", "write host:port"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			cfg := defaultServeConfig()
			err := parseServeConfig("box.yaml", []byte(c.text), &cfg)
			if err == nil {
				t.Fatal("accepted")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is missing in:\n%v", want, err)
				}
			}
		})
	}
}

func TestServeConfigKeepsDefaults(t *testing.T) {
	cfg := defaultServeConfig()
	if err := parseServeConfig("box.yaml", []byte("log: debug\n"), &cfg); err != nil {
		t.Fatal(err)
	}
	want := serveConfig{Log: "debug", Panel: panelConfig{Listen: "127.0.0.1:8080"}, Box: box.DefaultConfig()}
	if d := cmp.Diff(want, cfg); d != "" {
		t.Errorf("configuration (-want +got):\n%s", d)
	}
}

func FuzzServeConfig(f *testing.F) {
	for _, s := range []string{"", "log: info", "panel: {listen: ':8080'}", "panel: &a [*a]", "? x\n: y", "log: !!binary x"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 4096 {
			return
		}
		cfg := defaultServeConfig()
		if parseServeConfig("box.yaml", text, &cfg) != nil {
			return
		}
		if _, err := cfg.level(); err != nil {
			t.Errorf("accepted %q with %v", text, err)
		}
	})
}

func TestServeRefusesWhatItCannotUse(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.yaml")
	if err := os.WriteFile(bad, []byte("colour: blue\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	large := filepath.Join(dir, "large.yaml")
	if err := os.WriteFile(large, bytes.Repeat([]byte("#\n"), maxConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	busy := filepath.Join(dir, "busy.yaml")
	if err := os.WriteFile(busy, []byte("panel: {listen: '"+taken.Addr().String()+"'}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		file, want string
		status     int
	}{
		{bad, `unknown field "colour"`, exitUsage},
		{large, "too many for a configuration", exitUsage},
		{filepath.Join(dir, "none.yaml"), "leave out --config", exitUsage},
		{busy, "is taken by another program", exitCannot},
	}
	for _, c := range cases {
		var out bytes.Buffer
		status := run(t.Context(), []string{"serve", "--config", c.file}, &streams{strings.NewReader(""), &out, &out})
		if status != c.status || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: status %d, want %d; said %q, want %q", filepath.Base(c.file), status, c.status, out.String(), c.want)
		}
	}
}

// The whole service in this process: ready, healthy to a stranger, its part
// seen to turn, stopped in order.
func TestServeTellsHealth(t *testing.T) {
	states := make(chan string, 1000)
	notifier := systemd.NewNotifier(func(s string) error { states <- s; return nil }, 400*time.Millisecond, time.Now)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan error, 1)
	s := &service{config: defaultServeConfig(), data: t.TempDir(), token: newToken(), notifier: notifier, log: slog.New(slog.DiscardHandler)}
	go func() { done <- s.serve(ctx, listener) }()
	if got := <-states; !strings.HasPrefix(got, "READY=1\nSTATUS=panel at http://127.0.0.1:") {
		t.Fatalf("first state %q", got)
	}
	if got := <-states; got != "WATCHDOG=1" {
		t.Errorf("second state %q", got)
	}
	response, err := http.Get("http://" + listener.Addr().String() + "/api/v1/health")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	var got panel.Health
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != 200 || got.Status != "ok" || len(got.Parts) != 2 || got.Parts[0].Name != "network" || got.Parts[1].Name != "panel" {
		t.Errorf("%d %s", response.StatusCode, body)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	for {
		if got := <-states; got == "STOPPING=1\nSTATUS=stopping" {
			return
		}
	}
}

// A stranger gets the health alone; the token, which is made once and kept, opens the rest.
func TestServeKeepsItsToken(t *testing.T) {
	data := t.TempDir()
	for range 2 {
		c := ServeCmd{Data: data}
		token, file, err := c.token()
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if again, _, err := c.token(); err != nil || again != token || len(token) < panel.MinToken || info.Mode().Perm() != 0o600 {
			t.Errorf("token %q, then %q (%v), mode %v", token, again, err, info.Mode())
		}
	}
	short := filepath.Join(data, "short")
	if err := os.WriteFile(short, []byte("abc\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := (ServeCmd{TokenFile: short}).token(); err == nil || !strings.Contains(err.Error(), "3 characters") {
		t.Errorf("a short token: %v", err)
	}
}

func TestDamagedQueueIsPutAside(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, queueFile)
	if err := os.WriteFile(path, bytes.Repeat([]byte("no database "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	queue, err := openQueue(t.Context(), dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer queue.Close()
	if jobs, err := queue.Jobs(t.Context()); err != nil || len(jobs) != 0 {
		t.Errorf("%d jobs, %v", len(jobs), err)
	}
	if _, err := os.Stat(path + ".damaged"); err != nil {
		t.Error(err)
	}
}
