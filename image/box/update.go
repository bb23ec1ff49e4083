package box

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	// Incoming is the complete update bundle, which the service puts here by a rename.
	Incoming = dataDir + "/state/update/ready.update"
	// UpdateRequest is the empty file that makes appliance-update.service install Incoming.
	UpdateRequest = "run/appliance/requests/update"
	// UpdateResult is the file with the Result, for the service.
	UpdateResult = dataDir + "/state/update/result.json"
	// bootID is the kernel's random name of each boot (random(4)).
	bootID    = "proc/sys/kernel/random/boot_id"
	updateKey = "usr/lib/appliance/update.pub"
)

// Updater changes the systems on the EFI partition. It runs in units of its own,
// because the service has no access to disks.
type Updater struct {
	Root string // the file system, / on a box
	Log  *slog.Logger
	Now  func() time.Time
	// Check is Setup.Check; nil where no configuration is read.
	Check func(name string, text []byte) (Config, error)
}

// Result is the result of an update.
type Result struct {
	Version string `json:"version,omitempty"`
	Error   string `json:"error,omitempty"`
	// BootID names the boot during which the update was installed or refused. Until
	// the next boot, an installed update waits for the restart.
	BootID string `json:"boot_id,omitempty"`
	// Config is the SHA-256, in hex, of the configuration on the EFI partition,
	// if the version that installed the update could read it.
	Config string `json:"config_sha256,omitempty"`
}

func (u Updater) path(name string) string { return filepath.Join(u.Root, name) }

// Install installs the incoming bundle. In any case it removes the bundle and
// writes the result; the caller restarts the box on success.
func (u Updater) Install() (Result, error) {
	var r Result
	m, err := u.install()
	r.Version = m.Version
	if err != nil {
		r.Error = err.Error()
	}
	return r, errors.Join(u.saveResult(r, err), remove(u.path(Incoming)), remove(u.path(UpdateRequest)))
}

// saveResult writes the result and returns err, the error of the update. An installed
// update stays installed, and is started, even if the result does not fit on a full
// data partition.
func (u Updater) saveResult(r Result, err error) error {
	kept := u.writeResult(r)
	if err == nil && kept != nil {
		u.Log.Warn("the update is installed, but its result cannot be saved", "error", kept)
		return nil
	}
	return errors.Join(err, kept)
}

// writeResult writes the result for the panel, for the console, and for the
// installed system.
func (u Updater) writeResult(r Result) error {
	r.BootID = u.bootID()
	if r.Error == "" {
		r.Config = u.readableConfig()
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return writeFile(u.path(UpdateResult), append(text, '\n'), 0o644)
}

// readResult reads the result; it returns nil if there was no update.
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

// bootID names this boot; "" if the kernel does not tell.
func (u Updater) bootID() string {
	text, _ := os.ReadFile(u.path(bootID))
	return strings.TrimSpace(string(text))
}

// remove removes a file; a file that does not exist is no error.
func remove(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (u Updater) install() (update.Manifest, error) {
	keys, err := u.keys()
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
		m, err = update.Install(v, bundle, keys, running.File, u.Now())
		return err
	})
	return m, err
}

// Bless marks the running system as healthy.
func (u Updater) Bless() error {
	return u.withESP(func(v *fat.Volume, running update.Slot) error { return update.Bless(v, running.File) })
}

// withESP opens the EFI partition for writing, cleans up after interruptions, which
// may have left the running system with two names, and finds the running system.
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
	defer func() { _ = dev.Close() }() // f has already synced its writes
	// An update, a blessing, a reset and a new configuration may run at the same time.
	if err := unix.Flock(int(dev.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", disk.ESP, err)
	}
	v, err := fat.Open(dev)
	if err != nil {
		return err
	}
	return f(v)
}

// version returns the image's version from os-release(5).
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

// keys returns the public keys that the image was built with.
func (u Updater) keys() (update.Keys, error) {
	text, err := os.ReadFile(u.path(updateKey))
	if err != nil {
		return nil, fmt.Errorf("this image was built without a key, and so takes no updates: %w", err)
	}
	keys, err := update.ParseKeys(text)
	if err != nil {
		return nil, fmt.Errorf("/%s: %w", updateKey, err)
	}
	return keys, nil
}

// AwaitHealth asks url until every answer has been 200 for the duration steady, and returns
// an error after the duration within.
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

// healthAnswer is what the box itself needs of the answer of GET /api/v1/health.
type healthAnswer struct {
	Fingerprint string `json:"fingerprint"`
}

// maxHealth bounds the answer.
const maxHealth = 64 << 10

func askHealth(ctx context.Context, client *http.Client, url string) error {
	_, err := readHealth(ctx, client, url)
	return err
}

// readHealth returns an error unless the status is 200. The answer is returned with any
// status; what cannot be read of it is empty.
func readHealth(ctx context.Context, client *http.Client, url string) (answer healthAnswer, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return answer, err
	}
	response, err := client.Do(request)
	if err != nil {
		return answer, err
	}
	defer response.Body.Close()
	if text, err := io.ReadAll(io.LimitReader(response.Body, maxHealth)); err == nil {
		_ = json.Unmarshal(text, &answer) // the health does not depend on it
	}
	if response.StatusCode != http.StatusOK {
		return answer, fmt.Errorf("health says %s", response.Status)
	}
	return answer, nil
}
