package box

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"eidetic/image/fat"

	"golang.org/x/sys/unix"
)

// config takes over the configuration on the EFI partition, if there is one.
// One with a mistake too: the services that read it tell of that and run with the
// defaults, and whoever mends it finds their own text in the panel.
func (s Setup) config(esp string) error {
	dev, err := os.Open(s.path(esp))
	if err != nil {
		return err
	}
	defer func() { _ = dev.Close() }()
	volume, err := fat.Open(readOnly{dev})
	if err != nil {
		return err
	}
	text, err := readConfig(volume)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.writeSecret(ConfigFile, text) // with the passwords of shared screens
}

// readConfig reads the configuration on the EFI partition.
func readConfig(v *fat.Volume) ([]byte, error) {
	text, err := v.ReadFile(ESPConfig, MaxConfig)
	if errors.Is(err, fs.ErrNotExist) { // the power went while it was replaced
		text, err = v.ReadFile(espConfigNew, MaxConfig)
	}
	return text, err
}

// readable returns the hash of the configuration on the EFI partition if this
// version can read it; else, or without one, "".
func (u Updater) readable() string {
	text, err := u.espConfig()
	if err != nil || u.Check == nil {
		return ""
	}
	if _, err := u.Check(ESPConfig, text); err != nil {
		return ""
	}
	return sum(text)
}

// CheckConfig fails when this version, which was installed as an update, cannot
// read the configuration that the version before it could. A mistake that a
// person made is no reason to give an update up.
func (u Updater) CheckConfig() error {
	version, err := u.version()
	if err != nil {
		return err
	}
	last, err := u.readResult()
	if err != nil || last == nil || last.Version != version || last.Config == "" {
		return nil // nothing is known: it cannot be the update's fault
	}
	text, err := u.espConfig()
	if err != nil || sum(text) != last.Config {
		return nil
	}
	if _, err := u.Check(ESPConfig, text); err != nil {
		return fmt.Errorf("the version before could read this configuration: %w", err)
	}
	return nil
}

// espConfig reads the configuration on the EFI partition.
func (u Updater) espConfig() (text []byte, err error) {
	err = u.withVolume(func(v *fat.Volume) error {
		text, err = readConfig(v)
		return err
	})
	return text, err
}

func sum(text []byte) string {
	h := sha256.Sum256(text)
	return hex.EncodeToString(h[:])
}

// readOnly refuses writes to the EFI partition.
type readOnly struct{ *os.File }

func (readOnly) WriteAt([]byte, int64) (int, error) { return 0, fs.ErrPermission }
func (readOnly) Sync() error                        { return nil }

// RequestConfig asks appliance-config.service to make text, which the caller
// has checked, the box's configuration; the box restarts with it. The service
// calls it; root is / on a box.
func RequestConfig(root string, text []byte) error {
	if len(text) > MaxConfig {
		return fmt.Errorf("a configuration of %d bytes, at most %d", len(text), MaxConfig)
	}
	return writeFile(filepath.Join(root, ConfigRequest), text, 0o600)
}

// ReplaceConfig puts the requested configuration on the EFI partition. At every
// moment the old one or the new one is there whole. One that is requested
// meanwhile is taken too: whoever asked for it was told that it would be.
func (u Updater) ReplaceConfig() error {
	taken := u.path(ConfigRequest + ".taken")
	for n := 0; ; n++ {
		err := os.Rename(u.path(ConfigRequest), taken)
		if n > 0 && errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			err = errors.Join(u.takeConfig(taken), remove(taken))
		}
		if err != nil && n > 0 {
			u.Log.Error("the configuration that was requested last is not taken", "error", err)
			return nil // the one before is: the box restarts with it
		}
		if err != nil {
			return err
		}
	}
}

// takeConfig checks a requested configuration, and puts it on the EFI partition.
func (u Updater) takeConfig(name string) error {
	text, err := readRequest(name)
	if err != nil {
		return err
	}
	if _, err := u.Check(ConfigRequest, text); err != nil {
		return err
	}
	return u.withVolume(func(v *fat.Volume) error { return replaceConfig(v, text, u.Now()) })
}

func replaceConfig(v *fat.Volume, text []byte, now time.Time) error {
	switch _, err := v.ReadFile(ESPConfig, MaxConfig); {
	case errors.Is(err, fs.ErrNotExist): // what an interrupted one left may be the only one
		if err := v.Rename(espConfigNew, ESPConfig); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	default:
		if err := removeFAT(v, espConfigNew); err != nil {
			return err
		}
	}
	if err := v.Create(espConfigNew, int64(len(text)), bytes.NewReader(text), now); err != nil {
		return err
	}
	if err := removeFAT(v, ESPConfig); err != nil {
		return err
	}
	return v.Rename(espConfigNew, ESPConfig)
}

// readRequest reads what the service wrote, and nothing that it only points to.
func readRequest(name string) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, MaxConfig+1))
	if err == nil && len(text) > MaxConfig {
		err = fmt.Errorf("%s: more than %d bytes", name, MaxConfig)
	}
	return text, err
}

// removeFAT removes a file that may be gone already.
func removeFAT(v *fat.Volume, name string) error {
	if err := v.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
