package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
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
		{"authority", "log: info\nnetwork:\n  trust: test-ca.pem\n", []string{"box.yaml", "3 |", "network.trust", "test-ca.pem: no such file", "write the certificates themselves"}},
		{"broken authority", "network:\n  trust: |\n    -----BEGIN CERTIFICATE-----\n    MIIB\n", []string{"box.yaml", "network.trust", "no certificate in PEM form"}},
		{"endless authority", "network: {trust: /dev/zero}", []string{"network.trust", "no plain file"}},
		{"name with a port", "panel:\n  hosts:\n    - lab.example.org\n    - lab.example.org:8080\n", []string{"box.yaml", "4 |", "panel.hosts[1]", "without a port"}},
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
	for _, nothing := range []string{"", "# log: debug\n", "---\n"} {
		cfg := defaultServeConfig()
		if err := parseServeConfig("box.yaml", []byte(nothing), &cfg); err != nil || cmp.Diff(defaultServeConfig(), cfg) != "" {
			t.Errorf("%q: %v, %+v", nothing, err, cfg)
		}
	}
	cfg := defaultServeConfig()
	if err := parseServeConfig("box.yaml", []byte("log: debug\n"), &cfg); err != nil {
		t.Fatal(err)
	}
	want := serveConfig{Log: "debug", Panel: panelConfig{Listen: "127.0.0.1:8080"}, Box: box.DefaultConfig()}
	if d := cmp.Diff(want, cfg); d != "" {
		t.Errorf("configuration (-want +got):\n%s", d)
	}
}

