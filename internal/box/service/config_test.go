package service

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"eidetic/image/box"
	"eidetic/internal/rigs/testlab"
	"eidetic/internal/web/panel"

	"github.com/google/go-cmp/cmp"
)

func TestConfigSaysWhere(t *testing.T) {
	marked := DefaultConfig()
	if err := ParseConfig("box.yaml", []byte("\ufefflog: debug\r\npanel:\r\n  listen: 127.0.0.1:1\r\n"), &marked); err != nil || marked.Log != "debug" {
		t.Errorf("a configuration with a byte order mark: log %q, %v; want debug", marked.Log, err)
	}
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
		{
			"authority",
			"log: info\nnetwork:\n  trust: test-ca.pem\n",
			[]string{"box.yaml", "3 |", "network.trust", "test-ca.pem: no such file", "write the certificates themselves"},
		},
		{
			"broken authority",
			"network:\n  trust: |\n    -----BEGIN CERTIFICATE-----\n    MIIB\n",
			[]string{"box.yaml", "network.trust", "no certificate in PEM or DER form"},
		},
		{"endless authority", "network: {trust: /dev/zero}", []string{"network.trust", "not a plain file"}},
		{
			"name with a port",
			"panel:\n  hosts:\n    - lab.example.org\n    - lab.example.org:8080\n",
			[]string{"box.yaml", "4 |", "panel.hosts[1]", "without a port"},
		},
		{
			"webhook host with a port",
			"webhooks:\n  allow:\n    - 192.168.3.7\n    - ci.example.org:8080\n",
			[]string{"box.yaml", "4 |", "webhooks.allow[1]", "without a port"},
		},
		{"repository without a command", "repositories:\n  shop:\n    git: /srv/shop.git\n", []string{"box.yaml", "repositories.shop", "deploy", "a command"}},
		{"repository of two kinds", "repositories: {shop: {git: /a, file: /b, deploy: x}}\n", []string{"repositories.shop", "either git"}},
		{"branch that is a flag", "repositories: {shop: {git: /a, branch: --all, deploy: x}}\n", []string{"repositories.shop.branch", "flag"}},
		{"preview without a revision", "repositories: {shop: {git: /a, url: 'https://x.test'}}\n", []string{"repositories.shop.url", "write {revision}"}},
		{"hook without a secret", "repositories: {shop: {git: /a, hook: 'https://x.test'}}\n", []string{"repositories.shop.secret", "signed"}},
		{"mail without TLS", "mail: {server: 'smtp.x.test:25', from: a@x.test, plain: true}\n", []string{"mail.plain", "without TLS"}},
		{"name of a repository", "repositories: {Shop!: {git: /a, deploy: x}}\n", []string{"repositories", "lower-case"}},
		{"label of the box", "fleet:\n  labels:\n    Room: north\n", []string{"box.yaml", "fleet.labels", `"Room"="north"`, "a label has a key of a-z"}},
		{"label of a device", "devices:\n  - port: eth1\n    labels: {model: " + strings.Repeat("x", 101) + "}\n", []string{"box.yaml", "devices[0].labels"}},
		{"label of the browsers", "virtual: {labels: {'a b': c}}\n", []string{"box.yaml", "virtual.labels"}},
		{"address", "panel:\n  listen: \"8080\"\n", []string{"box.yaml", "2 |", "panel.listen", "write host:port"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			cfg := DefaultConfig()
			err := ParseConfig("box.yaml", []byte(c.text), &cfg)
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

func TestConfigKeepsDefaults(t *testing.T) {
	for _, nothing := range []string{"", "# log: debug\n", "---\n"} {
		cfg := DefaultConfig()
		if err := ParseConfig("box.yaml", []byte(nothing), &cfg); err != nil || cmp.Diff(DefaultConfig(), cfg) != "" {
			t.Errorf("ParseConfig(%q) = %v, %+v; want nil and the defaults", nothing, err, cfg)
		}
	}
	cfg := DefaultConfig()
	if err := ParseConfig("box.yaml", []byte("log: debug\n"), &cfg); err != nil {
		t.Fatal(err)
	}
	want := Config{Log: "debug", Panel: panelConfig{Listen: "127.0.0.1:8080"}, Box: box.DefaultConfig()}
	if d := cmp.Diff(want, cfg); d != "" {
		t.Errorf("configuration (-want +got):\n%s", d)
	}
}

// A head takes what it has of a box's configuration; what only a box has would be passed over in silence.
func TestHeadConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "head.yaml")
	load := func(text string) (Config, error) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return LoadHeadConfig(file)
	}
	cfg, err := load("log: warn\nnetwork: {resolver: '192.0.2.53:53'}\nretention: {keep_days: 9}\nrepositories:\n  shop: {git: /srv/shop.git, deploy: 'true'}\n")
	if err != nil || cfg.Log != "warn" || cfg.Retention.KeepDays != 9 || cfg.Repositories["shop"].Git != "/srv/shop.git" {
		t.Errorf("LoadHeadConfig() = %+v, %v; want what is in the file", cfg, err)
	}
	for text, want := range map[string]string{
		"panel: {listen: '127.0.0.1:1'}\n":                                  "head.yaml: panel: this is a box's",
		"log: info\nnetwork: {resolver: '1.2.3.4:53', allow_private: true}": "head.yaml: network.allow_private: this is a box's",
		"browsers:\n  nightly: {command: /x}\n":                             "head.yaml: browsers: this is a box's",
		"repositories:\n  shop: {git: /x}\n":                                "repositories.shop",
	} {
		if _, err := load(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("LoadHeadConfig(%q) = %v; want an error with %q", text, err, want)
		}
	}
}

