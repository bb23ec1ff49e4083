package box

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"eidetic/image/fat"
	"eidetic/image/update"
)

func TestStick(t *testing.T) {
	b := newFakeBox(t)
	key := b.trust(t)
	b.esp(t, func(v *fat.Volume) error {
		return errors.Join(v.Mkdir("EFI", time.Now()), v.Mkdir(update.Folder, time.Now()))
	})
	b.create(t, update.Folder+"/appliance_0.2.efi", "running")
	b.create(t, update.Folder+"/appliance_0.5+0-3.efi", "given up")
	u := Updater{Root: b.root, Log: slog.New(slog.DiscardHandler), Now: time.Now}
	for _, c := range []struct {
		name  string
		files map[string][]byte
		want  string // the version installed, or a part of the error
		err   error
	}{
		{"empty", nil, "no update", ErrNoUpdate},
		{"other files", map[string][]byte{"holiday.jpg": []byte("x"), "readme.txt": []byte("y")}, "no update", ErrNoUpdate},
		{"not a bundle", map[string][]byte{"a.update": []byte("garbage garbage garbage")}, "a.update: update: damaged", ErrNoUpdate},
		{"nothing newer", map[string][]byte{"a.update": sign(t, "0.2", "0", key)}, "not newer", ErrNoUpdate},
		{"given up before", map[string][]byte{"a.update": sign(t, "0.5", "0", key)}, "did not become healthy", ErrNoUpdate},
		{"the newest of those that fit", map[string][]byte{
			"old.update": sign(t, "0.1", "0", key), "A.UPDATE": sign(t, "0.3", "0", key), "longer-name.update": sign(t, "0.4", "0", key),
			"z.update": sign(t, "0.9", "0.8", key),
		}, "0.4", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			stick, err := os.Create(filepath.Join(b.root, "dev/sdb1"))
			if err != nil {
				t.Fatal(err)
			}
			defer stick.Close()
			const size = 280 << 20
			if err := errors.Join(stick.Truncate(size), fat.Format(stick, size, 2, "STICK")); err != nil {
				t.Fatal(err)
			}
			v, err := fat.Open(stick)
			if err != nil {
				t.Fatal(err)
			}
			for name, text := range c.files {
				if err := v.Create(name, int64(len(text)), bytes.NewReader(text), time.Now()); err != nil {
					t.Fatal(err)
				}
			}
			r, err := u.Stick("dev/sdb1")
			if c.err != nil {
				if !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("Stick() = %v, want %v with %q", err, c.err, c.want)
				}
				return
			}
			if err != nil || r.Version != c.want {
				t.Fatalf("Stick() = %+v, %v; want version %s, nil", r, err, c.want)
			}
			if got := b.read(t, UpdateResult); !strings.Contains(got, c.want) {
				t.Errorf("result %q", got)
			}
		})
	}
	// If the data partition is full, the installed update is started nevertheless.
	if err := os.RemoveAll(filepath.Join(b.root, UpdateResult)); err != nil {
		t.Fatal(err)
	}
	b.write(t, UpdateResult+"/in the way", "")
	b.esp(t, func(v *fat.Volume) error { return v.Remove(update.Folder + "/appliance_0.4+3.efi") })
	if r, err := u.Stick("dev/sdb1"); err != nil || r.Version != "0.4" {
		t.Errorf("Stick() with a full data partition = %+v, %v; want the update installed, nil", r, err)
	}
	// A stick with another file system gives an error and changes nothing.
	b.write(t, "dev/sdc1", strings.Repeat("NTFS", 1000))
	if _, err := u.Stick("dev/sdc1"); !errors.Is(err, ErrNoUpdate) {
		t.Errorf("Stick() with another file system = %v, want %v", err, ErrNoUpdate)
	}
}