// Two services on one folder would take each other's runs for interrupted ones.
func TestServeHoldsItsFolder(t *testing.T) {
	dir := t.TempDir()
	held, err := holdFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	var out, log bytes.Buffer
	second := ServeCmd{Config: filepath.Join(dir, "box.yaml"), Data: dir}
	if err := os.WriteFile(second.Config, []byte("panel: {listen: '127.0.0.1:0'}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := second.Run(t.Context(), &streams{out: &out, err: &log}); err == nil || !strings.Contains(err.Error(), "another appliance serve uses "+dir) {
		t.Errorf("a second service: %v", err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := holdFolder(dir)
	if err != nil {
		t.Fatal("after the first has ended:", err)
	}
	again.Close()
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
	if err := os.WriteFile(large, bytes.Repeat([]byte("#\n"), box.MaxConfig), 0o600); err != nil {
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
		flag, value, want string
		status            int
	}{
		{"--config", bad, `unknown field "colour"`, exitUsage},
		{"--config", large, "too many for a configuration", exitUsage},
		{"--config", filepath.Join(dir, "none.yaml"), "leave out --config", exitUsage},
		{"--config", busy, "choose another with --listen", exitCannot},
		{"--listen", taken.Addr().String(), "is taken by another program", exitCannot},
		{"--listen", "8081", "give HOST:PORT, such as 127.0.0.1:8081", exitUsage},
	}
	for _, c := range cases {
		var out bytes.Buffer
		status := run(t.Context(), []string{"serve", c.flag, c.value}, &streams{strings.NewReader(""), &out, &out})
		if status != c.status || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s %s: status %d, want %d; said %q, want %q", c.flag, filepath.Base(c.value), status, c.status, out.String(), c.want)
		}
	}
}

// A box whose configuration cannot be used (an authority's file went away, an
// update knows a field no more) starts all the same, and says what it does
// without: its panel is the way to mend it.
func TestBoxStartsWithABadConfiguration(t *testing.T) {
	root := fakeRoot(t)
	const devices = "devices: [{port: enp2s0, name: laptop}]\n"
	for _, c := range []struct{ text, instead, problem string }{
		{devices, "", ""},
		{devices + "network: {trust: gone.pem, resolver: '192.0.2.53:53'}\n", "network.trust", "gone.pem"},
		{devices + "colour: blue\n", "the defaults are used", "colour"},
		{devices + "network: {trust: gone.pem}\ncolour: blue\n", "the defaults are used", "colour"},
	} {
		file := filepath.Join(t.TempDir(), "box.yaml")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, instead, problem := ServeCmd{Config: file}.config(root)
		if (problem == nil) != (c.problem == "") || problem != nil && !strings.Contains(problem.Error(), c.problem) || !strings.Contains(instead, c.instead) || (instead == "") != (c.instead == "") {
			t.Errorf("%q: %q instead, because %v", c.text, instead, problem)
		}
		if strings.Contains(instead, "gone.pem") || strings.Contains(instead, "laptop") {
			t.Errorf("a stranger would read %q", instead)
		}
		if used := len(cfg.Devices) == 1; used != !strings.Contains(c.instead, "defaults") || cfg.Network.Trust != "" {
			t.Errorf("%q: used is %+v", c.text, cfg)
		}
		if _, instead, problem := (ServeCmd{Config: file}).config(t.TempDir()); instead != "" || (problem == nil) != (c.problem == "") {
			t.Errorf("%q on a machine of one's own: %q instead, because %v", c.text, instead, problem)
		}
	}
	cfg, instead, problem := ServeCmd{Config: filepath.Join(root, "none.yaml")}.config(root)
	if problem == nil || instead == "" || cfg.Log != "info" {
		t.Errorf("without a file: %+v, %q, %v", cfg, instead, problem)
	}
}

// What the panel lets through, the box takes; what is too much is said so.
func TestBoxSettingsHaveOneBound(t *testing.T) {
	if panel.MaxSettings != box.MaxConfig {
		t.Errorf("the panel takes %d bytes, the box %d", panel.MaxSettings, box.MaxConfig)
	}
	s := boxSettings{fakeRoot(t)}
	if err := s.Set(t.Context(), strings.Repeat("#", box.MaxConfig)); err != nil {
		t.Errorf("as much as there may be: %v", err)
	}
	var refused *panel.Refusal
	if err := s.Set(t.Context(), strings.Repeat("#", box.MaxConfig+1)); !errors.As(err, &refused) || refused.Status != http.StatusRequestEntityTooLarge {
		t.Errorf("too much: %v", err)
	}
	if err := s.Set(t.Context(), "network: {trust: test-ca.pem}"); !errors.As(err, &refused) || refused.Status != http.StatusUnprocessableEntity {
		t.Errorf("an authority that is not there: %v", err)
	}
}

// The whole service in this process: ready, healthy to a stranger, its part
// seen to turn, stopped in order.
func TestServeTellsHealth(t *testing.T) {
	states := make(chan string, 1000)
	notifier := systemd.NewNotifier(func(s string) error { states <- s; return nil }, 10*time.Second, time.Now) // a part that stalls for seconds turns
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan error, 1)
	data := t.TempDir()
	cutOff := filepath.Join(data, archivesDir, incoming+"1") // in an upload, when the service before was killed
	if err := errors.Join(os.Mkdir(filepath.Dir(cutOff), 0o755), os.WriteFile(cutOff, []byte("PK"), 0o600)); err != nil {
		t.Fatal(err)
	}
	s := &service{config: defaultServeConfig(), data: data, token: newToken(), notifier: notifier, warnings: []string{"mend me"}, log: slog.New(slog.DiscardHandler)}
	go func() { done <- s.serve(ctx, listener) }()
	if got := <-states; !strings.HasPrefix(got, "READY=1\nSTATUS=panel at http://127.0.0.1:") {
		t.Fatalf("first state %q", got)
	}
	if got := <-states; got != "WATCHDOG=1" {
		t.Errorf("second state %q", got)
	}
	if _, err := os.Stat(cutOff); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("half an upload is still there (%v)", err)
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
	if response.StatusCode != 200 || got.Status != "ok" || len(got.Warnings) != 1 || len(got.Parts) != 2 || got.Parts[0].Name != "network" || got.Parts[1].Name != "panel" {
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

// A queue that cannot be opened and is not damaged stays where it is; the box
// starts without it.
func TestQueueThatCannotBeOpened(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, queueFile)
	if err := os.Mkdir(path, 0o755); err != nil { // no file, whoever asks
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
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		t.Errorf("it was put aside (%v)", err)
	}
}