// Browsers of the configuration are written as in a plan; one that no plan could have is refused with its place.
func TestConfiguredBrowsersAreChecked(t *testing.T) {
	cfg := DefaultConfig()
	const good = "browsers:\n  nightly: {command: /opt/nightly/firefox, prefs: [a=1]}\n  shop: {name: firefox-esr, profile: /srv/shop}\n"
	if err := ParseConfig("box.yaml", []byte(good), &cfg); err != nil || cfg.Browsers["nightly"].Command != "/opt/nightly/firefox" ||
		cfg.Browsers["shop"].Profile != "/srv/shop" {
		t.Errorf("ParseConfig() = %+v, %v; want two browsers", cfg.Browsers, err)
	}
	for text, want := range map[string]string{
		"browsers:\n  nightly: {command: /x, name: firefox}": "browsers.nightly: give it a name or a command",
		"browsers:\n  nightly: {commando: /x}":               "commando",
		"browsers:\n  nightly: {}":                           "browsers.nightly: give it a name",
		"browsers:\n  chromium: {command: /x}":               "browsers.chromium: chromium is the name of that program",
		"browsers:\n  Night ly: {command: /x}":               "browsers: \"Night ly\"",
		"browsers:\n  a: {name: chromium, viewport: 9x9}":    "browsers.a: viewport: ",
		"browsers: [chromium]":                               "browsers",
	} {
		cfg := DefaultConfig()
		if err := ParseConfig("box.yaml", []byte(text), &cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseConfig(%q) = %v; want an error with %q", text, err, want)
		}
	}
}

func FuzzConfig(f *testing.F) {
	for _, s := range []string{"", "log: info", "panel: {listen: ':8080'}", "panel: &a [*a]", "? x\n: y", "log: !!binary x",
		"browsers: {a: {command: /x}, b: firefox, c: {name: chromium, flags: [--x]}}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 4096 {
			return
		}
		cfg := DefaultConfig()
		var err error
		testlab.Bounded(t, 256<<20, func() { err = ParseConfig("box.yaml", text, &cfg) })
		if err != nil {
			return
		}
		if _, err := cfg.Level(); err != nil {
			t.Errorf("accepted %q with %v", text, err)
		}
	})
}

// What the panel lets through, the box takes; what is too much is said so.
func TestBoxSettingsHaveOneBound(t *testing.T) {
	if panel.MaxSettings != box.MaxConfig {
		t.Errorf("the panel takes %d bytes, the box %d; want the same", panel.MaxSettings, box.MaxConfig)
	}
	s := boxSettings{fakeRoot(t)}
	if err := s.Set(t.Context(), strings.Repeat("#", box.MaxConfig)); err != nil {
		t.Errorf("as much as there may be: %v", err)
	}
	var refused *panel.Refusal
	if err := s.Set(t.Context(), strings.Repeat("#", box.MaxConfig+1)); !errors.As(err, &refused) ||
		refused.Status != http.StatusRequestEntityTooLarge {
		t.Errorf("too much: %v", err)
	}
	if err := s.Set(t.Context(), "network: {trust: test-ca.pem}"); !errors.As(err, &refused) ||
		refused.Status != http.StatusUnprocessableEntity {
		t.Errorf("an authority that is not there: %v", err)
	}
}
