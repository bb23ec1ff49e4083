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

// TestData checks which programs run on the data partition, by what the programs before found.
func TestData(t *testing.T) {
	const table = "Applying changes.\n" +
		`[{"type":"esp","label":"appliance-esp","activity":"unchanged"},` +
		`{"type":"linux-generic","label":"appliance-data","activity":"%"}]` + "\n"
	for _, c := range []struct {
		name    string
		answers map[string]answer
		want    string // the names of the programs that run
		log     string
	}{
		{"new", map[string]answer{"systemd-repart": {out: strings.ReplaceAll(table, "%", "create")}},
			"systemd-repart udevadm systemd-makefs systemctl systemd-growfs", ""},
		{"unchanged", map[string]answer{"systemd-repart": {out: strings.ReplaceAll(table, "%", "unchanged")}},
			"systemd-repart udevadm e2fsck systemd-makefs systemctl systemd-growfs", ""},
		{"journal replayed", map[string]answer{"e2fsck -p": {status: 1}},
			"systemd-repart udevadm e2fsck systemd-makefs systemctl systemd-growfs", ""},
		{"damaged", map[string]answer{"e2fsck -p": {status: 4}, "e2fsck -y": {"FIXED.", 1}},
			"systemd-repart udevadm e2fsck e2fsck systemd-makefs systemctl systemd-growfs", "is repaired"},
		{"power cut before it had a file system", map[string]answer{"e2fsck": {status: 8}},
			"systemd-repart udevadm e2fsck e2fsck systemd-makefs systemctl systemd-growfs", ""},
		{"beyond repair", map[string]answer{"e2fsck": {status: 4}},
			"systemd-repart udevadm e2fsck e2fsck", "beyond repair"},
		{"no table", map[string]answer{"systemd-repart": {"no GPT", 1}},
			"systemd-repart", "no GPT"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newFakeBox(t)
			b.answers = c.answers
			b.setup().Do(t.Context())
			var ran []string
			for _, line := range b.ran {
				if name, _, _ := strings.Cut(line, " "); name != "hostnamectl" && line != "systemctl daemon-reload" {
					ran = append(ran, name)
				}
			}
			if got := strings.Join(ran, " "); got != c.want {
				t.Errorf("ran %s, want %s", got, c.want)
			}
			if got := b.log.String(); !strings.Contains(got, c.log) || c.log == "" && got != "" {
				t.Errorf("log %q, want %q", got, c.log)
			}
		})
	}
}

// A request for a factory reset is a file on the EFI partition, so that a person can create
// it with any computer, and a reset that a power cut interrupts is repeated.
func TestFactoryReset(t *testing.T) {
	b := newFakeBox(t)
	b.create(t, ESPConfig, "box: {hostname: lab7}\n")
	u := Updater{Root: b.root, Log: slog.New(slog.DiscardHandler), Now: time.Now}
	for range 2 { // a second request changes nothing
		if err := errors.Join(RequestReset(b.root), u.MarkReset()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(b.root, ResetRequest)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after MarkReset, Stat(%s) = %v; want %v", ResetRequest, err, fs.ErrNotExist)
	}
	b.answers = map[string]answer{"wipefs": {"no such device", 1}}
	b.setup().Do(t.Context())
	if !b.setup().resetRequested("dev/sda1") {
		t.Error("the reset request was removed although wiping failed")
	}
	b.answers, b.ran = nil, nil
	b.write(t, ConfigFile, "log: info\n") // /etc is in memory
	if cfg := b.setup().Do(t.Context()); cfg.Hostname != "box" {
		t.Errorf("host name %q after a factory reset, want \"box\"", cfg.Hostname)
	}
	if got := strings.Join(b.ran, "\n"); !strings.Contains(got, "wipefs -a -f /dev/disk/by-partlabel/appliance-data\nsystemd-makefs") {
		t.Errorf("programs run:\n%s\nwant wipefs followed by systemd-makefs", got)
	}
	b.esp(t, func(v *fat.Volume) error {
		entries, err := v.List("")
		if len(entries) != 0 {
			t.Errorf("the EFI partition has %v after a factory reset, want no files", entries)
		}
		return err
	})
}
