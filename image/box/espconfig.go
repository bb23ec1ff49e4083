package box

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"eidetic/image/fat"

	"golang.org/x/sys/unix"
)

// config takes over the configuration on the EFI partition, if there is one.
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
	text, err := volume.ReadFile(ESPConfig, maxConfig)
	if errors.Is(err, fs.ErrNotExist) { // the power went while it was replaced
		text, err = volume.ReadFile(espConfigNew, maxConfig)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := s.Check(ESPConfig, text); err != nil {
		return err
	}
	return writeFile(s.path(ConfigFile), text, 0o644)
}

// readOnly refuses writes to the EFI partition.
type readOnly struct{ *os.File }

func (readOnly) WriteAt([]byte, int64) (int, error) { return 0, fs.ErrPermission }
func (readOnly) Sync() error                        { return nil }

// RequestConfig asks appliance-config.service to make text, which the caller
// has checked, the box's configuration; the box restarts with it. The service
// calls it; root is / on a box.
func RequestConfig(root string, text []byte) error {
	if len(text) > maxConfig {
		return fmt.Errorf("a configuration of %d bytes, at most %d", len(text), maxConfig)
	}
	return writeFile(filepath.Join(root, ConfigRequest), text, 0o600)
}

// ReplaceConfig puts the requested configuration on the EFI partition. At every
// moment the old one or the new one is there whole.
func (u Updater) ReplaceConfig(check func(name string, text []byte) (Config, error)) error {
	text, err := readRequest(u.path(ConfigRequest))
	if err == nil {
		_, err = check(ConfigRequest, text)
	}
	if err == nil {
		err = u.withVolume(func(v *fat.Volume) error {
			if err := removeFAT(v, espConfigNew); err != nil { // of an interrupted one
				return err
			}
			if err := v.Create(espConfigNew, int64(len(text)), bytes.NewReader(text), u.Now()); err != nil {
				return err
			}
			if err := removeFAT(v, ESPConfig); err != nil {
				return err
			}
			return v.Rename(espConfigNew, ESPConfig)
		})
	}
	return errors.Join(err, remove(u.path(ConfigRequest)))
}

// readRequest reads what the service wrote, and nothing that it only points to.
func readRequest(name string) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err == nil && len(text) > maxConfig {
		err = fmt.Errorf("%s: more than %d bytes", name, maxConfig)
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
