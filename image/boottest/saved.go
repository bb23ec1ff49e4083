package boottest

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Save writes the state of the running machine to dir, an empty folder, and switches it off. A machine with
// the same options, and Saved of dir, goes on where this one was.
func (m *Machine) Save(ctx context.Context, dir string) error {
	if _, err := m.QMP.Do(ctx, "stop", nil); err != nil {
		return err
	}
	to := map[string]any{"uri": "exec:cat > " + shellQuote(filepath.Join(dir, memoryFile))}
	if _, err := m.QMP.Do(ctx, "migrate", to); err != nil {
		return err
	}
	if err := m.migrated(ctx); err != nil {
		return fmt.Errorf("machine: save: %w", err)
	}
	if err := m.CutPower(); err != nil { // QEMU has written everything to the disk
		return err
	}
	for _, name := range []string{diskFile, varsFile, consoleFile} {
		if err := copySparse(filepath.Join(dir, name), m.path(name)); err != nil {
			return fmt.Errorf("machine: save: %w", err)
		}
	}
	return nil
}

// migrated waits until QEMU has written the state of the machine.
func (m *Machine) migrated(ctx context.Context) error {
	return m.poll(ctx, "query-migrate", func(is qemuState) (bool, error) {
		if is.Status == "failed" || is.Status == "cancelled" {
			return false, fmt.Errorf("it is %s: %s", is.Status, is.Desc)
		}
		return is.Status == "completed", nil
	})
}

// goOn waits until QEMU has read the state of a saved machine, and lets it run. QEMU ends if it cannot.
func (m *Machine) goOn(ctx context.Context) error {
	read := func(is qemuState) (bool, error) { return is.Status != "inmigrate", nil }
	if err := m.poll(ctx, "query-status", read); err != nil {
		return fmt.Errorf("go on from %s: %w", m.saved, err)
	}
	_, err := m.QMP.Do(ctx, "cont", nil)
	return err
}

// qemuState is what QEMU answers to query-migrate and to query-status.
type qemuState struct {
	Status string
	Desc   string `json:"error-desc"`
}

// poll asks QEMU for its state until it is as wanted.
func (m *Machine) poll(ctx context.Context, command string, wanted func(qemuState) (bool, error)) error {
	for {
		text, err := m.QMP.Do(ctx, command, nil)
		if err != nil {
			return err
		}
		var is qemuState
		if err := json.Unmarshal(text, &is); err != nil {
			return err
		}
		if ok, err := wanted(is); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// savedKey is a checksum of what a saved machine depends on: the image, QEMU, the firmware, and the options of
// the machine.
func savedKey(ctx context.Context, o Options, more ...any) (string, error) {
	sum := sha256.New()
	version, err := exec.CommandContext(ctx, "qemu-system-x86_64", "--version").Output()
	if err != nil {
		return "", fmt.Errorf("qemu-system-x86_64 --version: %w", err)
	}
	args, _ := (&Machine{options: o}).arguments() // with names of files that have no folder
	fmt.Fprintf(sum, "%s%q %d %v", version, args, o.Size, more)
	for _, name := range []string{firmwareCode, firmwareVars, o.Disk} {
		f, err := os.Open(name)
		if err != nil {
			return "", err
		}
		_, err = io.Copy(sum, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%x", sum.Sum(nil))[:16], nil
}

// keep makes a folder of saved state with the name prefix and key in dir, unless it is there, and removes those
// of other keys, whose image, QEMU or options are gone.
func keep(dir, prefix, key string, save func(dir string) error) (string, error) {
	folder := filepath.Join(dir, prefix+key)
	if _, err := os.Stat(folder); err == nil {
		return folder, nil
	}
	old, err := filepath.Glob(filepath.Join(dir, prefix+"*"))
	if err != nil {
		return "", err
	}
	for _, name := range old {
		if err := os.RemoveAll(name); err != nil {
			return "", err
		}
	}
	part := filepath.Join(dir, strings.TrimSuffix(prefix, "-")+".part")
	if err := errors.Join(os.RemoveAll(part), os.Mkdir(part, 0o700)); err != nil {
		return "", err
	}
	if err := save(part); err != nil {
		return "", err
	}
	return folder, os.Rename(part, folder)
}
