package box

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf16"

	"eidetic/image/fat"
	"eidetic/image/update"

	"github.com/google/go-cmp/cmp"
)

const partUUID = "0f1e2d3c-1111-2222-3333-444455556666"

// fakeBox is the file system of a box, with an EFI partition in a file.
type fakeBox struct {
	root string
	ran  []string
	log  bytes.Buffer
	// answers are the results of programs, by the beginning of their command line.
	answers map[string]answer
}

// answer is a program's output and exit status.
type answer struct {
	out    string
	status exitCode
}

type exitCode int

func (e exitCode) Error() string { return "exit status" }
func (e exitCode) ExitCode() int { return int(e) }

func newFakeBox(t *testing.T) *fakeBox {
	t.Helper()
	b := &fakeBox{root: t.TempDir()}
	variable := []byte{6, 0, 0, 0}
	for _, u := range utf16.Encode([]rune(strings.ToUpper(partUUID) + "\x00")) {
		variable = append(variable, byte(u), byte(u>>8))
	}
	b.write(t, "sys/firmware/efi/efivars/LoaderDevicePartUUID-"+loaderVendor, string(variable))
	b.write(t, ConfigFile, "log: info\n")
	b.write(t, "dev/disk/by-partlabel/appliance-data", "")
	b.write(t, "usr/lib/os-release", "ID=eidetic\nIMAGE_VERSION=0.2\n")
	b.link(t, "dev/disk/by-partuuid/"+partUUID, "../../sda1")
	b.link(t, "sys/class/block/sda1", "../../devices/pci0/block/sda/sda1")
	esp, err := os.Create(filepath.Join(b.root, "dev/sda1"))
	if err != nil {
		t.Fatal(err)
	}
	defer esp.Close()
	const size = 280 << 20
	if err := errors.Join(esp.Truncate(size), fat.Format(esp, size, 1, "TEST")); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *fakeBox) write(t *testing.T, name, text string) {
	t.Helper()
	if err := writeFile(filepath.Join(b.root, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (b *fakeBox) read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(b.root, name))
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

func (b *fakeBox) link(t *testing.T, name, target string) {
	t.Helper()
	file := filepath.Join(b.root, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.Symlink(target, file)); err != nil {
		t.Fatal(err)
	}
}

// esp changes the EFI partition.
func (b *fakeBox) esp(t *testing.T, f func(v *fat.Volume) error) {
	t.Helper()
	dev, err := os.OpenFile(filepath.Join(b.root, "dev/sda1"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	v, err := fat.Open(dev)
	if err != nil {
		t.Fatal(err)
	}
	if err := f(v); err != nil {
		t.Fatal(err)
	}
}

func (b *fakeBox) create(t *testing.T, path, text string) {
	b.esp(t, func(v *fat.Volume) error {
		return v.Create(path, int64(len(text)), strings.NewReader(text), time.Unix(1767225600, 0))
	})
}

func (b *fakeBox) setup() Setup {
	return Setup{
		Root: b.root,
		Run: func(_ context.Context, name string, args ...string) ([]byte, error) {
			line := filepath.Base(name) + " " + strings.ReplaceAll(strings.Join(args, " "), b.root, "")
			b.ran = append(b.ran, line)
			for begin, a := range b.answers {
				if strings.HasPrefix(line, begin) && a.status != 0 {
					return []byte(a.out), a.status
				} else if strings.HasPrefix(line, begin) {
					return []byte(a.out), nil
				}
			}
			return nil, nil
		},
		Log: slog.New(slog.NewTextHandler(&b.log, nil)), CPUs: 4, Patience: 40 * time.Second, User: serviceID(os.Getuid()), Group: serviceID(os.Getgid()),
		Check: func(name string, text []byte) (Config, error) {
			cfg := DefaultConfig()
			if strings.Contains(string(text), "bad") {
				return cfg, errors.New(name + ": bad")
			}
			if strings.Contains(string(text), "lab7") {
				cfg.Hostname = "lab7"
			}
			return cfg, nil
		},
	}
}

// serviceID is that of another than own where that can be: only root gives files away.
func serviceID(own int) int {
	if own == 0 && os.Getuid() == 0 {
		return 900
	}
	return own
}

func TestSetup(t *testing.T) {
	b := newFakeBox(t)
	b.create(t, ESPConfig, "box: {hostname: lab7}\n")
	if cfg := b.setup().Do(t.Context()); cfg.Hostname != "lab7" {
		t.Errorf("configuration %+v", cfg)
	}
	want := []string{
		"systemd-repart --dry-run=no --no-pager --json=short --definitions=/usr/lib/appliance/repart.d /dev/sda",
		"udevadm settle --timeout=40",
		"e2fsck -p /dev/disk/by-partlabel/appliance-data",
		"systemd-makefs ext4 /dev/disk/by-partlabel/appliance-data",
		"systemctl start var-lib-appliance.mount",
		"systemd-growfs /var/lib/appliance",
	}
	if d := cmp.Diff(want, b.ran[:min(len(b.ran), len(want))]); d != "" {
		t.Errorf("programs (-want +got):\n%s", d)
	}
	if got := b.read(t, "etc/hostname"); got != "lab7\n" {
		t.Errorf("host name %q, want lab7", got)
	}
	if got := b.read(t, "run/systemd/system/appliance.slice.d/50-cpus.conf"); !strings.Contains(got, "AllowedCPUs=1-3") {
		t.Errorf("processors: %q", got)
	}
	token := b.read(t, TokenFile)
	if len(strings.TrimSpace(token)) != tokenLetters {
		t.Errorf("token %q", token)
	}
	for _, name := range []string{dataDir + "/state", filepath.Dir(Incoming)} {
		var st syscall.Stat_t
		if err := syscall.Stat(filepath.Join(b.root, name), &st); err != nil || int(st.Uid) != serviceID(os.Getuid()) || st.Mode&0o777 != 0o700 {
			t.Errorf("%s: %v, owner %d, mode %o; want the service's own folder", name, err, st.Uid, st.Mode)
		}
	}
	b.setup().Do(t.Context())
	if again := b.read(t, TokenFile); again != token {
		t.Errorf("token %q at the second boot, want %q as at the first", again, token)
	}
	if b.log.Len() > 0 {
		t.Errorf("log:\n%s\nwant nothing", b.log.String())
	}
}

// A data partition that cannot be written: there is still a token. Only root and the
// service may read secrets.
func TestSetupKeepsSecrets(t *testing.T) {
	b := newFakeBox(t)
	b.create(t, ESPConfig, "box: {hostname: lab7}\n")
	b.write(t, keptToken+"/in the way", "")
	b.setup().Do(t.Context())
	if len(strings.TrimSpace(b.read(t, TokenFile))) != tokenLetters || !strings.Contains(b.log.String(), "step=token") {
		t.Errorf("token %q; log: %s", b.read(t, TokenFile), b.log.String())
	}
	for _, name := range []string{TokenFile, ConfigFile} {
		if st, err := os.Stat(filepath.Join(b.root, name)); err != nil || st.Mode() != 0o640 {
			t.Errorf("%s: %v, %v", name, st.Mode(), err)
		}
	}
}

// A broken configuration, and a machine without our disk: Setup logs both and goes on.
func TestSetupGoesOn(t *testing.T) {
	b := newFakeBox(t)
	b.create(t, ESPConfig, "bad\n")
	if cfg := b.setup().Do(t.Context()); cfg.Hostname != "box" {
		t.Errorf("configuration %+v", cfg)
	}
	// The panel shows the person's own text, so that they can correct it.
	if got := b.read(t, ConfigFile); got != "bad\n" {
		t.Errorf("the panel would show the configuration %q", got)
	}
	if !strings.Contains(b.log.String(), "appliance.yaml: bad") {
		t.Errorf("log: %s", b.log.String())
	}
	if err := os.RemoveAll(filepath.Join(b.root, "sys")); err != nil {
		t.Fatal(err)
	}
	b.log.Reset()
	b.setup().Do(t.Context())
	if !strings.Contains(b.log.String(), "kept in memory only") || b.read(t, TokenFile) == "" {
		t.Errorf("log without a disk: %s", b.log.String())
	}
}

// trust gives the box a public key that it accepts updates from, and returns the private key.
func (b *fakeBox) trust(t *testing.T) ed25519.PrivateKey {
	t.Helper()
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	b.write(t, updateKey, string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})))
	return key
}

func TestUpdater(t *testing.T) {
	b := newFakeBox(t)
	key := b.trust(t)
	b.write(t, bootID, "this boot\n")
	b.esp(t, func(v *fat.Volume) error {
		return errors.Join(v.Mkdir("EFI", time.Now()), v.Mkdir(update.Folder, time.Now()))
	})
	b.create(t, update.Folder+"/appliance_0.2+1-2.efi", "running")
	u := Updater{Root: b.root, Log: slog.New(slog.DiscardHandler), Now: time.Now}
	if err := u.Bless(); err != nil {
		t.Fatal(err)
	}
	var bundle bytes.Buffer
	if err := update.Sign(&bundle, update.Manifest{Version: "0.3", Minimum: "0"}, []byte("fresh"), key); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ bundle, want, result string }{
		{"garbage, more than a header has", "damaged", `"error":`},
		{bundle.String(), "", `{"version":"0.3","boot_id":"this boot"}`},
	} {
		b.write(t, Incoming, c.bundle)
		b.write(t, UpdateRequest, "")
		if _, err := u.Install(); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("Install() = %v, want an error with %q", err, c.want)
		}
		if got := b.read(t, UpdateResult); !strings.Contains(got, c.result) {
			t.Errorf("result %q, want %q", got, c.result)
		}
		for _, name := range []string{Incoming, UpdateRequest} {
			if _, err := os.Stat(filepath.Join(b.root, name)); err == nil {
				t.Errorf("%s still exists after Install, want it removed", name)
			}
		}
	}
	b.esp(t, func(v *fat.Volume) error {
		slots, err := update.Slots(v)
		want := []update.Slot{{File: "appliance_0.2.efi", Version: "0.2", Left: -1}, {File: "appliance_0.3+3.efi", Version: "0.3", Left: 3}}
		if d := cmp.Diff(want, slots); d != "" {
			t.Errorf("systems (-want +got):\n%s", d)
		}
		return err
	})
}

