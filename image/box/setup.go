package box

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"eidetic/internal/base/atomicfile"
)

// Setup prepares the box once at each boot, before the service starts.
type Setup struct {
	Root string // the file system, / on a box
	Run  Runner
	Log  *slog.Logger
	CPUs int
	// User and Group are those of the service, which may read the token.
	User, Group int
	// Patience is how long a disk may take to appear.
	Patience time.Duration
	// Check returns the mistake in the text of a configuration file, whose name is
	// used only in the message, and the box's part of the configuration that the
	// service runs with. After most mistakes that is the default configuration.
	Check func(name string, text []byte) (Config, error)
}

// Paths on the box.
const (
	// ConfigFile is the configuration in use.
	ConfigFile = "etc/appliance/appliance.yaml"
	// ESPConfig is the configuration on the EFI partition, where a person puts it.
	ESPConfig = "appliance.yaml"
	// espConfigNew is the new configuration while it replaces ESPConfig.
	espConfigNew = "appliance.yaml.new"
	// ConfigRequest is the file with a new configuration; writing it starts
	// appliance-config.service, which puts it on the EFI partition.
	ConfigRequest = "run/appliance/requests/config"
	// ESPReset is the file on the EFI partition that asks for a factory reset.
	ESPReset = "factory-reset"
	// ResetRequest is the file that makes appliance-reset.service create ESPReset.
	ResetRequest = "run/appliance/requests/reset"
	// TokenFile holds the token that the panel asks for.
	TokenFile = "etc/appliance/token"
	dataDir   = "var/lib/appliance"
	repartDir = "usr/lib/appliance/repart.d"
	keptToken = dataDir + "/token"
)

// MaxConfig bounds the size of a configuration, and of any file read from the EFI partition.
const MaxConfig = 64 << 10

// Is reports whether root is the file system of a box. The Debian package for other
// machines does not have this folder; a box has it from the start of its boot.
func Is(root string) bool {
	_, err := os.Stat(filepath.Join(root, repartDir))
	return err == nil
}

// Do runs every step. It logs a step that fails and goes on with the next one.
func (s Setup) Do(ctx context.Context) Config {
	disk, err := s.bootDisk(ctx)
	if err != nil {
		s.Log.Warn("no boot disk: settings and recordings are kept in memory only", "error", err)
	} else {
		reset := s.resetRequested(disk.ESP)
		if err := s.data(ctx, disk, reset); err != nil {
			s.Log.Warn("no data partition: settings and recordings are kept in memory only", "error", err)
		} else if reset {
			err := s.eraseConfig()
			s.Log.Warn("factory reset: recordings, runs, settings and the token were deleted", "error", err)
		}
		if err := s.config(disk.ESP); err != nil {
			s.Log.Error("the configuration on the EFI partition cannot be read", "error", err)
		}
	}
	if err := s.state(); err != nil {
		s.Log.Error("the service has nowhere to keep its state", "error", err)
	}
	cfg := DefaultConfig()
	if text, err := os.ReadFile(s.path(ConfigFile)); err != nil {
		s.Log.Error("no configuration", "error", err)
	} else if cfg, err = s.Check("/"+ConfigFile, text); err != nil {
		s.Log.Error("the configuration is not used", "error", err)
	}
	for what, step := range map[string]func() error{
		"host name":  func() error { return s.hostname(ctx, cfg.Hostname) },
		"token":      s.token,
		"processors": func() error { return s.processors(ctx) },
	} {
		if err := step(); err != nil {
			s.Log.Error("set-up step failed", "step", what, "error", err)
		}
	}
	return cfg
}

