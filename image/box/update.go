package box

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"eidetic/image/fat"
	"eidetic/image/update"

	"golang.org/x/sys/unix"
)

const (
	// Incoming is where the service puts a whole update bundle, by a rename.
	Incoming = dataDir + "/state/update/ready.update"
	// UpdateRequest is the empty file that makes appliance-update.service take it.
	UpdateRequest = "run/appliance/requests/update"
	// UpdateResult tells the service how it went.
	UpdateResult = dataDir + "/state/update/result.json"
	// bootID is the kernel's random name of each boot (random(4)).
	bootID    = "proc/sys/kernel/random/boot_id"
	updateKey = "usr/lib/appliance/update.pub"
)

// Updater changes the systems on the EFI partition. It runs apart from the
// service, which has no access to disks.
type Updater struct {
	Root string // the file system, / on a box
	Log  *slog.Logger
	Now  func() time.Time
	// Check is that of Setup. Nil where no configuration is touched.
	Check func(name string, text []byte) (Config, error)
}

// Result is what became of an update.
type Result struct {
	Version string `json:"version,omitempty"`
	Error   string `json:"error,omitempty"`
	// BootID names the boot in which it was installed, or refused. Until the
	// next one an update that was installed waits for the restart.
	BootID string `json:"boot_id,omitempty"`
	// Config is the SHA-256, in hex, of the configuration on the EFI partition,
	// if the version that installed the update could read it.
	Config string `json:"config_sha256,omitempty"`
}

func (u Updater) path(name string) string { return filepath.Join(u.Root, name) }

// Install takes the incoming bundle. Whatever becomes of it, the bundle is
// removed and the result written; the caller restarts the box on success.
func (u Updater) Install() (Result, error) {
	var r Result
	m, err := u.install()
	r.Version = m.Version
	if err != nil {
		r.Error = err.Error()
	}
	return r, errors.Join(u.keepResult(r, err), remove(u.path(Incoming)), remove(u.path(UpdateRequest)))
}

// keepResult writes the result and returns err, which is what became of the
// update. One that was installed is, and is started, even if a full data partition has no
// room to say so.
func (u Updater) keepResult(r Result, err error) error {
	kept := u.writeResult(r)
	if err == nil && kept != nil {
		u.Log.Warn("the update is installed, but nobody will be told", "error", kept)
		return nil
	}
	return errors.Join(err, kept)
}

// writeResult keeps what became of an update for the panel and the console, and
// for the system that was installed.
func (u Updater) writeResult(r Result) error {
	r.BootID = u.bootID()
	if r.Error == "" {
		r.Config = u.readable()
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return writeFile(u.path(UpdateResult), append(text, '\n'), 0o644)
}

// readResult reads it again; nil when there was no update.
func (u Updater) readResult() (*Result, error) {
	text, err := os.ReadFile(u.path(UpdateResult))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r := new(Result)
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s: %w", UpdateResult, err)
	}
	return r, nil
}

// bootID names this boot; "" where the kernel does not say.
func (u Updater) bootID() string {
	text, _ := os.ReadFile(u.path(bootID))
	return strings.TrimSpace(string(text))
}

// remove removes a file that may be gone already.
func remove(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (u Updater) install() (update.Manifest, error) {
	key, err := u.key()
	if err != nil {
		return update.Manifest{}, err
	}
	bundle, err := os.Open(u.path(Incoming))
	if err != nil {
		return update.Manifest{}, err
	}
	defer func() { _ = bundle.Close() }()
	var m update.Manifest
	err = u.withESP(func(v *fat.Volume, running update.Slot) error {
		m, err = update.Install(v, bundle, key, running.File, u.Now())
		return err
	})
	return m, err
}

// Bless marks the running system as healthy.
func (u Updater) Bless() error {
	return u.withESP(func(v *fat.Volume, running update.Slot) error { return update.Bless(v, running.File) })
}

// withESP opens the EFI partition for writing, clears up after interruptions,
// which may have left the running system with two names, and finds that system.
func (u Updater) withESP(f func(*fat.Volume, update.Slot) error) error {
	version, err := u.version()
	if err != nil {
		return err
	}
	return u.withVolume(func(v *fat.Volume) error {
		if err := update.Recover(v); err != nil {
			return err
		}
		running, err := update.Running(v, version)
		if err != nil {
			return err
		}
		return f(v, running)
	})
}

// withVolume opens the EFI partition for writing.
func (u Updater) withVolume(f func(*fat.Volume) error) error {
	disk, err := BootDisk(u.Root)
	if err != nil {
		return err
	}
	dev, err := os.OpenFile(u.path(disk.ESP), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = dev.Close() }() // what counts was synced
	// An update, a blessing, a reset and a configuration may meet here.
	if err := unix.Flock(int(dev.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", disk.ESP, err)
	}
	v, err := fat.Open(dev)
	if err != nil {
		return err
	}
	return f(v)
}

// version is the image's, from os-release(5).
func (u Updater) version() (string, error) {
	text, err := os.ReadFile(u.path("usr/lib/os-release"))
	if err != nil {
		return "", err
	}
	for _, line := range strings.Split(string(text), "\n") {
		if v, ok := strings.CutPrefix(line, "IMAGE_VERSION="); ok {
			return v, nil
		}
	}
	return "", errors.New("/usr/lib/os-release: no IMAGE_VERSION")
}

// key is the public key that the image was built with (PEM, PKIX).
func (u Updater) key() (ed25519.PublicKey, error) {
	text, err := os.ReadFile(u.path(updateKey))
	if err != nil {
		return nil, fmt.Errorf("this image takes no updates: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("/%s: not PEM", updateKey)
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("/%s: %w", updateKey, err)
	}
	public, ok := key.(ed25519.PublicKey)
	if !ok {
		return nil, fmt.Errorf("/%s: not an Ed25519 key", updateKey)
	}
	return public, nil
}

// AwaitHealth asks url until it has answered 200 for steady, and gives up after within.
func AwaitHealth(ctx context.Context, client *http.Client, url string, steady, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var since time.Time
	last := errors.New("it was never asked")
	for {
		if err := askHealth(ctx, client, url); err != nil {
			if ctx.Err() == nil {
				last = err
			}
			since = time.Time{}
		} else if since.IsZero() {
			since = time.Now()
		} else if time.Since(since) >= steady {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not healthy within %v: %w", within, last)
		case <-time.After(steady / 5):
		}
	}
}

func askHealth(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("health says %s", response.Status)
	}
	return nil
}