// The kernel finds a USB stick again seconds after the firmware has booted from it.
func TestSetupWaitsForTheBootDisk(t *testing.T) {
	b := newFakeBox(t)
	link := filepath.Join(b.root, "dev/disk/by-partuuid", partUUID)
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.setup().Do(t.Context())
	}()
	select {
	case <-done:
		t.Fatalf("Do returned before the boot disk appeared; log: %s", b.log.String())
	case <-time.After(300 * time.Millisecond):
	}
	b.link(t, "dev/disk/by-partuuid/"+partUUID, "../../sda1")
	<-done
	if b.log.Len() > 0 || len(b.ran) == 0 {
		t.Errorf("programs run: %v; log:\n%s\nwant an empty log", b.ran, b.log.String())
	}
	// The disk never appears: Setup logs that and goes on.
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	s := b.setup()
	s.Patience = 200 * time.Millisecond
	s.Do(t.Context())
	if !strings.Contains(b.log.String(), "kept in memory only") {
		t.Errorf("log %q", b.log.String())
	}
}

// A link that the service put in the way of its folder does not make root change a file elsewhere.
func TestStateFollowsNoLinkOut(t *testing.T) {
	b := newFakeBox(t)
	outside := filepath.Join(t.TempDir(), "victim")
	if err := os.MkdirAll(filepath.Join(outside, "update"), 0o700); err != nil {
		t.Fatal(err)
	}
	bundle := filepath.Join(outside, "update", filepath.Base(Incoming))
	if err := os.WriteFile(bundle, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(b.root, dataDir, "state")
	if err := os.MkdirAll(filepath.Dir(state), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, state); err != nil {
		t.Fatal(err)
	}
	if err := b.setup().state(); err == nil {
		t.Error("state() followed a link out of the data partition")
	}
	if _, err := os.Stat(bundle); err != nil {
		t.Errorf("a file outside was removed: %v", err)
	}
}
