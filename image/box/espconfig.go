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

// config copies the configuration on the EFI partition, if there is one, to ConfigFile.
// It also copies one with a mistake: the services that read it report the mistake and
// run with the defaults, and the panel shows the text to whoever corrects it.
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
	return s.writeSecret(ConfigFile, text) // it may contain passwords of shared screens
}

// readConfig reads the configuration on the EFI partition.
func readConfig(v *fat.Volume) ([]byte, error) {
	text, err := v.ReadFile(ESPConfig, MaxConfig)
	if errors.Is(err, fs.ErrNotExist) { // the power failed while it was replaced
		text, err = v.ReadFile(espConfigNew, MaxConfig)
	}
	return text, err
}

// readableConfig returns the hash of the configuration on the EFI partition, or "" if
// there is none or this version cannot read it.
func (u Updater) readableConfig() string {
	text, err := u.espConfig()
	if err != nil || u.Check == nil {
		return ""
	}
	if _, err := u.Check(ESPConfig, text); err != nil {
		return ""
	}
	return sum(text)
}

// CheckConfig returns an error when this version was installed as an update and cannot
// read the configuration that the version before it could read. A mistake that a person
// made since then is no reason to give up the update.
func (u Updater) CheckConfig() error {
	version, err := u.version()
	if err != nil {
		return err
	}
	last, err := u.readResult()
	if err != nil || last == nil || last.Version != version || last.Config == "" {
		return nil // without a saved hash, the update cannot be blamed
	}
	text, err := u.espConfig()
	if err != nil || sum(text) != last.Config {
		return nil
	}
	if _, err := u.Check(ESPConfig, text); err != nil {
		return fmt.Errorf("the previous version could read this configuration, this one cannot: %w", err)
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
// moment the old one or the new one is there, complete. It also adopts a
// configuration that is requested meanwhile, because that request was confirmed.
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
			u.Log.Error("the configuration that was requested last is refused; the one before it stays", "error", err)
			return nil // the box restarts with the one before
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
	case errors.Is(err, fs.ErrNotExist): // after an interruption, the new file may be the only one
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

// readRequest reads a request that the service wrote. It does not follow links.
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

// removeFAT removes a file; a file that does not exist is no error.
func removeFAT(v *fat.Volume, name string) error {
	if err := v.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
