package box

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/image/fat"
)

func TestReplaceConfig(t *testing.T) {
	b := newFakeBox(t)
	u := Updater{Root: b.root, Log: slog.New(slog.DiscardHandler), Now: time.Now, Check: b.setup().Check}
	const lab7, lab8 = "box: {hostname: lab7}\n", "box: {hostname: lab7} # the eighth\n"
	for _, text := range []string{lab7, lab8} {
		if err := errors.Join(RequestConfig(b.root, []byte(text)), u.ReplaceConfig()); err != nil {
			t.Fatal(err)
		}
		if cfg := b.setup().Do(t.Context()); cfg.Hostname != "lab7" || b.read(t, ConfigFile) != text {
			t.Errorf(
				"after ReplaceConfig: configuration %+v, %s = %q; want host name lab7, %q",
				cfg,
				ConfigFile,
				b.read(t, ConfigFile),
				text,
			)
		}
	}
	for name, request := range map[string]func() error{
		"a wrong configuration": func() error { return RequestConfig(b.root, []byte("bad\n")) },
		"a link to a secret": func() error {
			return os.Symlink("/etc/shadow", filepath.Join(b.root, ConfigRequest))
		},
		"a file that is too large": func() error {
			return writeFile(filepath.Join(b.root, ConfigRequest), []byte(strings.Repeat("#", MaxConfig+1)), 0o600)
		},
	} {
		if err := request(); err != nil {
			t.Fatal(err)
		}
		if err := u.ReplaceConfig(); err == nil {
			t.Errorf("ReplaceConfig() = nil for %s, want an error", name)
		}
		if _, err := os.Lstat(filepath.Join(b.root, ConfigRequest)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("after ReplaceConfig with %s, Lstat(%s) = %v; want %v", name, ConfigRequest, err, fs.ErrNotExist)
		}
	}
	if err := RequestConfig(b.root, make([]byte, MaxConfig+1)); err == nil {
		t.Errorf("RequestConfig(%d bytes) = nil, want an error", MaxConfig+1)
	}
	b.setup().Do(t.Context())
	if got := b.read(t, ConfigFile); got != lab8 {
		t.Errorf("configuration %q after refused ones, want %q", got, lab8)
	}
}

// The power fails between any two steps of replacing the configuration.
func TestReplaceConfigInterrupted(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"the new file is incomplete": {ESPConfig: "lab7", espConfigNew: "bad"},
		"the old file is removed":    {espConfigNew: "lab7"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFakeBox(t)
			for file, text := range files {
				b.create(t, file, text)
			}
			if cfg := b.setup().Do(t.Context()); cfg.Hostname != "lab7" {
				t.Errorf("configuration %+v, want host name lab7", cfg)
			}
			u := Updater{Root: b.root, Log: slog.New(slog.DiscardHandler), Now: time.Now, Check: b.setup().Check}
			if err := errors.Join(RequestConfig(b.root, []byte("next")), u.ReplaceConfig()); err != nil {
				t.Fatal(err)
			}
			b.esp(t, func(v *fat.Volume) error {
				text, err := v.ReadFile(ESPConfig, MaxConfig)
				if string(text) != "next" {
					t.Errorf("configuration %q", text)
				}
				return err
			})
		})
	}
}

// Another configuration is requested while one is adopted: the box restarts with the later
// one, unless it is wrong.
func TestReplaceConfigAgain(t *testing.T) {
	for _, c := range []struct{ second, want string }{{"second", "second"}, {"bad", "first"}} {
		b := newFakeBox(t)
		u := Updater{Root: b.root, Log: slog.New(slog.DiscardHandler), Now: time.Now}
		checks := 0
		u.Check = func(name string, text []byte) (Config, error) {
			if checks++; checks == 1 {
				if err := RequestConfig(b.root, []byte(c.second)); err != nil {
					t.Error(err)
				}
			}
			return b.setup().Check(name, text)
		}
		if err := errors.Join(RequestConfig(b.root, []byte("first")), u.ReplaceConfig()); err != nil {
			t.Fatal(err)
		}
		b.esp(t, func(v *fat.Volume) error {
			text, err := v.ReadFile(ESPConfig, MaxConfig)
			if string(text) != c.want {
				t.Errorf("configuration %q, want %q", text, c.want)
			}
			return err
		})
		if left, err := filepath.Glob(filepath.Join(b.root, ConfigRequest) + "*"); err != nil || len(left) > 0 {
			t.Errorf("files left over: %v, %v; want none, nil", left, err)
		}
	}
}
