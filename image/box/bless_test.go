package box

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/image/fat"
	"eidetic/image/update"

	"github.com/google/go-cmp/cmp"
)

// weakDisk loses its power after some writes.
type weakDisk struct {
	*os.File
	left int
}

func (d *weakDisk) WriteAt(p []byte, at int64) (int, error) {
	if d.left--; d.left < 0 {
		return 0, errors.New("the power is gone")
	}
	return d.File.WriteAt(p, at)
}

// The power fails while the running system is renamed to lose its boot counter, so
// that it has two names.
func TestBlessInterrupted(t *testing.T) {
	b := newFakeBox(t)
	b.esp(t, func(v *fat.Volume) error {
		return errors.Join(v.Mkdir("EFI", time.Now()), v.Mkdir(update.Folder, time.Now()))
	})
	b.create(t, update.Folder+"/appliance_0.2+1-2.efi", "running")
	two := false
	for n := 1; !two; n++ {
		f, err := os.OpenFile(filepath.Join(b.root, "dev/sda1"), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		v, err := fat.Open(&weakDisk{f, n})
		if err != nil {
			t.Fatal(err)
		}
		if err := v.Rename(update.Folder+"/appliance_0.2+1-2.efi", "appliance_0.2.efi"); err == nil {
			t.Fatal("no cut leaves both names")
		}
		b.esp(t, func(v *fat.Volume) error {
			slots, err := update.Slots(v)
			two = len(slots) == 2
			return err
		})
	}
	u := Updater{Root: b.root, Log: slog.New(slog.DiscardHandler), Now: time.Now}
	if err := u.Bless(); err != nil {
		t.Error(err)
	}
	b.esp(t, func(v *fat.Volume) error {
		slots, err := update.Slots(v)
		if d := cmp.Diff([]update.Slot{{File: "appliance_0.2.efi", Version: "0.2", Left: -1}}, slots); d != "" {
			t.Errorf("systems (-want +got):\n%s", d)
		}
		return err
	})
}

// An update fails its check if it cannot read a configuration that the version before it
// could read. A mistake that a person made since then does not count against the update.
func TestConfigAcrossAnUpdate(t *testing.T) {
	const text = "box: {hostname: lab7}\n"
	can := func(string, []byte) (Config, error) { return DefaultConfig(), nil }
	cannot := func(string, []byte) (Config, error) { return DefaultConfig(), errors.New("unknown field") }
	type check = func(string, []byte) (Config, error)
	for _, c := range []struct {
		name     string
		old, new check
		change   string // the text that a person writes after the update; "-" removes the file
		result   string // replaces the saved result, if not empty
		bad      bool
	}{
		{"both versions read it", can, can, "", "", false},
		{"only the old version reads it", can, cannot, "", "", true},
		{"neither version reads it", cannot, cannot, "", "", false},
		{"changed since", can, cannot, "typo\n", "", false},
		{"removed since", can, cannot, "-", "", false},
		{"the saved result belongs to another version", can, cannot, "", `{"version":"0.9","config_sha256":"` + sum([]byte(text)) + `"}`, false},
		{"the saved result is damaged", can, cannot, "", `{`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newFakeBox(t)
			key := b.trust(t)
			b.esp(t, func(v *fat.Volume) error {
				return errors.Join(v.Mkdir("EFI", time.Now()), v.Mkdir(update.Folder, time.Now()))
			})
			b.create(t, update.Folder+"/appliance_0.2.efi", "running")
			b.create(t, ESPConfig, text)
			b.write(t, Incoming, string(sign(t, "0.3", "0", key)))
			u := Updater{Root: b.root, Log: slog.New(slog.DiscardHandler), Now: time.Now, Check: c.old}
			if _, err := u.Install(); err != nil {
				t.Fatal(err)
			}
			b.write(t, "usr/lib/os-release", "IMAGE_VERSION=0.3\n")
			if c.change != "" {
				b.esp(t, func(v *fat.Volume) error { return v.Remove(ESPConfig) })
			}
			if c.change != "" && c.change != "-" {
				b.create(t, ESPConfig, c.change)
			}
			if c.result != "" {
				b.write(t, UpdateResult, c.result)
			}
			u.Check = c.new
			err := u.CheckConfig()
			if (err != nil) != c.bad || c.bad && !strings.Contains(err.Error(), "unknown field") {
				t.Errorf("CheckConfig() = %v, want an error: %t", err, c.bad)
			}
		})
	}
}

// The power fails twice while the configuration is replaced: first after the old one was
// removed, then during the next replacement.
func TestReplaceConfigInterruptedTwice(t *testing.T) {
	for n := 0; ; n++ {
		b := newFakeBox(t)
		b.create(t, espConfigNew, "lab7")
		f, err := os.OpenFile(filepath.Join(b.root, "dev/sda1"), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		v, err := fat.Open(&weakDisk{f, n})
		if err != nil {
			t.Fatal(err)
		}
		cut := replaceConfig(v, []byte("lab7 again"), time.Now())
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if cfg := b.setup().Do(t.Context()); cfg.Hostname != "lab7" {
			t.Fatalf("cut after %d writes: configuration %+v", n, cfg)
		}
		if cut == nil {
			return
		}
	}
}
