package box

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"eidetic/image/fat"
	"eidetic/image/update"
)

// ErrNoUpdate means that a USB stick has no update to install.
var ErrNoUpdate = errors.New("no update for this box on the stick")

// Stick installs the newest update in the root of a USB stick, whose partition
// is device, for example /dev/sda1; the caller restarts the box on success. Our
// own code reads the stick, which is never mounted, and nothing on it is trusted
// before its signature is checked. It returns ErrNoUpdate, with the reasons, if
// nothing on the stick is newer than the running system. It skips a version that the
// box has tried and given up: the stick may still be plugged in.
func (u Updater) Stick(device string) (Result, error) {
	dev, err := os.Open(u.path(device))
	if err != nil {
		return Result{}, err
	}
	defer func() { _ = dev.Close() }()
	stick, err := fat.Open(readOnly{dev})
	if err != nil {
		return Result{}, fmt.Errorf("%w: %w", ErrNoUpdate, err)
	}
	var r Result
	err = u.withESP(func(v *fat.Volume, running update.Slot) error {
		name, m, err := u.newest(stick, v, running)
		if err != nil {
			return err
		}
		r.Version = m.Version
		if err := u.installFrom(v, stick, name, running); err != nil {
			r.Error = err.Error()
			return err
		}
		return nil
	})
	if r.Version == "" {
		return r, err
	}
	return r, u.saveResult(r, err)
}

// newest finds the bundle with the highest version among those on the stick that may be
// installed.
func (u Updater) newest(stick, esp *fat.Volume, running update.Slot) (name string, best update.Manifest, err error) {
	keys, err := u.keys()
	if err != nil {
		return "", best, err
	}
	slots, err := update.Slots(esp)
	if err != nil {
		return "", best, err
	}
	entries, err := stick.List("")
	if err != nil {
		return "", best, fmt.Errorf("%w: %w", ErrNoUpdate, err)
	}
	reasons := []error{ErrNoUpdate}
	for _, e := range entries {
		if e.Folder || !strings.EqualFold(filepath.Ext(e.Name), ".update") {
			continue
		}
		m, err := offered(stick, e.Name, keys)
		if err == nil {
			err = m.Allowed(running.Version)
		}
		for _, s := range slots {
			if err == nil && s.Version == m.Version && s.Left == 0 {
				err = fmt.Errorf("%s was tried and did not become healthy", m.Version)
			}
		}
		if err != nil {
			reasons = append(reasons, fmt.Errorf("%s: %w", e.Name, err))
		} else if name == "" || update.Compare(m.Version, best.Version) > 0 {
			name, best = e.Name, m
		}
	}
	if name == "" {
		return "", best, errors.Join(reasons...)
	}
	return name, best, nil
}

// offered reads the manifest of a bundle on the stick.
func offered(stick *fat.Volume, name string, keys update.Keys) (update.Manifest, error) {
	bundle, err := stick.Open(name)
	if err != nil {
		return update.Manifest{}, err
	}
	m, _, err := update.Open(bundle, keys)
	return m, err
}

func (u Updater) installFrom(esp, stick *fat.Volume, name string, running update.Slot) error {
	keys, err := u.keys()
	if err != nil {
		return err
	}
	bundle, err := stick.Open(name)
	if err != nil {
		return err
	}
	_, err = update.Install(esp, bundle, keys, running.File, u.Now())
	return err
}
