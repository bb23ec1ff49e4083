package box

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"eidetic/image/fat"
)

const (
	dataLabel = "/dev/disk/by-partlabel/appliance-data"
	// repairPatience bounds the time spent on repairing a damaged file system.
	repairPatience = 3 * time.Minute
)

// data creates the data partition if it is missing, grows it to the end of the disk,
// checks, repairs and mounts it. With reset it creates a new file system.
func (s Setup) data(ctx context.Context, disk Disk, reset bool) error {
	out, err := s.Run(ctx, "systemd-repart", "--dry-run=no", "--no-pager", "--json=short", "--definitions="+s.path(repartDir), disk.Disk)
	if err != nil {
		return fmt.Errorf("systemd-repart: %w: %s", err, oneLine(out))
	}
	// When systemd-repart closes the disk, udev reads the partition table again and
	// briefly removes links that already exist. Wait until they are back.
	if out, err := s.Run(ctx, "udevadm", "settle", "--timeout="+fmt.Sprint(s.Patience.Seconds())); err != nil {
		return fmt.Errorf("udevadm settle: %w: %s", err, oneLine(out))
	}
	if err := awaitFile(ctx, s.path(dataLabel), s.Patience); err != nil {
		return err
	}
	if reset {
		if err := s.wipe(ctx); err != nil {
			return err
		}
	} else if !created(out) {
		if err := s.repair(ctx); err != nil {
			return err
		}
	}
	return s.steps(ctx, []step{
		// Does nothing to a partition that has a file system.
		{"/usr/lib/systemd/systemd-makefs", []string{"ext4", dataLabel}},
		// Let the service manager mount it: a mount made by this unit would be visible only here.
		{"systemctl", []string{"start", "var-lib-appliance.mount"}},
		{"/usr/lib/systemd/systemd-growfs", []string{s.path(dataDir)}},
	})
}

// step is a program of the system and its arguments.
type step struct {
	name string
	args []string
}

func (s Setup) steps(ctx context.Context, steps []step) error {
	for _, p := range steps {
		if out, err := s.Run(ctx, p.name, p.args...); err != nil {
			return fmt.Errorf("%s: %w: %s", p.name, err, oneLine(out))
		}
	}
	return nil
}

// created reports whether systemd-repart created the data partition, from the JSON table
// among its messages. A new partition has no file system to repair, but may contain
// the remains of one that the disk had before.
func created(out []byte) bool {
	from, to := bytes.IndexByte(out, '['), bytes.LastIndexByte(out, ']')
	if from < 0 || to < from {
		return false
	}
	var table []struct{ Label, Activity string }
	if json.Unmarshal(out[from:to+1], &table) != nil {
		return false
	}
	for _, p := range table {
		if p.Label == "appliance-data" && p.Activity == "create" {
			return true
		}
	}
	return false
}

// Exit statuses of e2fsck(8), of which more than one may be set.
const (
	fsckCorrected = 1 | 2
	fsckNothing   = 8 // there is no file system, not even a copy of its superblock
)

// repair replays the journal of the data partition, which is quick. If that is not
// enough, it checks the whole file system and repairs what it can.
func (s Setup) repair(ctx context.Context) error {
	if _, err := s.Run(ctx, "e2fsck", "-p", dataLabel); err == nil || exitStatus(err)&^fsckCorrected == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, repairPatience)
	defer cancel()
	out, err := s.Run(ctx, "e2fsck", "-y", dataLabel)
	if err == nil || exitStatus(err)&^fsckCorrected == 0 {
		s.Log.Warn("the data partition was damaged and is repaired", "e2fsck", oneLine(out[max(0, len(out)-1000):]))
		return nil
	}
	if exitStatus(err) == fsckNothing {
		return nil // the power failed before there was a file system: systemd-makefs creates it now
	}
	return fmt.Errorf("the data partition is damaged beyond repair: e2fsck: %w: %s", err, oneLine(out[max(0, len(out)-1000):]))
}

// wipe erases the data partition.
func (s Setup) wipe(ctx context.Context) error {
	if out, err := s.Run(ctx, "blkdiscard", "-f", dataLabel); err != nil {
		s.Log.Info("the disk does not support discard: old data stays until new data overwrites it", "blkdiscard", oneLine(out))
	}
	return s.steps(ctx, []step{{"wipefs", []string{"-a", "-f", dataLabel}}})
}

// resetRequested reports whether the EFI partition asks for a factory reset.
func (s Setup) resetRequested(esp string) bool {
	dev, err := os.Open(s.path(esp))
	if err != nil {
		return false
	}
	defer func() { _ = dev.Close() }()
	v, err := fat.Open(readOnly{dev})
	if err != nil {
		return false
	}
	_, err = v.ReadFile(ESPReset, MaxConfig)
	return err == nil
}

// eraseConfig removes the configuration from the EFI partition, and then the request for
// a reset: if the power fails in between, the next boot resets again.
func (s Setup) eraseConfig() error {
	return Updater{Root: s.Root}.withVolume(func(v *fat.Volume) error {
		for _, name := range []string{espConfigNew, ESPConfig, ESPReset} {
			if err := removeFAT(v, name); err != nil {
				return err
			}
		}
		return nil
	})
}

// MarkReset makes the next boot a factory reset, which deletes recordings, runs,
// settings, the token and the configuration on the EFI partition.
func (u Updater) MarkReset() error {
	err := u.withVolume(func(v *fat.Volume) error {
		err := v.Create(ESPReset, 0, bytes.NewReader(nil), u.Now())
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	})
	return errors.Join(err, remove(u.path(ResetRequest)))
}

// RequestReset asks appliance-reset.service for a factory reset, which restarts
// the box at once. The service calls it; root is / on a box.
func RequestReset(root string) error {
	return writeFile(filepath.Join(root, ResetRequest), nil, 0o600)
}