// bootDisk waits for the disk that the firmware booted from: the kernel needs seconds
// to find a USB stick again. It does not wait if the boot loader names no disk.
func (s Setup) bootDisk(ctx context.Context) (Disk, error) {
	if _, err := LoaderVariable(s.Root, "LoaderDevicePartUUID"); err != nil {
		return BootDisk(s.Root) // which says so
	}
	ctx, cancel := context.WithTimeout(ctx, s.Patience)
	defer cancel()
	for {
		disk, err := BootDisk(s.Root)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return disk, err
		}
		select {
		case <-ctx.Done():
			return disk, fmt.Errorf("%w, after %v", err, s.Patience)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (s Setup) path(name string) string { return filepath.Join(s.Root, name) }

// awaitFile returns when a file exists. It polls, because udev's events do not
// reach a unit with a network namespace of its own.
func awaitFile(ctx context.Context, name string, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		if _, err := os.Stat(name); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s did not appear within %v", name, patience)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// state creates the service's own folders on the data partition and removes an
// update that waits there: the request for it was in memory and is lost.
//
// The service may write there, so a link in the way of a folder may be its work: none is followed out of
// the partition, and what changes its owner is the link itself.
func (s Setup) state() error {
	if err := os.MkdirAll(s.path(dataDir), 0o700); err != nil {
		return err
	}
	data, err := os.OpenRoot(s.path(dataDir))
	if err != nil {
		return err
	}
	defer data.Close()
	incoming := strings.TrimPrefix(Incoming, dataDir+"/")
	for _, name := range []string{"state", filepath.Dir(incoming)} {
		if err := data.MkdirAll(name, 0o700); err != nil {
			return err
		}
		if err := data.Lchown(name, s.User, s.Group); err != nil {
			return err
		}
	}
	if err := data.Remove(incoming); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// exitStatus returns a program's exit status, or -1 if it has none.
func exitStatus(err error) int {
	var exit interface{ ExitCode() int }
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return -1
}

func (s Setup) hostname(ctx context.Context, name string) error {
	if err := writeFile(s.path("etc/hostname"), []byte(name+"\n"), 0o644); err != nil {
		return err
	}
	if now, err := os.Hostname(); err == nil && now == name {
		return nil
	}
	out, err := s.Run(ctx, "hostnamectl", "hostname", name)
	if err != nil {
		return fmt.Errorf("%w: %s", err, oneLine(out))
	}
	return nil
}

// token keeps the panel's token on the data partition. If there is no data partition,
// or it cannot be written, every boot makes a new token.
func (s Setup) token() error {
	token, err := os.ReadFile(s.path(keptToken))
	var keep error
	if err != nil || len(strings.TrimSpace(string(token))) < tokenLetters {
		token = []byte(newToken() + "\n")
		keep = writeFile(s.path(keptToken), token, 0o600)
	}
	return errors.Join(keep, s.writeSecret(TokenFile, token))
}

// writeSecret writes a file that only root and the service may read.
func (s Setup) writeSecret(name string, data []byte) error {
	if err := writeFile(s.path(name), data, 0o640); err != nil {
		return err
	}
	return os.Chown(s.path(name), 0, s.Group)
}

const tokenLetters = 16

// newToken returns 80 random bits as letters that are easy to type.
func newToken() string {
	b := make([]byte, tokenLetters*5/8)
	_, _ = rand.Read(b) // crypto/rand never returns an error
	return strings.ToLower(base32.StdEncoding.EncodeToString(b))
}

// processors keeps the rest of the system off the service's processors.
func (s Setup) processors(ctx context.Context) error {
	system, service := CPUs(s.CPUs)
	if system == "" {
		return nil
	}
	for slice, cpus := range map[string]string{"system.slice": system, "appliance.slice": service} {
		text := "[Slice]\nAllowedCPUs=" + cpus + "\n"
		if err := writeFile(s.path("run/systemd/system/"+slice+".d/50-cpus.conf"), []byte(text), 0o644); err != nil {
			return err
		}
	}
	out, err := s.Run(ctx, "systemctl", "daemon-reload")
	if err != nil {
		return fmt.Errorf("%w: %s", err, oneLine(out))
	}
	return nil
}

// writeFile replaces a file atomically and creates its folder.
func writeFile(name string, data []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return atomicfile.WriteFile(name, data, mode)
}
